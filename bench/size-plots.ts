// In: what was measured of lists of several sizes. Out: plots of how import, memory and latency grow.

import { type Line, linePlot } from './plots.ts';
import type { OwnPlot } from './results.ts';
import { namesIn, type SizeFigures } from './size-tables.ts';

/** The plots of the group; a line needs two sizes. */
export function sizePlots(sizes: readonly SizeFigures[]): OwnPlot[] {
  if (sizes.length < 2) return [];
  return [
    plot(sizes, 'performance-size-import.svg', 'Time of an import by the length of the list', 's', [
      ['first', (it) => it.imports[0]?.seconds],
      ['second', (it) => it.imports[1]?.seconds],
    ]),
    plot(sizes, 'performance-size-memory.svg', 'Memory by the length of the list', 'MB', [
      ['Redis: 1 kept', (it) => inMegabytes(it.imports[0]?.redisAfter)],
      ['1 staged', (it) => inMegabytes(it.imports[0]?.redisPeak)],
      ['1 kept, 1 staged', (it) => inMegabytes(it.imports[1]?.redisPeak)],
      ['importer, peak', (it) => inMegabytes(it.imports[0]?.importerPeak)],
    ]),
    plot(
      ...([sizes, 'performance-size-latency.svg', 'Median latency by the length of the list', 'ms'] as const),
      namesIn(sizes).map((name) => [
        ...([
          shortName(name),
          (it: SizeFigures) => it.latencies.find((kind) => kind.name === name)?.p50,
        ] as const),
      ]),
    ),
  ];
}

type Figure = (size: SizeFigures) => number | null | undefined;

function plot(
  sizes: readonly SizeFigures[],
  name: string,
  title: string,
  unit: string,
  lines: readonly (readonly [label: string, figure: Figure])[],
): OwnPlot {
  const drawn = lines.map(
    ([label, figure]): Line => ({
      label,
      points: sizes.flatMap((size) => {
        const value = figure(size);
        return value === null || value === undefined ? [] : [[size.records, value] as const];
      }),
    }),
  );
  const told = drawn.flatMap(({ label, points }) => {
    const [least, most] = [points[0], points[points.length - 1]];
    if (least === undefined || most === undefined) return [];
    const shown = ([records, value]: readonly [number, number]) =>
      `${value.toPrecision(3)} ${unit} with ${records.toLocaleString('en')} records`;
    return [`${label}: ${shown(least)}, ${shown(most)}`];
  });
  const description = `Lines over the number of records. ${told.join('; ')}.`;
  return { name, title, svg: linePlot(drawn, { title, description, axis: 'records, in millions', unit }) };
}

function inMegabytes(bytes: number | null | undefined): number | null {
  return bytes === null || bytes === undefined ? null : bytes / 1_000_000;
}

function shortName(name: string): string {
  return (
    name.split(',')[0]?.replace('one record by its id', 'by id').replace('search by 3 letters', 'search') ??
    name
  );
}
