// What a Redis holds under the key prefix of medref, as a file: kept of each format, so that later releases are tried on it.

import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Redis } from '../../shared/redis/connections.ts';

/** A key with what it holds, as the arguments of the command that writes it, in base64. */
interface StoredKey {
  readonly command: string;
  readonly key: string;
  readonly values: readonly string[];
}

/** The dump of what a release of a format has stored; `store-dump.ts` has made it. */
export function dumpFile(format: number): URL {
  return new URL(`../stored/format-${format}.json.gz`, import.meta.url);
}

/** Writes all that a Redis holds, but for locks and keys that expire, into a file. */
export async function writeDump(redis: Redis, file: URL): Promise<void> {
  const stored: StoredKey[] = [];
  for (const key of (await redis.keys('*')).sort()) {
    if ((await redis.pttl(key)) !== -1) continue;
    for (const { command, values } of await readKey(redis, key))
      stored.push({ command, key, values: values.map((value) => value.toString('base64')) });
  }
  writeFileSync(file, gzipSync(JSON.stringify(stored, null, 1), { level: 9 }));
}

/** Writes what a file has into a Redis. */
export async function loadDump(redis: Redis, file: URL): Promise<void> {
  const stored = JSON.parse(gunzipSync(readFileSync(file)).toString()) as StoredKey[];
  for (const { command, key, values } of stored)
    await redis.call(command, key, ...values.map((value) => Buffer.from(value, 'base64')));
}

async function readKey(redis: Redis, key: string): Promise<{ command: string; values: Buffer[] }[]> {
  switch (await redis.type(key)) {
    case 'string':
      return [{ command: 'SET', values: [(await redis.getBuffer(key)) as Buffer] }];
    case 'hash':
      return [{ command: 'HSET', values: await flat(redis, 'HGETALL', key) }];
    case 'set':
      return [{ command: 'SADD', values: await flat(redis, 'SMEMBERS', key) }];
    case 'list':
      return [{ command: 'RPUSH', values: await flat(redis, 'LRANGE', key, '0', '-1') }];
    case 'zset': {
      const members = await flat(redis, 'ZRANGE', key, '0', '-1', 'WITHSCORES');
      const pairs = members.flatMap((_, n) => (n % 2 === 0 ? [members[n + 1], members[n]] : []));
      return [{ command: 'ZADD', values: pairs as Buffer[] }];
    }
    default: {
      const entries = (await redis.xrangeBuffer(key, '-', '+')) as [Buffer, Buffer[]][];
      return entries.map(([id, fields]) => ({ command: 'XADD', values: [id, ...fields] }));
    }
  }
}

async function flat(redis: Redis, command: string, ...args: string[]): Promise<Buffer[]> {
  const reply = (await redis.callBuffer(command, ...args)) as (Buffer | Buffer[])[];
  return reply.flat(); // With scores, members come in pairs.
}
