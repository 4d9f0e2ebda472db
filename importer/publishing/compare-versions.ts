// What differs between two contents: counted by Redis in bounded batches, and kept as a change set.

import { formatOf } from '../../shared/formats/content-format.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import type { ChangeSetFacts } from '../../shared/store/change-sets.ts';
import type { PartKeys } from '../../shared/store/keys.ts';
import { rangeIds } from '../../shared/store/packed-ids.ts';
import type { BegunVersion } from '../../shared/store/scripts.ts';
import type { StoredContent, Version } from '../../shared/store/versions.ts';
import { type ComparedContent, compare } from '../scripts/compare.ts';

/** How many ids were added and removed, and how many records changed. */
export interface DiffCounts {
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

/** What differs between two versions. */
export interface VersionDiffCounts extends DiffCounts {
  /** What is known of the change set of each part; `null` where there was nothing to compare with. */
  readonly changeSets: readonly (ChangeSetFacts | null)[];
}

/** The part of a content that one collection has. */
interface ComparedPart extends ComparedContent {
  readonly totalCount: number;
}

/**
 * Compares two versions of a collection under a lock and stages their change sets, those of derived collections too.
 * @param before `null` when there is none: then everything is added, and there is no change set
 * @param after of a version, or as it was staged
 * @returns the counts of the collection itself
 * @throws LockLostError
 */
export async function compareVersions(
  redis: Redis,
  begun: BegunVersion,
  { before, after }: { before: Version | null; after: StoredContent },
): Promise<VersionDiffCounts> {
  if (!before) {
    const none = [null, ...Object.keys(after.derived).map(() => null)];
    return { added: after.totalCount, changed: 0, removed: 0, changeSets: none };
  }
  const { sum, ...own } = await compareParts(redis, begun, begun.keys, {
    before: comparedPart(before, before),
    after: comparedPart(after, after),
  });
  const changeSets: (ChangeSetFacts | null)[] = [changeSetFacts({ ...own, sum }, before)];
  for (const [name, facts] of Object.entries(after.derived)) {
    const known = before.derived[name];
    const found =
      known &&
      (await compareParts(redis, begun, begun.keys.derived(name), {
        before: comparedPart(before, known),
        after: comparedPart(after, facts),
      }));
    changeSets.push(found ? changeSetFacts(found, before) : null);
  }
  return { ...own, changeSets };
}

function comparedPart(
  { stored, ...its }: StoredContent,
  { totalCount }: { readonly totalCount: number },
): ComparedPart {
  return { name: stored, checkLength: formatOf(its).checkLength, totalCount };
}

/** Whether a content has the very records of a version, and so has all that is derived. */
export function isSame(before: Version, { checksum, derived }: StoredContent): boolean {
  const isSameDerived = Object.entries(derived).every(
    ([name, its]) => before.derived[name]?.checksum === its.checksum,
  );
  return checksum === before.checksum && isSameDerived;
}

/** The change sets of a version that is the same as the one before it, see {@link isSame}. */
export function emptyChangeSets(
  before: Version,
  { derived }: StoredContent,
): VersionDiffCounts['changeSets'] {
  const facts = changeSetFacts({ added: 0, changed: 0, removed: 0, sum: 0 }, before);
  return [facts, ...Object.keys(derived).map(() => facts)];
}

function changeSetFacts(
  { added, changed, removed, sum }: DiffCounts & { sum: number },
  { version: previous }: Version,
): ChangeSetFacts {
  return { size: added + changed + removed, sum, previous };
}

/** Compares two contents of a part, and stages the change set between them. */
async function compareParts(
  redis: Redis,
  begun: BegunVersion,
  part: PartKeys,
  { before, after }: { before: ComparedPart; after: ComparedPart },
): Promise<DiffCounts & { sum: number }> {
  const counts = { added: 0, changed: 0, removed: 0, sum: 0 };
  for (let range = 0; range * rangeIds < after.totalCount; range += 1) {
    const found = await compare(redis, begun, { part, walked: after, other: before, walks: 'after', range });
    counts.added += found.alone;
    counts.changed += found.different;
    counts.sum += found.sum;
  }
  counts.removed = before.totalCount - (after.totalCount - counts.added);
  let left = counts.removed;
  for (let range = 0; range * rangeIds < before.totalCount && left > 0; range += 1) {
    const found = await compare(redis, begun, { part, walked: before, other: after, walks: 'before', range });
    left -= found.alone;
    counts.sum += found.sum;
  }
  return { ...counts, sum: counts.sum % 2 ** 32 };
}
