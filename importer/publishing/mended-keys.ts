// In: the keys of a collection, under a lock. Out: those that say which versions there are, mended where they are damaged:
// of another type, or not the JSON text that was stored.

import type { CollectionKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { parseStored } from '../../shared/redis/damage.ts';
import type { Version } from '../../shared/versions.ts';
import type { Held } from '../scripts/held.ts';
import { mend } from '../scripts/mend.ts';

/** The type that each key of a collection has, but for the lock, contents and change sets. */
const types = {
  next: 'string',
  live: 'string',
  versions: 'zset',
  versionDocuments: 'hash',
  staged: 'set',
  imports: 'stream',
  rejects: 'list',
  hold: 'string',
  undone: 'set',
  checked: 'string',
  validators: 'string',
  changeSets: 'zset',
} as const satisfies Partial<Record<keyof CollectionKeys, string>>;

type TypedKey = keyof typeof types;

/**
 * Mends damaged keys. What is live is then the version that the pointer named, or else the latest that is kept.
 * @returns what was mended, as sentences; none where everything was in order
 * @throws LockLostError
 */
export async function mendKeys(redis: Redis, held: Held): Promise<string[]> {
  const { keys } = held;
  const warnings: string[] = [];
  const dropped = new Set<string>();
  const drop = (key: string, is: string) => {
    dropped.add(key);
    warnings.push(`The Redis key ${key} ${is}; it was mended.`);
  };
  const names = Object.keys(types) as TypedKey[];
  const foundTypes = await Promise.all(names.map((name) => redis.type(keys[name])));
  for (const [n, name] of names.entries()) {
    const [type, found] = [types[name], foundTypes[n]];
    if (found !== type && found !== 'none') drop(keys[name], `was a ${found} where a ${type} belongs`);
  }
  const readable = (name: TypedKey, text: string | null): text is string => {
    if (text === null) return false;
    if (isStored(keys[name], text)) return true;
    drop(keys[name], 'held text that medref did not store there');
    return false;
  };
  const textOf = async (name: TypedKey) => (dropped.has(keys[name]) ? null : redis.get(keys[name]));
  for (const name of ['hold', 'validators'] as const) readable(name, await textOf(name));
  if (!/^\d*$/.test((await textOf('next')) ?? '')) drop(keys.next, 'held something that is no number');
  const pointer = await textOf('live');
  const live = readable('live', pointer) ? pointer : null;

  const stored = dropped.has(keys.versionDocuments) ? {} : await redis.hgetall(keys.versionDocuments);
  const documents = new Map<number, string>();
  for (const [number, text] of Object.entries(stored)) {
    if (isStored(keys.versionDocuments, text)) documents.set(Number(number), text);
    else warnings.push(`The Redis key ${keys.versionDocuments} held no document of version ${number}.`);
  }
  if (live !== null) documents.set((JSON.parse(live) as Version).version, live);
  const latest = Math.max(0, ...documents.keys());
  const numbers = dropped.has(keys.versions) ? [] : await redis.zrange(keys.versions, 0, '-1');
  const isListed = numbers.length === documents.size && numbers.every((it) => documents.has(Number(it)));
  if (!isListed && warnings.length === 0)
    warnings.push(`The Redis key ${keys.versions} did not have the versions that are kept; it was mended.`);
  if (live === null && latest > 0 && warnings.length === 0)
    warnings.push(`The Redis key ${keys.live} was gone; version ${latest} was made live again.`);
  if (warnings.length === 0) return [];
  await mend(redis, held, {
    ...{ live: live ?? documents.get(latest) ?? '', documents },
    dropped: [...dropped],
  });
  return warnings;
}

function isStored(key: string, text: string): boolean {
  try {
    parseStored(key, text);
    return true;
  } catch {
    return false;
  }
}
