// What is live as an import finds it: whether it can be compared with, and whether it may stay as it is.

import { datedAheadWarning } from '../../shared/dated-ahead.ts';
import { currentFormat } from '../../shared/formats/content-format.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import type { CollectionKeys } from '../../shared/store/keys.ts';
import { type LiveVersion, readLiveVersion, type Version } from '../../shared/store/versions.ts';
import { contentDamage } from './content-damage.ts';

/** The live version, `null` where nothing is live. */
export interface FoundLive {
  readonly live: LiveVersion | null;
  /** The same; `null` also where a part of it is lost or damaged: with that nothing is compared, so that any import mends it. */
  readonly whole: LiveVersion | null;
  /** The same; `null` also where it is stored in the format of an older release, so that any import stores it anew. */
  readonly current: LiveVersion | null;
  /** What an operator should know of it, as sentences. */
  readonly warnings: readonly string[];
}

/** Reads what is live, all of it. */
export async function findLive(redis: Redis, keys: CollectionKeys): Promise<FoundLive> {
  const live = await readLiveVersion(redis, keys);
  if (!live) return { live, whole: live, current: live, warnings: [] };
  const warnings = datedAheadWarning(live);
  const damage = await firstDamage(redis, keys, live);
  if (damage === null)
    return { live, whole: live, current: live.format === currentFormat ? live : null, warnings };
  const warning = `Version ${live.version} is not whole in Redis; it was not compared with. ${damage}`;
  return { live, whole: null, current: null, warnings: [warning, ...warnings] };
}

/** The first thing that is found to be damaged of a version, or that a reader has found; `null` where it is whole. */
export async function firstDamage(
  redis: Redis,
  keys: CollectionKeys,
  version: Version,
): Promise<string | null> {
  const marked = await redis.hget(keys.damaged, String(version.stored));
  if (marked !== null) return marked;
  for await (const damage of contentDamage(redis, keys, version)) return damage;
  return null;
}
