// Whether all of a content is in Redis: every key of it has the size that it must have.

import { pageEntries } from '../../shared/formats/search-page.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { isWrongType } from '../../shared/redis/damage.ts';
import type { CollectionKeys, ContentKeys, PartKeys } from '../../shared/store/keys.ts';
import { rangeIds } from '../../shared/store/packed-ids.ts';
import { type KeySize, StagedLostError } from '../../shared/store/scripts.ts';
import type { ContentFacts, StoredContent } from '../../shared/store/versions.ts';

/** Whether all of a content is there, of a version or as it was staged. */
export async function isWhole(redis: Redis, keys: CollectionKeys, content: StoredContent): Promise<boolean> {
  const measured = await Promise.all(
    sizesOf(keys, content).map(async ({ key, command, size }) => {
      const found = await (command === 'HLEN' ? redis.hlen(key) : redis.zcard(key)).catch(noneOfWrongType);
      return found === size;
    }),
  );
  return !measured.includes(false);
}

/** A key of another type holds nothing of a content. */
function noneOfWrongType(error: unknown): number {
  if (isWrongType(error)) return -1;
  throw error;
}

/** What Redis has lost of what was staged would look like records that upstream has lost. @throws StagedLostError */
export async function requireWhole(redis: Redis, keys: CollectionKeys, staged: StoredContent): Promise<void> {
  if (!(await isWhole(redis, keys, staged))) throw new StagedLostError();
}

/** Every key of a content with the size that it must have. */
export function sizesOf(keys: CollectionKeys, content: StoredContent): KeySize[] {
  return partsOf(keys, content).flatMap(({ part, facts }) =>
    contentSizes(part.content(content.stored), facts),
  );
}

/** What a content has of one collection. */
export interface ContentPart {
  /** Of the derived collection; `null`: of the collection itself. */
  readonly derived: string | null;
  readonly part: PartKeys;
  readonly facts: ContentFacts;
}

/** The parts of a content: the collection's own, then those that are derived. */
export function partsOf(keys: CollectionKeys, content: StoredContent): ContentPart[] {
  const derived = Object.entries(content.derived).map(([name, facts]) => ({
    ...{ derived: name, part: keys.derived(name), facts },
  }));
  return [{ derived: null, part: keys, facts: content }, ...derived];
}

function contentSizes(keys: ContentKeys, { totalCount, blocks, entries }: ContentFacts): KeySize[] {
  const pages = Math.ceil(entries / pageEntries);
  return [
    { key: keys.records, command: 'HLEN', size: totalCount },
    { key: keys.order, command: 'HLEN', size: Math.ceil(totalCount / rangeIds) },
    { key: keys.blocks, command: 'HLEN', size: blocks },
    { key: keys.entries, command: 'HLEN', size: pages },
    { key: keys.fences, command: 'ZCARD', size: pages },
  ];
}
