// In: what was measured of lists of several sizes. Out: tables of it, and how each figure grows beside a straight line.

import type { OwnTable } from './results.ts';

/** One import into a Redis that has so many versions. */
export interface ImportFigures {
  readonly records: number;
  readonly keptBefore: number;
  readonly version: number;
  readonly seconds: number;
  /** The atomic step; `null` where Redis did not keep its time. */
  readonly publishMs: number | null;
  /** Bytes. */
  readonly importerPeak: number | null;
  readonly redisAfter: number;
  readonly redisPeak: number;
  readonly redisResident: number | null;
}

/** What was measured of one size. */
export interface SizeFigures {
  readonly records: number;
  readonly imports: readonly ImportFigures[];
  readonly latencies: readonly { readonly name: string; readonly p50: number; readonly p99: number }[];
}

const megabyte = 1_000_000;

/** The tables of the group. */
export function sizeTables(sizes: readonly SizeFigures[], perSecond: number): OwnTable[] {
  return [importTable(sizes), latencyTable(sizes, perSecond), ...growthTable(sizes)];
}

/** One import as a line, for who waits. */
export function importLine(figures: ImportFigures): string {
  const { records, keptBefore, seconds, redisAfter, redisPeak, publishMs, importerPeak } = figures;
  return [
    `${whole(records)} records, ${keptBefore} kept: ${seconds.toFixed(1)} s, ${whole(records / seconds)} records/s`,
    `importer ${megabytes(importerPeak)} MB`,
    `Redis ${megabytes(redisAfter)} MB, at the peak ${megabytes(redisPeak)} MB`,
    `published in ${milliseconds(publishMs)} ms`,
  ].join('; ');
}

function importTable(sizes: readonly SizeFigures[]): OwnTable {
  return {
    words:
      'Each import is staged beside the versions that are kept, and 1 % of its records differ from those of the one before. Redis keeps an append-only file, each write on the disk before it is answered. Publishing is the one step that makes a version live, by the time that Redis says.',
    head: [
      ...['Records', 'Versions kept before', 'Import, s', 'Records/s', 'Importer, peak, MB'],
      ...['Redis, after, MB', 'Redis, at the peak, MB', 'Redis, resident at the peak, MB', 'Publishing, ms'],
    ],
    rows: sizes
      .flatMap(({ imports }) => imports)
      .map(
        ({ records, keptBefore, seconds, importerPeak, redisAfter, redisPeak, redisResident, publishMs }) => [
          ...[whole(records), String(keptBefore), seconds.toFixed(1), whole(records / seconds)],
          ...[importerPeak, redisAfter, redisPeak, redisResident].map(megabytes),
          milliseconds(publishMs),
        ],
      ),
  };
}

function latencyTable(sizes: readonly SizeFigures[], perSecond: number): OwnTable {
  const names = namesIn(sizes);
  return {
    words: `Latency at ${perSecond} requests/s, median and 99 %, ms; counted from when a request was due. Requests are spread over the whole list.`,
    head: ['Records', ...names.flatMap((name) => [`${name}, 50 %`, '99 %'])],
    rows: sizes.map(({ records, latencies }) => [
      whole(records),
      ...names.flatMap((name) => {
        const found = latencies.find((it) => it.name === name);
        return [milliseconds(found?.p50 ?? null), milliseconds(found?.p99 ?? null)];
      }),
    ]),
  };
}

/** The kinds of requests, of whichever size has the most of them. */
export function namesIn(sizes: readonly SizeFigures[]): string[] {
  return [...new Set(sizes.flatMap(({ latencies }) => latencies.map(({ name }) => name)))];
}

/** From the smallest to the largest that has a figure. */
function growthTable(sizes: readonly SizeFigures[]): OwnTable[] {
  if (sizes.length < 2) return [];
  const first = ({ imports }: SizeFigures) => imports[0] as ImportFigures;
  const second = ({ imports }: SizeFigures) => imports[1];
  const rows = [
    growth(sizes, 'time of the first import', 'records', (it) => first(it).seconds),
    growth(sizes, 'time of the second import', 'records', (it) => second(it)?.seconds),
    growth(sizes, 'Redis with one version', 'records', (it) => first(it).redisAfter),
    growth(sizes, 'Redis with one version, staged', 'records', (it) => first(it).redisPeak),
    growth(sizes, 'Redis with one version kept, one staged', 'records', (it) => second(it)?.redisPeak),
    growth(sizes, 'peak memory of the importer', 'nothing', (it) => first(it).importerPeak),
    growth(sizes, 'publishing', 'nothing', (it) => first(it).publishMs),
    ...namesIn(sizes).map((name) =>
      growth(
        sizes,
        `${name}, median`,
        'nothing',
        (it) => it.latencies.find((kind) => kind.name === name)?.p50,
      ),
    ),
  ];
  return [
    {
      words:
        'How each figure grows from the smallest list to the largest one of which there is such a figure.',
      head: ['What', 'Records', 'Grow', 'The figure grows', 'A straight line grows'],
      rows: rows.flat(),
    },
  ];
}

function growth(
  sizes: readonly SizeFigures[],
  what: string,
  by: 'records' | 'nothing',
  figureOf: (size: SizeFigures) => number | null | undefined,
): string[][] {
  const known = sizes.flatMap((size) => {
    const figure = figureOf(size);
    return figure === null || figure === undefined ? [] : [{ records: size.records, figure }];
  });
  const [least, most] = [known[0], known[known.length - 1]];
  if (least === undefined || most === undefined || least === most) return [];
  const times = most.records / least.records;
  return [
    [
      ...[what, `${whole(least.records)} to ${whole(most.records)}`, `${times.toFixed(1)} times`],
      `${(most.figure / least.figure).toFixed(2)} times`,
      by === 'records' ? `${times.toFixed(1)} times` : '1 time: it stays as it is',
    ],
  ];
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function megabytes(bytes: number | null): string {
  return bytes === null ? '–' : whole(bytes / megabyte);
}

function milliseconds(value: number | null): string {
  return value === null ? '–' : value.toFixed(2);
}
