// In: the change sets of a collection, of which everything is read. Out: those that are not as they were kept.

import type { Redis } from '../../shared/redis/connections.ts';
import { readChangeSet } from '../../shared/store/change-sets.ts';
import type { CollectionKeys, PartKeys } from '../../shared/store/keys.ts';

/** A version whose change sets are not as they were kept. */
export interface DamagedChanges {
  readonly version: number;
  /** The version before it, which they are against. */
  readonly previous: number;
  /** What is wrong, as sentences. */
  readonly damage: readonly string[];
}

/** Reads all change sets by which changes are told: of each version but the oldest one. What is let go is not told of. */
export async function changeSetDamage(redis: Redis, keys: CollectionKeys): Promise<DamagedChanges[]> {
  const isSortedSet = (await redis.type(keys.changeSets)) === 'zset'; // Another type is reported with the keys.
  const numbers = isSortedSet ? (await redis.zrange(keys.changeSets, 0, '-1')).map(Number) : [];
  const damaged: DamagedChanges[] = [];
  for (const [n, version] of numbers.entries()) {
    const previous = numbers[n - 1];
    if (previous === undefined) continue;
    const damage: string[] = [];
    for (const part of keys.parts) damage.push(...(await partDamage(redis, part, { version, previous })));
    if (damage.length > 0 && (await isKept(redis, keys, previous)))
      damaged.push({ version, previous, damage });
  }
  return damaged;
}

/** A version that was let go meanwhile took the change set of the next one along. */
async function isKept(redis: Redis, { changeSets }: CollectionKeys, version: number): Promise<boolean> {
  return (await redis.zscore(changeSets, version)) !== null;
}

async function partDamage(
  redis: Redis,
  part: PartKeys,
  { version, previous }: { version: number; previous: number },
): Promise<string[]> {
  const key = part.changeSet(version);
  const facts = await readChangeSet(redis, key);
  if (!facts) return [`The change set ${key} is not as it was kept.`];
  if (facts.previous === undefined || facts.previous === previous) return [];
  return [`The change set ${key} is against version ${facts.previous}, not ${previous}.`];
}
