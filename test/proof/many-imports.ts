// A thousand imports in a row by one process. Out: what memory that process and Redis have on the way, which must not grow.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { startTestRedis } from '../support/redis-server.ts';
import { sending, startUpstreamServer } from '../support/upstream-server.ts';
import { productSubject } from './generations.ts';
import type { ImporterMemory } from './importer-process.ts';
import { type Finding, inDigits } from './reliability-page.ts';

const stops = [100, 250, 500, 750, 1_000];
const size = 300;

/** Change sets of 101 versions are kept, and 100 reports of imports: from here on nothing has a reason to grow. */
const flatFrom = 250;
/** By how many percent memory may differ between there and the end: what allocators and collectors leave lying about. */
const allowed = { redis: 2, heap: 5 };

const text = `One process imports a list of ${size} products again and again; two of three records are different each time, so that each import
publishes. Redis is measured when what has left the kept versions is gone, the importer when its garbage was collected.
Redis keeps the change sets of the last 101 versions, so it grows until then; from ${flatFrom} imports to ${inDigits(stops.at(-1) as number)}, Redis may grow by ${allowed.redis} % and
the importer's heap by ${allowed.heap} %. The heap is judged, not the whole process, whose size is as the allocator pleases; and
V8 does not optimize in this process, since the code that it compiles lies in the heap too.`;

/** What was measured at a stop. */
interface Measurement extends ImporterMemory {
  readonly redis: number;
  readonly keys: number;
}

/** Imports a thousand times. */
export async function proveManyImports(say: (progress: string) => void): Promise<Finding> {
  const subject = productSubject(size);
  const server = await startTestRedis();
  const redis = await connectForWriting(server.url);
  const upstream = await startUpstreamServer((response, request, nth) => {
    sending(`{"data":[${subject.texts(nth).join(',')}]}`)(response, request, nth);
  });
  const importer = startImporter(server.url, upstream.url());
  const measurements: Measurement[] = [];
  try {
    for (const stop of stops) {
      const memory = await importUntil(importer, stop);
      measurements.push({ ...memory, ...(await redisMemory(redis)) });
      say(`${stop} imports`);
    }
  } finally {
    importer.kill('SIGKILL');
    redis.disconnect();
    await Promise.all([upstream.close(), server.stop()]);
  }
  return {
    text,
    tables: [
      {
        head: ['Imports', 'Redis used_memory, KB', 'Redis keys', "Importer's heap, KB", "Importer's RSS, KB"],
        rows: measurements.map((it) => [
          it.imports,
          kilobytes(it.redis),
          it.keys,
          kilobytes(it.heap),
          kilobytes(it.rss),
        ]),
      },
    ],
    faults: growthFaults(measurements),
  };
}

function startImporter(redisUrl: string, upstream: URL): ChildProcess {
  const entry = fileURLToPath(new URL('importer-process.ts', import.meta.url));
  return fork(entry, [redisUrl, upstream.href], { execArgv: ['--expose-gc', '--import', 'tsx'] });
}

async function importUntil(importer: ChildProcess, stop: number): Promise<ImporterMemory> {
  importer.send(stop);
  const ended = once(importer, 'exit').then(([code]) => {
    throw new Error(`The importer ended with ${code} on its way to ${stop} imports.`);
  });
  const [memory] = await Promise.race([once(importer, 'message'), ended]);
  return memory as ImporterMemory;
}

/** What Redis holds when what has left is gone. */
async function redisMemory(redis: Redis): Promise<{ redis: number; keys: number }> {
  while (/^db0:.*expires=[1-9]/m.test(await redis.info('keyspace'))) await sleep(500);
  await redis.call('MEMORY', 'PURGE');
  await sleep(500);
  const info = await redis.info('memory');
  return { redis: Number(/^used_memory:(\d+)/m.exec(info)?.[1]), keys: await redis.dbsize() };
}

function growthFaults(measurements: readonly Measurement[]): string[] {
  const from = measurements.find(({ imports }) => imports === flatFrom) as Measurement;
  const to = measurements.at(-1) as Measurement;
  const faults: string[] = [];
  for (const [what, percent] of Object.entries(allowed) as [keyof typeof allowed, number][]) {
    const growth = (100 * (to[what] - from[what])) / from[what];
    if (!(growth <= percent))
      faults.push(`The memory of the ${what} grew by ${inDigits(growth, 1)} %, and may by ${percent} %.`);
  }
  if (from.keys !== to.keys) faults.push(`The number of Redis keys went from ${from.keys} to ${to.keys}.`);
  return faults;
}

function kilobytes(bytes: number): number {
  return Math.round(bytes / 1_000);
}
