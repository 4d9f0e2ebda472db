// What is live as an import finds it, and whether it can be compared with.

import type { CollectionKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { type LiveVersion, readLiveVersion, type Version } from '../../shared/versions.ts';
import { isDatedAhead } from './publication-time.ts';
import { isWhole } from './wholeness.ts';

/** The live version, `null` where nothing is live. */
export interface FoundLive {
  readonly live: LiveVersion | null;
  /** The same; `null` also where Redis has lost a part of it: with that nothing is compared, so that any import mends it. */
  readonly whole: LiveVersion | null;
  /** What an operator should know of it, as sentences. */
  readonly warnings: readonly string[];
}

/** Reads what is live. */
export async function findLive(redis: Redis, keys: CollectionKeys): Promise<FoundLive> {
  const live = await readLiveVersion(redis, keys);
  if (!live) return { live, whole: live, warnings: [] };
  const warnings = datedAheadWarning(live);
  if (await isWhole(redis, keys, live)) return { live, whole: live, warnings };
  const warning = `Version ${live.version} is not whole in Redis; it was not compared with.`;
  return { live, whole: null, warnings: [warning, ...warnings] };
}

/** What an operator should know of a version with a date that lies ahead; nothing of others. */
export function datedAheadWarning({ version, publishedAt }: Version): string[] {
  if (!isDatedAhead({ publishedAt }, new Date())) return [];
  return [
    `Version ${version} is dated ${publishedAt}, which lies ahead: the clock was wrong as it was published, or is wrong now. The next version is dated by the clock again.`,
  ];
}
