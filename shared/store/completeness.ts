// Checks that Redis has every part of a content: each key must have the size in the document of its version.

import type { Redis } from '../redis/connections.ts';
import { isWrongType } from '../redis/failures.ts';
import { rangeIds } from './block.ts';
import type { CollectionKeys, PartKeys } from './keys.ts';
import type { KeySize } from './scripts.ts';
import type { ContentFacts, StoredContent } from './versions.ts';

/** Returns the keys of a content that are missing or have a wrong size, as sentences. */
export async function countDamage(
  redis: Redis,
  keys: CollectionKeys,
  content: StoredContent,
): Promise<string[]> {
  const unbuilt = partsOf(keys, content).flatMap(({ part, facts: { searches } }) => {
    const { prefix, exact, words } = part.content(content.content);
    const missing = Object.entries({ ...prefix, ...exact, words }).filter(
      ([search]) => searches[search] === undefined,
    );
    return missing.map(
      ([, key]) => `The search index ${key} is missing: an earlier release published this version.`,
    );
  });
  const measured = sizesOf(keys, content).map(async ({ key, command, size }) => {
    const found = await (command === 'HLEN' ? redis.hlen(key) : redis.zcard(key)).catch(nullIfWrongType);
    if (found === null) return `The Redis key ${key} has another type.`;
    return found === size ? null : `The Redis key ${key} has ${found} elements, not ${size}.`;
  });
  return [...unbuilt, ...(await Promise.all(measured)).filter((damage) => damage !== null)];
}

/** Returns every key of a content with its expected size. */
export function sizesOf(keys: CollectionKeys, content: StoredContent): KeySize[] {
  return partsOf(keys, content).flatMap(({ part, facts: { totalCount, blocks, searches } }) => {
    const its = part.content(content.content);
    return [
      { key: its.records, command: 'HLEN', size: totalCount },
      { key: its.order, command: 'HLEN', size: Math.ceil(totalCount / rangeIds) },
      { key: its.blocks, command: 'HLEN', size: blocks },
      { key: its.words, command: 'HLEN', size: searches['words'] ?? 0 },
      ...Object.entries(its.prefix).map(
        ([search, key]): KeySize => ({ key, command: 'ZCARD', size: searches[search] ?? 0 }),
      ),
      ...Object.entries(its.exact).map(
        ([search, key]): KeySize => ({ key, command: 'HLEN', size: searches[search] ?? 0 }),
      ),
    ];
  });
}

/** A content of a collection, or of a derived collection. */
export interface ContentPart {
  /** The name of the derived collection; `null`: the collection itself. */
  readonly derived: string | null;
  readonly part: PartKeys;
  readonly facts: ContentFacts;
}

/** Returns the parts of a content. */
export function partsOf(keys: CollectionKeys, content: StoredContent): ContentPart[] {
  const derived = Object.entries(content.derived).map(([name, facts]) => ({
    derived: name,
    part: keys.derived(name),
    facts,
  }));
  return [{ derived: null, part: keys, facts: content }, ...derived];
}

function nullIfWrongType(error: unknown): null {
  if (isWrongType(error)) return null;
  throw error;
}
