// What differs between two contents: counted by Redis in bounded batches, and kept as a change set.

import type { ContentName } from './keys.ts';
import type { Redis } from './redis.ts';
import { compare, type Staging } from './scripts.ts';

/** A content and how many records it has. */
export interface SizedContent {
  readonly content: ContentName;
  readonly totalCount: number;
}

/** How many ids were added and removed, and how many records changed. */
export interface DiffCounts {
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

const batch = 500;

/**
 * Compares two contents under a lock and stages the change set between them.
 * @param before `null` when there is none: then everything is added, and there is no change set
 * @throws LockLostError
 */
export async function compareContents(
  redis: Redis,
  staging: Staging,
  { before, after }: { before: SizedContent | null; after: SizedContent },
): Promise<DiffCounts> {
  if (!before) return { added: after.totalCount, changed: 0, removed: 0 };
  let added = 0;
  let changed = 0;
  for (const range of ranges(after.totalCount)) {
    const found = await compare(redis, staging, {
      ...{ walked: after.content, other: before.content, walks: 'after', ...range },
    });
    added += found.alone;
    changed += found.different;
  }
  const removed = before.totalCount - (after.totalCount - added);
  let left = removed;
  for (const range of ranges(before.totalCount)) {
    if (left === 0) break;
    const found = await compare(redis, staging, {
      ...{ walked: before.content, other: after.content, walks: 'before', ...range },
    });
    left -= found.alone;
  }
  return { added, changed, removed };
}

interface Range {
  readonly first: number;
  readonly last: number;
}

function* ranges(totalCount: number): Generator<Range, void> {
  for (let first = 0; first < totalCount; first += batch) yield { first, last: first + batch - 1 };
}
