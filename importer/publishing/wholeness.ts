// Whether all of a content is in Redis: every key of it has the size that it must have.

import { rangeIds } from '../../shared/formats/packed-ids.ts';
import { pageEntries } from '../../shared/formats/search-page.ts';
import type { CollectionKeys, ContentKeys, ContentName, PartKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { isWrongType } from '../../shared/redis/damage.ts';
import type { ContentFacts, Version } from '../../shared/versions.ts';
import { type KeySize, StagedLostError } from '../scripts/publish.ts';

/** A content, and that of each collection which is derived from it. */
type StoredContent = ContentFacts & Pick<Version, 'derived'> & { readonly content: ContentName };

/** Whether all of a content is there, of a version or as it was staged. */
export async function isWhole(redis: Redis, keys: CollectionKeys, version: StoredContent): Promise<boolean> {
  const measured = await Promise.all(
    sizesOf(keys, version).map(async ({ key, command, size }) => {
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
export function sizesOf(keys: CollectionKeys, { content, derived, ...facts }: StoredContent): KeySize[] {
  const parts: (readonly [PartKeys, ContentFacts])[] = [
    [keys, facts],
    ...Object.entries(derived).map(([name, its]) => [keys.derived(name), its] as const),
  ];
  return parts.flatMap(([part, its]) => contentSizes(part.content(content), its));
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
