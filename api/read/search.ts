// Searches the index of a content: finds how many records match, and the ids of one page. Any page of a result costs the same.

import { type PrefixSearch, valueAt } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import {
  compareMembers,
  fold,
  idOfMember,
  memberOf,
  prefixBounds,
  type Search,
} from '../../shared/store/search-index.ts';
import { hasWords } from '../../shared/store/word-index.ts';
import type { ContentCache, HmgetBatcher, Span } from './records.ts';
import { MissingPartError, type ReadTarget } from './versions.ts';
import { type Found, WordIndex } from './words.ts';

/** One prefix search of a request: its name, and the prefix. */
type Prefix = readonly [search: string, text: string];

/** How much memory an id takes, in bytes. */
const idSize = 32;

/** How many texts of a range, or records, one command reads. */
const readAtOnce = 1_000;

/** Searches contents. Methods throw MissingPartError if a part of the index, or a record, is missing. */
export class SearchIndex {
  readonly #redis: Redis;
  readonly #hashes: HmgetBatcher;
  readonly #cache: ContentCache;
  readonly #words: WordIndex;

  constructor(redis: Redis, hashes: HmgetBatcher, cache: ContentCache) {
    this.#redis = redis;
    this.#hashes = hashes;
    this.#cache = cache;
    this.#words = new WordIndex(hashes, cache);
  }

  /**
   * Returns a page of the matching records: in the order of the first prefix, with words in the order of names, otherwise in the
   * order of the list.
   */
  async find(target: ReadTarget, search: Search, span: Span): Promise<Found> {
    const name = `${target.contentName} search ${JSON.stringify([search, span])}`;
    return this.#cache.get(name, async () => {
      const value = await this.#find(target, search, span);
      return { value, size: 2 * name.length + idSize * (value.ids.length + 1) };
    });
  }

  async #find(target: ReadTarget, { prefix, exact, words, flags }: Search, span: Span): Promise<Found> {
    const prefixes = Object.entries(prefix);
    const values = Object.entries(exact);
    const flagged = Object.entries(flags);
    const [first] = prefixes;
    if (values.length === 0 && prefixes.length <= 1) {
      if (first && flagged.length === 0) return this.#pageByPrefix(target, first, span);
      const range = first && (await this.#rangeOf(target, first));
      return this.#words.find(target, { words, flags: flagged, range }, span);
    }
    let ids = values.length > 0 ? await this.#idsByValues(target, values) : null;
    if (words.length > 0)
      ids = await this.#sortByText(target, 'name', ids ?? [], (text) => hasWords(text, words));
    for (const one of prefixes.reverse()) ids = await this.#idsByPrefix(target, one, ids);
    const found = flagged.length > 0 ? await this.#withFlags(target, ids ?? [], flagged) : (ids ?? []);
    return { totalCount: found.length, ids: found.slice(span.from, span.from + span.count) };
  }

  /** Returns the ids of the records that have all of some values, in list order. */
  async #idsByValues(target: ReadTarget, values: readonly [search: string, value: string][]) {
    const lists = await Promise.all(values.map(([search, value]) => this.#idsByValue(target, search, value)));
    const [shortest = [], ...others] = lists.sort((a, b) => a.length - b.length);
    const sets = others.map((ids) => new Set(ids));
    return shortest.filter((id) => sets.every((set) => set.has(id)));
  }

  async #idsByValue({ content, version }: ReadTarget, search: string, value: string): Promise<string[]> {
    const key = content.exact[search] as string;
    const [[stored], size] = await Promise.all([this.#hashes.get(key, [value]), this.#redis.hlen(key)]);
    if (size !== version.searches[search]) throw new MissingPartError(key);
    return stored ? stored.toString('latin1').split(' ') : [];
  }

  async #pageByPrefix(target: ReadTarget, prefix: Prefix, { from, count }: Span): Promise<Found> {
    const range = await this.#rangeOf(target, prefix);
    const first = range.first + from;
    const until = range.first + Math.min(range.count, from + count);
    const ids = first < until ? await this.#idsBetween(range.key, first, until) : [];
    return { totalCount: range.count, ids };
  }

  /** Finds the rank of the first text with a prefix, and how many texts have it. */
  async #rangeOf({ content, version }: ReadTarget, [search, text]: Prefix) {
    const key = content.prefix[search] as string;
    const { before, min, max } = prefixBounds(text);
    const [size, first, count] = await Promise.all([
      this.#redis.zcard(key),
      this.#redis.zlexcount(key, '-', before),
      this.#redis.zlexcount(key, min, max),
    ]);
    if (size !== version.searches[search]) throw new MissingPartError(key);
    return { key, first, count };
  }

  async #idsBetween(key: string, first: number, until: number): Promise<string[]> {
    return (await this.#redis.zrange(key, first, String(until - 1))).map(idOfMember);
  }

  /**
   * Returns the ids whose texts start with a prefix, ordered by text; `ids` limits them. Reads the smaller of the two:
   * the records of those ids, or all texts with the prefix.
   */
  async #idsByPrefix(target: ReadTarget, prefix: Prefix, ids: readonly string[] | null): Promise<string[]> {
    const { key, first, count } = await this.#rangeOf(target, prefix);
    const [search, text] = prefix;
    const starts = fold(text);
    if (ids && ids.length <= count)
      return this.#sortByText(target, search, ids, (its) => fold(its).startsWith(starts));
    const wanted = ids && new Set(ids);
    const found: string[] = [];
    for (let from = first; from < first + count; from += readAtOnce) {
      const some = await this.#idsBetween(key, from, Math.min(from + readAtOnce, first + count));
      found.push(...some.filter((id) => wanted?.has(id) ?? true));
    }
    return found;
  }

  /** Returns the ids of the records with some flags. Reads the records. */
  async #withFlags(
    { content, served }: ReadTarget,
    ids: readonly string[],
    flags: readonly [search: string, value: boolean][],
  ): Promise<string[]> {
    const { flagSearches } = served.collection;
    const found: string[] = [];
    for (let from = 0; from < ids.length; from += readAtOnce) {
      const some = ids.slice(from, from + readAtOnce);
      for (const [n, text] of (await this.#hashes.get(content.records, some)).entries()) {
        if (!text) throw new MissingPartError(content.records);
        const record: unknown = JSON.parse(text.toString());
        if (flags.every(([search, value]) => flagSearches[search]?.valueOf(record) === value))
          found.push(some[n] as string);
      }
    }
    return found;
  }

  /** Returns the ids whose texts match, ordered by text. Reads the records. */
  async #sortByText(
    { content, served }: ReadTarget,
    search: string,
    ids: readonly string[],
    matches: (text: string) => boolean,
  ): Promise<string[]> {
    const { path } = served.collection.prefixSearches[search] as PrefixSearch;
    const members: string[] = [];
    for (let from = 0; from < ids.length; from += readAtOnce) {
      const some = ids.slice(from, from + readAtOnce);
      for (const [n, record] of (await this.#hashes.get(content.records, some)).entries()) {
        if (!record) throw new MissingPartError(content.records);
        const text = valueAt(JSON.parse(record.toString()), path);
        if (typeof text === 'string' && matches(text)) members.push(memberOf(text, Number(some[n])));
      }
    }
    return members.sort(compareMembers).map(idOfMember);
  }
}
