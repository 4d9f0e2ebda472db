// In: two versions of a collection. Out: which ids are not as they were, exactly, however many versions lie between.

import type { CollectionKeys, PartKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';

/** What became of an id between two versions. */
export type ChangeKind = 'added' | 'changed' | 'removed';

/** The ids that are not as they were, by id, and what became of each; 9 bytes an id. */
export interface ChangeList {
  readonly ids: Float64Array;
  /** What became of the id at the same index: an index of {@link changeKinds}. */
  readonly kinds: Uint8Array;
}

export const changeKinds: readonly ChangeKind[] = ['added', 'changed', 'removed'];

/** From which version, not included, to which, included. */
export interface ChangeSpan {
  readonly since: number;
  readonly until: number;
}

/** The field of a change set that holds how many ids it has. */
const sizeField = '#';

/** How many fields of a change set are read with one command. */
const atOnce = 1_000;

/**
 * Joins the change sets between two versions: an id is listed when its record before the first of them is not its
 * record after the last.
 * @returns `null` when `since` was never published, lies further back than change sets are kept, or Redis has lost one
 */
export async function joinChangeSets(
  redis: Redis,
  { keys, part }: { readonly keys: CollectionKeys; readonly part: PartKeys },
  { since, until }: ChangeSpan,
): Promise<ChangeList | null> {
  const [first, ...later] = await redis.zrangebyscore(keys.changeSets, since, until);
  if (Number(first) !== since) return null;
  const digests = new Map<string, { readonly before: string; after: string }>();
  for (const number of later) {
    const isWhole = await readChangeSet(redis, part.changeSet(Number(number)), (id, text) => {
      const [before = '-', after = '-'] = text.split(' ');
      const known = digests.get(id);
      if (known) known.after = after;
      else digests.set(id, { before, after });
    });
    if (!isWhole) return null;
  }
  return listOf(digests);
}

/** Whether changes since a version can be asked for at all. */
export async function isKeptForChanges(redis: Redis, keys: CollectionKeys, since: number): Promise<boolean> {
  return (await redis.zscore(keys.changeSets, since)) !== null;
}

/** Reads a change set by parts, since it may be large. @returns whether all of it is there */
async function readChangeSet(
  redis: Redis,
  key: string,
  each: (id: string, digests: string) => void,
): Promise<boolean> {
  let size: number | null = null;
  const seen = new Set<string>();
  let cursor = '0';
  do {
    const [next, fields] = await redis.hscan(key, cursor, 'COUNT', atOnce);
    for (let i = 0; i < fields.length; i += 2) {
      const [id, text] = fields.slice(i, i + 2) as [string, string];
      if (id === sizeField) size = Number(text);
      else if (!seen.has(id)) {
        seen.add(id);
        each(id, text);
      }
    }
    cursor = next;
  } while (cursor !== '0');
  return seen.size === size;
}

function listOf(
  digests: ReadonlyMap<string, { readonly before: string; readonly after: string }>,
): ChangeList {
  const changes = [...digests]
    .filter(([, { before, after }]) => before !== after)
    .map(([id, { before, after }]) => [Number(id), changeKinds.indexOf(kindOf(before, after))] as const)
    .sort(([a], [b]) => a - b);
  return {
    ids: Float64Array.from(changes, ([id]) => id),
    kinds: Uint8Array.from(changes, ([, kind]) => kind),
  };
}

function kindOf(before: string, after: string): ChangeKind {
  if (before === '-') return 'added';
  return after === '-' ? 'removed' : 'changed';
}
