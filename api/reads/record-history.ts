// In: the id of a record. Out: which versions changed it, and how, as far back as change sets are kept.

import type { Redis } from '../../shared/redis/connections.ts';
import type { CollectionKeys, PartKeys } from '../../shared/store/keys.ts';
import { type ChangeKind, kindOf } from './change-walk.ts';

/** What one version did to a record. */
export interface RecordChange {
  readonly version: number;
  readonly change: ChangeKind;
}

/** The history of one record. */
export interface RecordHistory {
  /** The latest first. */
  readonly changes: readonly RecordChange[];
  /** The version from which on changes are known; `null` where none are kept. */
  readonly since: number | null;
}

/** Reads which versions changed a record: one small read for each version whose changes are kept, all sent at once. */
export async function readRecordHistory(
  redis: Redis,
  { keys, part }: { readonly keys: CollectionKeys; readonly part: PartKeys },
  id: string,
): Promise<RecordHistory> {
  const versions = (await redis.zrevrange(keys.changeSets, 0, '-1')).map(Number);
  const texts = await Promise.all(versions.map((version) => redis.hget(part.changeSet(version), id)));
  const changes = versions.flatMap((version, n): RecordChange[] => {
    const [before = '-', after = '-'] = texts[n]?.split(' ') ?? [];
    return before === after ? [] : [{ version, change: kindOf({ before, after }) }];
  });
  return { changes, since: versions.at(-1) ?? null };
}
