// What differs between two contents: counted by Redis in bounded batches, and kept as a change set.

import { rangeIds } from '../../shared/formats/packed-ids.ts';
import type { ContentName, PartKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { compare } from '../scripts/compare.ts';
import type { BegunVersion } from '../scripts/held.ts';

/** A content and how many records it has. */
interface SizedContent {
  readonly content: ContentName;
  readonly totalCount: number;
}

/** How many ids were added and removed, and how many records changed. */
export interface DiffCounts {
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

/** A version, staged or published, with what is derived. */
export interface SizedVersion extends SizedContent {
  readonly derived: Readonly<Record<string, { readonly totalCount: number }>>;
}

/** What differs between two versions. */
export interface VersionDiffCounts extends DiffCounts {
  /** Of each part of the versions, how many ids its change set has; `null` where there was nothing to compare with. */
  readonly changeSets: readonly (number | null)[];
}

/**
 * Compares two versions of a collection under a lock and stages their change sets, those of derived collections too.
 * @param before `null` when there is none: then everything is added, and there is no change set
 * @returns the counts of the collection itself
 * @throws LockLostError
 */
export async function compareVersions(
  redis: Redis,
  begun: BegunVersion,
  { before, after }: { before: SizedVersion | null; after: SizedVersion },
): Promise<VersionDiffCounts> {
  const own = await compareContents(redis, begun, { part: begun.keys, before, after });
  const changeSets = [before && sizeOf(own)];
  for (const [name, { totalCount }] of Object.entries(after.derived)) {
    const known = before?.derived[name];
    const older = before && known ? { content: before.content, totalCount: known.totalCount } : null;
    const counts = await compareContents(redis, begun, {
      ...{ part: begun.keys.derived(name), before: older, after: { content: after.content, totalCount } },
    });
    changeSets.push(older && sizeOf(counts));
  }
  return { ...own, changeSets };
}

function sizeOf({ added, changed, removed }: DiffCounts): number {
  return added + changed + removed;
}

/** Compares two contents of a part, and stages the change set between them. */
async function compareContents(
  redis: Redis,
  begun: BegunVersion,
  { part, before, after }: { part: PartKeys; before: SizedContent | null; after: SizedContent },
): Promise<DiffCounts> {
  if (!before) return { added: after.totalCount, changed: 0, removed: 0 };
  const counts = { added: 0, changed: 0, removed: 0 };
  for (let range = 0; range * rangeIds < after.totalCount; range += 1) {
    const found = await compare(redis, begun, {
      ...{ part, walked: after.content, other: before.content, walks: 'after', range },
    });
    counts.added += found.alone;
    counts.changed += found.different;
  }
  counts.removed = before.totalCount - (after.totalCount - counts.added);
  let left = counts.removed;
  for (let range = 0; range * rangeIds < before.totalCount && left > 0; range += 1) {
    const found = await compare(redis, begun, {
      ...{ part, walked: before.content, other: after.content, walks: 'before', range },
    });
    left -= found.alone;
  }
  return counts;
}
