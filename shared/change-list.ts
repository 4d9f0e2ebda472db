// In: two versions of a collection. Out: which ids are not as they were, exactly, however many versions lie between.

import type { CollectionKeys } from './keys.ts';
import type { Redis } from './redis.ts';

/** One id that is not as it was. */
export interface ListedChange {
  readonly id: number;
  readonly change: 'added' | 'changed' | 'removed';
}

/** From which version, not included, to which, included. */
export interface ChangeSpan {
  readonly since: number;
  readonly until: number;
}

/**
 * Joins the change sets between two versions: an id is listed when its record before the first of them is not its
 * record after the last.
 * @returns the changes by id; `null` when `since` was never published, or lies further back than change sets are kept
 */
export async function readChangeList(
  redis: Redis,
  keys: CollectionKeys,
  { since, until }: ChangeSpan,
): Promise<readonly ListedChange[] | null> {
  const [first, ...later] = await redis.zrangebyscore(keys.changeSets, since, until);
  if (Number(first) !== since) return null;
  const digests = new Map<string, { readonly before: string; after: string }>();
  for (const number of later) {
    for (const [id, text] of Object.entries(await redis.hgetall(keys.changeSet(Number(number))))) {
      const [before = '-', after = '-'] = text.split(' ');
      const known = digests.get(id);
      if (known) known.after = after;
      else digests.set(id, { before, after });
    }
  }
  return [...digests]
    .filter(([, { before, after }]) => before !== after)
    .map(([id, { before, after }]): ListedChange => ({ id: Number(id), change: changeOf(before, after) }))
    .sort((a, b) => a.id - b.id);
}

function changeOf(before: string, after: string): ListedChange['change'] {
  if (before === '-') return 'added';
  return after === '-' ? 'removed' : 'changed';
}
