// The row group `size`: how import, memory and answers grow with the list, versions kept and staged; Redis keeps an append-only
// file, as it is advised to. In: a run. Out: its tables and plots; a size for which the machine has no room is left out.

import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Product } from '../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../shared/redis/connections.ts';
import type { BenchRun, SizeToTry } from './bench-run.ts';
import { generatedProducts, writeList } from './generated-list.ts';
import { freeRoom } from './machine.ts';
import { createKey, type Store, serve, startImport } from './medref.ts';
import { peakMemory, peakMemoryUntil } from './process-usage.ts';
import { watchPublications } from './publish-step.ts';
import { fieldsOf, fullPages, namePrefixes, requestsFor } from './requests.ts';
import type { Comparison, GroupResult } from './results.ts';
import { sizePlots } from './size-plots.ts';
import { type ImportFigures, importLine, type SizeFigures, sizeTables } from './size-tables.ts';
import { percentile } from './statistics.ts';
import { steadyLoad } from './steady-load.ts';

/** Modest: on two cores, one thread is far from busy with it. */
const perSecond = 100;
/** Records whose ids and names are asked for, spread over the list. */
const sampleSize = 2_000;
/** One record in so many differs from one import to the next. */
const changedOneIn = 100;
const warmUpMs = 1_000;

/** What a record takes at most: in Redis, in a version that is kept and in one that is staged; on disk, by each import, in list and append-only file. */
const bytesPerRecord = { kept: 650, staged: 1_000, disk: 2_500 };
/** What Redis needs beside its data, for its processor of the file; and all other programs, in bytes. */
const spare = { share: 1.2, bytes: 1e9 };

/** Measures one size after the other. */
export async function measureSize(run: BenchRun): Promise<GroupResult> {
  const found: Measured[] = [];
  const comparisons: Comparison[] = [];
  for (const size of run.sizes.growth) {
    const subject = `${size.records.toLocaleString('en')} records`;
    const without = (state: 'left out' | 'failed', reason: string) =>
      comparisons.push({ subject, against: '–', unit: 'times', target: null, outcome: { state, reason } });
    const shortage = await shortageFor(run, size);
    if (shortage !== null) {
      without('left out', shortage);
      run.say(`${subject} are left out: ${shortage}`);
      continue;
    }
    const measured: Measured = { records: size.records, imports: [], latencies: [] };
    await measureOne(run, size, measured).catch((error: Error) => without('failed', error.message));
    // What was measured before something failed stays.
    if (measured.imports.length > 0) found.push(measured);
    run.workspace.throwIfAborted();
  }
  if (found.length === 0) return { comparisons };
  return { comparisons, tables: sizeTables(found, perSecond), plots: sizePlots(found) };
}

/** The figures of a size, as they are added. */
interface Measured extends SizeFigures {
  readonly imports: ImportFigures[];
  readonly latencies: SizeFigures['latencies'][number][];
}

/** Why there is no room for a size, as a sentence; `null` where there is. */
async function shortageFor({ workspace }: BenchRun, { records, imports }: SizeToTry): Promise<string | null> {
  const { memory, disk } = await freeRoom(workspace.folder);
  const inRedis = records * ((imports - 1) * bytesPerRecord.kept + bytesPerRecord.staged);
  const wanted = {
    memory: inRedis * spare.share + spare.bytes,
    disk: records * imports * bytesPerRecord.disk,
  };
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  if (memory < wanted.memory)
    return `it would take ${gigabytes(wanted.memory)} of memory, and ${gigabytes(memory)} are free`;
  if (disk < wanted.disk)
    return `it would take ${gigabytes(wanted.disk)} of disk, and ${gigabytes(disk)} are free`;
  return null;
}

async function measureOne(run: BenchRun, { records, imports }: SizeToTry, measured: Measured): Promise<void> {
  const server = await run.workspace.startRedis();
  const redis = await connectForWriting(server.url);
  const store = { redisUrl: server.url, keyPrefix: 'medref' };
  const [, folder = ''] = (await redis.config('GET', 'dir')) as string[];
  try {
    const sample = spreadSample(records);
    for (let nth = 0; nth < imports; nth++) {
      const figures = await importOnce(run, { redis, redisPid: server.pid, store }, { records, nth, sample });
      measured.imports.push(figures);
      run.say(importLine(figures));
    }
    await measureLatencies(run, { store, sample }, measured);
  } finally {
    redis.disconnect();
    await server.stop();
    // The next size may need the room.
    await rm(folder, { recursive: true, force: true });
  }
}

/** A few records of the whole list, as each of them is in every version of it. */
interface SpreadSample {
  readonly every: number;
  readonly products: Product[];
}

function spreadSample(records: number): SpreadSample {
  return { every: Math.max(1, Math.floor(records / sampleSize)), products: [] };
}

/** The list as it is for the nth time. */
function* versionOf(records: number, nth: number, sample: SpreadSample): Generator<Product> {
  let index = 0;
  for (const product of generatedProducts(records)) {
    if (nth === 0 && index % sample.every === 0) sample.products.push(product);
    const when = index % changedOneIn;
    yield 0 < when && when <= nth ? changed(product, when) : product;
    index++;
  }
}

function changed(product: Product, nth: number): Product {
  return { ...product, drugform: { ...product.drugform, name: `${product.drugform.name} ${nth}` } };
}

async function importOnce(
  run: BenchRun,
  { redis, redisPid, store }: { redis: Redis; redisPid: number; store: Store },
  { records, nth, sample }: { records: number; nth: number; sample: SpreadSample },
): Promise<ImportFigures> {
  run.say(`${records} records, import ${nth + 1}: generating the list`);
  const list = await writeList(run.workspace, versionOf(records, nth, sample), records);
  try {
    const publication = await watchPublications(redis);
    run.say(`${records} records, import ${nth + 1}: importing`);
    const { child, report } = await startImport(run.workspace, store, list.path);
    const importerPeak = peakMemoryUntil(child.pid, report);
    const { read, rejected, durationMs, version } = await report;
    if (read !== records || rejected > 0 || version === null)
      throw new Error(`the import read ${read} records of ${records} and rejected ${rejected}`);
    const publishMs = await publication.lastMs();
    await untilRedisRests(redis);
    return {
      ...{ records, keptBefore: nth, version, seconds: durationMs / 1000, publishMs },
      ...{ importerPeak: await importerPeak, redisResident: peakMemory(redisPid) },
      redisAfter: await memoryOf(redis, 'used_memory'),
      redisPeak: await memoryOf(redis, 'used_memory_peak'),
    };
  } finally {
    await list.remove();
  }
}

/** Until its file is written anew, and what was let go of is freed: neither is a cost of what comes then. */
async function untilRedisRests(redis: Redis): Promise<void> {
  const busy =
    /^(aof_rewrite_in_progress|rdb_bgsave_in_progress|aof_rewrite_scheduled|lazyfree_pending_objects):(?!0\r?$)/m;
  for (;;) {
    await sleep(500); // Buffers of clients that have gone are given back a little later.
    if (!busy.test(await redis.info())) return;
  }
}

async function memoryOf(redis: Redis, field: string): Promise<number> {
  return Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(await redis.info('memory'))?.[1]);
}

/** Latencies of each kind of request, one kind after the other. */
async function measureLatencies(
  run: BenchRun,
  { store, sample }: { store: Store; sample: SpreadSample },
  { records, imports, latencies }: Measured,
): Promise<void> {
  const key = await createKey(run.workspace, store);
  const api = await serve(run.workspace, store);
  const first = imports.length > 1 ? (imports[0] as ImportFigures).version : null;
  try {
    for (const [name, paths] of kinds(records, sample.products, first)) {
      const requests = requestsFor(paths, fieldsOf(key, 'gzip'));
      const load = { origin: api.address, requests, perSecond };
      await steadyLoad(load, sleep(warmUpMs));
      const sorted = await steadyLoad(load, sleep(run.sizes.idleSeconds * 1_000));
      const [p50, p99] = [percentile(sorted, 0.5), percentile(sorted, 0.99)];
      latencies.push({ name, p50, p99 });
      run.say(
        `${records.toLocaleString('en')} records, ${name}: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`,
      );
    }
  } finally {
    await api.stop();
  }
}

/** What is asked for; changes only where a second version has some. */
function kinds(records: number, products: readonly Product[], first: number | null): [string, string[]][] {
  const pages = spread(fullPages(records, 200));
  const changePages = spread(fullPages(records / changedOneIn, 200));
  return [
    ['page of 200', pages.map((page) => `/products?${page}`)],
    ['one record by its id', products.map(({ product }) => `/products/${product.id}`)],
    [
      'search by 3 letters, 10 a page',
      namePrefixes(products).map((it) => `/products?name=${encodeURIComponent(it)}&per-page=10`),
    ],
    ...(first === null
      ? []
      : [
          ['changes', changePages.map((page) => `/products/changes?since=${first}&${page}`)] as [
            string,
            string[],
          ],
        ]),
  ];
}

/** At most so many as are asked for, none before its turn comes: neighbours must not help each other by a cache. */
function spread(items: readonly string[]): string[] {
  const step = Math.max(1, Math.floor(items.length / sampleSize));
  return items.filter((_, i) => i % step === 0);
}
