// Searches the index of a content: finds how many records match and the ids of one page, at the same cost for any page.

import { type Collection, type PrefixSearch, valueAt } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import type { ContentKeys } from '../../shared/store/keys.ts';
import {
  compareMembers,
  hasPrefix,
  idOfMember,
  memberOf,
  prefixBounds,
  type Search,
} from '../../shared/store/search-index.ts';
import type { ContentFacts } from '../../shared/store/versions.ts';
import type { HashReads } from './hash-reads.ts';

/** What a search found. */
export interface Found {
  readonly totalCount: number;
  /** Decimal digits, in the order of the results. */
  readonly ids: readonly string[];
}

/** The index of one content, and how its records are read. */
export interface SearchedContent {
  readonly redis: Redis;
  readonly hashes: HashReads;
  readonly collection: Collection;
  readonly keys: ContentKeys;
  readonly facts: ContentFacts;
}

interface Span {
  readonly from: number;
  readonly count: number;
}

/** One prefix search of a request. */
interface Prefix {
  readonly search: string;
  readonly text: string;
}

/** How many texts of a range, or records, are read with one command. */
const readAtOnce = 1_000;

/** Searches a content; the order is that of the first prefix, or of the list. @returns `null` if a part of it is missing */
export async function searchContent(
  content: SearchedContent,
  { prefix, exact }: Search,
  span: Span,
): Promise<Found | null> {
  const prefixes = Object.entries(prefix).map(([search, text]): Prefix => ({ search, text }));
  const values = Object.entries(exact);
  const [first, ...others] = prefixes;
  if (values.length === 0 && first && others.length === 0) return searchByPrefix(content, first, span);
  let ids = values.length === 0 ? null : await idsOfValues(content, values);
  if (values.length > 0 && ids === null) return null;
  for (const [n, one] of prefixes.entries()) {
    const found = await idsByPrefix(content, one, ids);
    if (found === null) return null;
    const matching = n === 0 ? null : new Set(found);
    ids = matching === null ? found : ((ids as string[]).filter((id) => matching.has(id)) as string[]);
  }
  const found = ids as string[];
  return { totalCount: found.length, ids: found.slice(span.from, span.from + span.count) };
}

/** Returns the ids that have all of some values, in list order. */
async function idsOfValues(
  content: SearchedContent,
  values: readonly (readonly [search: string, value: string])[],
): Promise<string[] | null> {
  const lists = await Promise.all(values.map((value) => idsOfValue(content, value)));
  const complete = lists.filter((list) => list !== null);
  if (complete.length < lists.length) return null;
  const [shortest = [], ...others] = complete.sort((a, b) => a.length - b.length);
  const sets = others.map((ids) => new Set(ids));
  return shortest.filter((id) => sets.every((set) => set.has(id)));
}

async function idsOfValue(
  { redis, hashes, keys, facts }: SearchedContent,
  [search, value]: readonly [search: string, value: string],
): Promise<string[] | null> {
  const key = keys.exact[search] as string;
  const [[stored], size] = await Promise.all([hashes.get(key, [value]), redis.hlen(key)]);
  if (size !== facts.searches[search]) return null;
  return stored ? stored.toString('latin1').split(' ') : [];
}

async function searchByPrefix(content: SearchedContent, prefix: Prefix, span: Span): Promise<Found | null> {
  const range = await rangeOf(content, prefix);
  if (!range) return null;
  const { key, first, count } = range;
  const until = first + Math.min(count, span.from + span.count);
  if (first + span.from >= until) return { totalCount: count, ids: [] };
  const members = await content.redis.zrange(key, first + span.from, String(until - 1));
  return { totalCount: count, ids: members.map(idOfMember) };
}

/** Finds the rank of the first text with a prefix, and how many texts have it. */
async function rangeOf({ redis, keys, facts }: SearchedContent, { search, text }: Prefix) {
  const key = keys.prefix[search] as string;
  const { before, min, max } = prefixBounds(text);
  const [size, first, count] = await Promise.all([
    redis.zcard(key),
    redis.zlexcount(key, '-', before),
    redis.zlexcount(key, min, max),
  ]);
  return size === facts.searches[search] ? { key, first, count } : null;
}

/**
 * Returns the ids that have a prefix, by their texts. Of given ids it reads the records, or all texts with the prefix if
 * they are fewer.
 */
async function idsByPrefix(
  content: SearchedContent,
  prefix: Prefix,
  ids: readonly string[] | null,
): Promise<string[] | null> {
  const range = await rangeOf(content, prefix);
  if (!range) return null;
  if (ids !== null && ids.length <= range.count) return sortedIds(content, prefix, ids);
  const wanted = ids && new Set(ids);
  const found: string[] = [];
  const until = range.first + range.count;
  for (let from = range.first; from < until; from += readAtOnce) {
    const to = Math.min(from + readAtOnce, until) - 1;
    for (const member of await content.redis.zrange(range.key, from, String(to))) {
      const id = idOfMember(member);
      if (wanted === null || wanted.has(id)) found.push(id);
    }
  }
  return found;
}

async function sortedIds(
  { hashes, keys, collection }: SearchedContent,
  { search, text }: Prefix,
  ids: readonly string[],
): Promise<string[] | null> {
  const { path } = collection.prefixSearches[search] as PrefixSearch;
  const members: string[] = [];
  for (let from = 0; from < ids.length; from += readAtOnce) {
    const some = ids.slice(from, from + readAtOnce);
    for (const [n, record] of (await hashes.get(keys.records, some)).entries()) {
      if (!record) return null;
      const its = valueAt(JSON.parse(record.toString()), path);
      if (typeof its === 'string') members.push(memberOf(its, Number(some[n])));
    }
  }
  return members
    .filter((member) => hasPrefix(member, text))
    .sort(compareMembers)
    .map(idOfMember);
}
