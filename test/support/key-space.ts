// Reads all data of a Redis in a form that tests can compare, and restores it.

import type { Redis } from '../../shared/redis/connections.ts';

/** Reads every key with its value; the order of members in hashes and sets makes no difference. */
export async function readKeySpace(redis: Redis): Promise<Record<string, unknown>> {
  const names = (await redis.keys('*')).sort();
  const values = await Promise.all(names.map((name) => readValue(redis, name)));
  return Object.fromEntries(names.map((name, i) => [name, values[i]]));
}

async function readValue(redis: Redis, name: string): Promise<unknown> {
  switch (await redis.type(name)) {
    case 'string':
      return redis.get(name);
    case 'hash':
      return redis.hgetall(name);
    case 'set':
      return (await redis.smembers(name)).sort();
    case 'zset':
      return redis.zrange(name, 0, '-1', 'WITHSCORES');
    case 'list':
      return redis.lrange(name, 0, -1);
    default:
      return redis.xrange(name, '-', '+');
  }
}

/** Keeps a copy of every key. @returns a function that restores exactly these keys and deletes all others */
export async function keepKeySpace(redis: Redis): Promise<() => Promise<void>> {
  const names = await redis.keys('*');
  const copies = await Promise.all(
    names.map(
      async (name) => [name, (await redis.dumpBuffer(name)) as Buffer, await redis.pttl(name)] as const,
    ),
  );
  return async () => {
    const restored = redis.pipeline().flushall();
    for (const [name, copy, ttl] of copies) restored.restore(name, Math.max(ttl, 0), copy);
    for (const [error] of (await restored.exec()) ?? []) if (error) throw error;
  };
}
