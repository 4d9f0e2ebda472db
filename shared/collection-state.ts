// In: a collection. Out: its state as Redis has it: what is live, its last imports, its lock, its hold, its damage.

import type { ServedCollection } from './collections/define.ts';
import { checkedAheadWarning, datedAheadWarning, knownTime } from './dated-ahead.ts';
import { type HistoryEntry, readHistory } from './ended-imports.ts';
import { type LockHolder, readLockHolder } from './lock-holder.ts';
import type { Redis } from './redis/connections.ts';
import { type Hold, readHold } from './schedule-hold.ts';
import { servedKeys } from './store/keys.ts';
import { formatProblem, readLiveVersion, type Version, versionOf } from './store/versions.ts';

/** How many imports are shown. */
const lastImports = 5;

/** A collection as Redis has it. */
export interface CollectionState {
  readonly collection: string;
  /** The collection whose imports these are; `null`: its own. */
  readonly derivedFrom: string | null;
  readonly live: (Omit<Version, 'profile' | 'derived'> & { readonly ageSeconds: number }) | null;
  /** When upstream was last found to be as the live version, or was made so; `null` if that is dated in the future. */
  readonly checkedAt: string | null;
  /** Latest first. */
  readonly lastImports: readonly HistoryEntry[];
  readonly lock: LockHolder | null;
  readonly hold: Hold | null;
  /** What readers have found damaged, as sentences. */
  readonly damage: readonly string[];
  /** What an operator should look at, as sentences. */
  readonly warnings: readonly string[];
}

/** Reads the state of a collection that is served. */
export async function readState(
  redis: Redis,
  keyPrefix: string,
  served: ServedCollection,
): Promise<CollectionState> {
  const { keys } = servedKeys(keyPrefix, served);
  const [found, checked, history, lock, hold, marks] = await Promise.all([
    readLiveVersion(redis, keys),
    redis.get(keys.checked),
    readHistory(redis, keys, lastImports),
    readLockHolder(redis, keys),
    readHold(redis, keys),
    redis.hvals(keys.damaged),
  ]);
  const problem = found && formatProblem(served.source.name, found);
  const live = found && problem === null ? versionOf(served, found) : null;
  return {
    collection: served.collection.name,
    derivedFrom: served.collection === served.source ? null : served.source.name,
    ...{ live: live && withAge(live), checkedAt: knownTime(checked), lastImports: history, lock, hold },
    damage: marks.sort(),
    warnings: [
      ...(problem === null ? [] : [problem]),
      ...(live ? datedAheadWarning(live) : []),
      ...checkedAheadWarning(checked),
    ],
  };
}

function withAge({ document, profile, derived, ...version }: Version & { document: string }) {
  return {
    ...version,
    ageSeconds: Math.max(0, Math.round((Date.now() - Date.parse(version.publishedAt)) / 1000)),
  };
}
