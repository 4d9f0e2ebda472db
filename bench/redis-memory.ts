// The row group `memory`: what the real list takes in Redis, in all and by kind of key, as times its JSON. In: a run.
// Out: its rows.

import { setTimeout as sleep } from 'node:timers/promises';
import { connectForWriting, type Redis } from '../shared/redis/connections.ts';
import type { BenchRun } from './bench-run.ts';
import { importProducts } from './medref.ts';
import { readProducts } from './peers/paged-list.ts';
import type { GroupResult, PlainFigure } from './results.ts';

/** Measures a Redis before and after an import. */
export async function measureMemory(run: BenchRun): Promise<GroupResult> {
  const server = await run.workspace.startRedis();
  const redis = await connectForWriting(server.url);
  try {
    const before = await usedMemory(redis);
    run.say('importing the real list into an empty Redis');
    await importProducts(run.workspace, { redisUrl: server.url, keyPrefix: 'medref' }, run.list);
    const after = await usedMemory(redis);
    const json = readProducts(run.list).reduce((sum, it) => sum + Buffer.byteLength(JSON.stringify(it)), 0);
    const times = (bytes: number) => ({ state: 'measured', values: [bytes / json] }) as const;
    const kinds = withoutSmall(await memoryByKind(redis), json);
    return {
      comparisons: [
        {
          ...{ subject: 'Redis: memory for the real list', against: 'its records as JSON', unit: 'times' },
          ...{ target: { atMost: 2.4 }, outcome: times(after - before) },
        },
      ],
      figures: [
        { name: 'records as JSON', unit: 'MB', outcome: { state: 'measured', values: [json / 1e6] } },
        ...kinds.map(
          ([kind, bytes]): PlainFigure => ({ name: `Redis: ${kind}`, unit: '× JSON', outcome: times(bytes) }),
        ),
      ],
    };
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

/** Asked until it stays: buffers of clients that have gone are given back a little later. */
async function usedMemory(redis: Redis): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let asked = 0; asked < 10; asked++) {
    const info = await redis.info('memory');
    least = Math.min(least, Number(/^used_memory:(\d+)/m.exec(info)?.[1]));
    await sleep(100);
  }
  return least;
}

/** Bytes by the last part of the keys' names, the most first. */
async function memoryByKind(redis: Redis): Promise<[kind: string, bytes: number][]> {
  const kinds = new Map<string, number>();
  for (const key of await redis.keys('*')) {
    const kind = kindOf(key);
    const bytes = Number(await redis.memory('USAGE', key, 'SAMPLES', 0));
    kinds.set(kind, (kinds.get(kind) ?? 0) + bytes);
  }
  return [...kinds].sort(([, a], [, b]) => b - a);
}

/** The kinds that take a hundredth of the JSON or more, and all others as one. */
function withoutSmall(kinds: readonly [kind: string, bytes: number][], json: number): [string, number][] {
  const isLarge = ([, bytes]: readonly [string, number]) => bytes >= json / 100;
  const rest = kinds.filter((it) => !isLarge(it)).reduce((sum, [, bytes]) => sum + bytes, 0);
  return [...kinds.filter(isLarge), ['all other keys', rest]];
}

/** `medref:{products}:7:records` → `records`. */
export function kindOf(key: string): string {
  const parts = key.split(':').filter((part) => !/^\d+$/.test(part));
  return parts[parts.length - 1] ?? key;
}
