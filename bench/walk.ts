// The row group `walk`: a client that reads the whole real list, page after page or as NDJSON. In: a run. Out: its rows.

import { writeFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, gunzipSync } from 'node:zlib';
import { Client } from 'undici';
import { createClient } from '../client/client.ts';
import type { BenchRun } from './bench-run.ts';
import { onPath } from './installed.ts';
import type { LoadRequest } from './load.ts';
import { importProducts } from './medref.ts';
import { startNginx, writePages } from './peers/nginx.ts';
import { readProducts } from './peers/paged-list.ts';
import { fieldsOf, requestsFor } from './requests.ts';
import type { Comparison, GroupResult, Outcome, PlainFigure } from './results.ts';
import { type ContestResult, inRounds } from './rounds.ts';
import { type Service, startService } from './service.ts';
import { median } from './statistics.ts';

/** What a walk came to. */
export interface Walk {
  readonly seconds: number;
  readonly pages: number;
}

type Step = (next: URL) => string;

const [ndjson, snapshot, delta] = [
  'medref: the whole list as NDJSON, gzip',
  'medref/client: first snapshot of a mirror, proven',
  'medref/client: step of a mirror, 1 % changed',
] as const;

/** How many records of a list the step of a mirror is measured with. */
const changedOf = (count: number) => Math.ceil(count / 100);

/** Measures walks over the whole list. */
export async function measureWalk(run: BenchRun): Promise<GroupResult> {
  const service = await startService(run, run.list);
  const count = readProducts(run.list).length;
  const fields = fieldsOf(service.key, 'gzip');
  const pages = Math.ceil(count / 200);
  const program = onPath('nginx');
  const names = [
    '/products',
    ...Array.from({ length: pages - 1 }, (_, i) => `/products?page=${i + 2}&per-page=200`),
  ];
  const requests = requestsFor(names, fields);
  const step: Step = (next) => next.pathname + next.search;
  const walkMedref = () => settled(() => walk(service.origin, '/products', { fields, pages, step }));
  const result =
    program === undefined ? null : await againstNginx(run, { service, requests, program, pages, walkMedref });
  const since = await publishChanged(run, service);
  const readers: readonly [name: string, read: () => Promise<Walk>][] = [
    [ndjson, () => readNdjson(service, count)],
    [snapshot, () => firstStep(service, { records: count })],
    [delta, () => firstStep(service, { since, changes: changedOf(count) })],
  ];
  const results = await inRounds(
    readers.map(([title, read]) => ({ title, subject: () => settled(read), against: walkMedref })),
    run.rounds,
    (title, round) => run.say(`round ${round + 1} of ${run.rounds}: ${title} against the walk`),
  );
  await service.stop();
  return {
    comparisons: [
      walkComparison(result),
      ...readers.map(([name], n) => comparisonWithWalk(name, results[n] as ContestResult<Walk>)),
    ],
    figures: figures(count, result, results as ContestResult<Walk>[]),
  };
}

/** Publishes the list once more, one of a hundred records changed. @returns the version before */
async function publishChanged(run: BenchRun, { origin, key, store }: Service): Promise<number> {
  const { version } = await createClient({ baseUrl: origin, key }).products.page({ perPage: 1 });
  const changed = readProducts(run.list).map((record, n) =>
    n % 100 === 0 ? { ...record, published: !record.published } : record,
  );
  const file = run.workspace.path('changed.json');
  await writeFile(file, JSON.stringify({ data: changed }));
  await importProducts(run.workspace, store, file);
  return version;
}

/** What a mirror of the client library gives first, proven by its digest where it is a snapshot. */
async function firstStep(
  { origin, key }: Pick<Service, 'origin' | 'key'>,
  { since, records, changes }: { since?: number; records?: number; changes?: number },
): Promise<Walk> {
  const startedAt = performance.now();
  const mirror = createClient({ baseUrl: origin, key }).products.mirror({ since });
  const { value: step } = await mirror.next();
  const seconds = (performance.now() - startedAt) / 1000;
  await mirror.return();
  const came = [step?.records?.length, step?.changes?.length];
  if (came[0] !== records || came[1] !== changes)
    throw new Error(`the step had ${came} records and changes, not ${[records, changes]}`);
  return { seconds, pages: 1 };
}

async function againstNginx(
  run: BenchRun,
  setting: {
    service: Service;
    requests: readonly LoadRequest[];
    program: string;
    pages: number;
    walkMedref(): Promise<Walk>;
  },
): Promise<ContestResult<Walk>> {
  const { service, requests, program, pages, walkMedref } = setting;
  const files = await writePages(run.workspace, { origin: service.origin, requests });
  const nginx = await startNginx(run.workspace, { program, files });
  const step: Step = (next) => `/products/${next.searchParams.get('page')}.json`;
  const fields = requests[0]?.headers ?? {};
  const [result] = await inRounds(
    [
      {
        title: 'a walk against the same bytes from nginx',
        subject: walkMedref,
        against: () => settled(() => walk(nginx.address, '/products/1.json', { fields, pages, step })),
      },
    ],
    run.rounds,
    (title, round) => run.say(`round ${round + 1} of ${run.rounds}: ${title}`),
  );
  await nginx.stop();
  return result as ContestResult<Walk>;
}

/** One walk takes less than a second, and the first after a pause is slow: it does not count, and of three the middle one does. */
async function settled(walkOnce: () => Promise<Walk>): Promise<Walk> {
  await walkOnce();
  const walks = [await walkOnce(), await walkOnce(), await walkOnce()];
  return { pages: walks[0]?.pages ?? 0, seconds: median(walks.map(({ seconds }) => seconds)) };
}

/** Follows `next` from page to page on one connection; the client does the same work whoever answers. */
export async function walk(
  origin: string,
  first: string,
  { fields, pages, step }: { fields: Readonly<Record<string, string>>; pages: number; step: Step },
): Promise<Walk> {
  const client = new Client(origin, { pipelining: 1 });
  try {
    const startedAt = performance.now();
    let count = 0;
    for (let path: string | null = first; path !== null; count++) {
      const { statusCode, headers, body } = await client.request({ method: 'GET', path, headers: fields });
      const bytes = Buffer.from(await body.arrayBuffer());
      if (statusCode !== 200) throw new Error(`${path} was answered with ${statusCode}`);
      const next = nextOf(headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes);
      path = next === null ? null : step(next);
    }
    if (count !== pages) throw new Error(`the walk had ${count} pages, not ${pages}`);
    return { seconds: (performance.now() - startedAt) / 1000, pages: count };
  } finally {
    await client.close();
  }
}

/** The next page's link, which is in the envelope's tail; the records before it are not parsed. */
function nextOf(text: Buffer): URL | null {
  const tail = text.subarray(text.lastIndexOf('"_links":')).toString();
  const { _links: links } = JSON.parse(`{${tail}`) as { _links: { next?: { href: string } } };
  return links.next === undefined ? null : new URL(links.next.href);
}

/** medref without NDJSON answers with something else, or not at all. */
class NotThere extends Error {}

/** Reads the whole list as one stream, gzip accepted, and counts its lines. */
export async function readNdjson(
  { origin, key }: Pick<Service, 'origin' | 'key'>,
  records: number,
): Promise<Walk> {
  const client = new Client(origin);
  try {
    const startedAt = performance.now();
    const headers = { ...fieldsOf(key, 'gzip'), Accept: 'application/x-ndjson' };
    const answer = await client.request({ method: 'GET', path: '/products', headers });
    const type = String(answer.headers['content-type']);
    if (answer.statusCode !== 200 || !type.startsWith('application/x-ndjson')) {
      await answer.body.dump();
      throw new NotThere(`not there: medref answers ${answer.statusCode} with ${type}`);
    }
    let lines = 0;
    const isGzip = answer.headers['content-encoding'] === 'gzip';
    await pipeline(
      answer.body,
      isGzip ? createGunzip() : new PassThrough(),
      async (text: AsyncIterable<Buffer>) => {
        for await (const chunk of text) lines += linesOf(chunk);
      },
    );
    if (lines !== records) throw new Error(`the stream had ${lines} lines, not ${records}`);
    return { seconds: (performance.now() - startedAt) / 1000, pages: 1 };
  } finally {
    await client.close();
  }
}

function linesOf(chunk: Buffer): number {
  let lines = 0;
  for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines++;
  return lines;
}

function walkComparison(result: ContestResult<Walk> | null): Comparison {
  const outcome: Outcome =
    result === null ? { state: 'left out', reason: 'there is no nginx here' } : speedOf(result);
  return {
    subject: 'medref: walk of the whole list along next, gzip',
    against: 'nginx: the same bytes, static',
    unit: 'times',
    target: { atLeast: 0.2 },
    outcome,
  };
}

function comparisonWithWalk(subject: string, result: ContestResult<Walk>): Comparison {
  return {
    subject,
    against: 'medref: walk of the whole list along next, gzip',
    unit: 'times',
    target: null,
    outcome: speedOf(result),
  };
}

/** How much faster the subject was. */
function speedOf({ samples, failure }: ContestResult<Walk>): Outcome {
  if (failure?.startsWith('not there')) return { state: 'left out', reason: failure };
  if (failure !== null) return { state: 'failed', reason: failure };
  return {
    state: 'measured',
    values: samples.map(({ subject, against }) => against.seconds / subject.seconds),
  };
}

function figures(
  records: number,
  nginx: ContestResult<Walk> | null,
  readers: readonly ContestResult<Walk>[],
): PlainFigure[] {
  const perSecond = (name: string, walks: readonly Walk[]): PlainFigure[] =>
    walks.length === 0
      ? []
      : [
          {
            ...{ name, unit: 'records/s' },
            outcome: { state: 'measured', values: walks.map(({ seconds }) => records / seconds) },
          },
        ];
  return [
    ...perSecond('medref: walk of the whole list along next, gzip', [
      ...(nginx?.samples.map(({ subject }) => subject) ?? []),
      ...readers.flatMap(({ samples }) => samples.map(({ against }) => against)),
    ]),
    ...perSecond('nginx: the same pages, static', nginx?.samples.map(({ against }) => against) ?? []),
    ...[ndjson, snapshot].flatMap((name, n) =>
      perSecond(name, readers[n]?.samples.map(({ subject }) => subject) ?? []),
    ),
    ...inMilliseconds(delta, readers[2]?.samples.map(({ subject }) => subject) ?? []),
  ];
}

function inMilliseconds(name: string, walks: readonly Walk[]): PlainFigure[] {
  const values = walks.map(({ seconds }) => seconds * 1000);
  return walks.length === 0 ? [] : [{ name, unit: 'ms', outcome: { state: 'measured', values } }];
}
