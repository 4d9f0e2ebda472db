// Searches the index of a content: finds how many records match, and the ids of one page. Any page of a result costs the same.

import { type Collection, valueAt } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import {
  compareMembers,
  hasPrefix,
  idOfMember,
  nameMember,
  prefixBounds,
  type Search,
} from '../../shared/store/search-index.ts';
import type { HmgetBatcher } from './hmget-batcher.ts';
import type { Span } from './records.ts';
import { MissingPartError, type ReadTarget } from './versions.ts';

/** What a search found. */
export interface Found {
  readonly totalCount: number;
  /** Decimal digits, in the order of the results. */
  readonly ids: readonly string[];
}

/** The names of a range in the sorted set: the rank of the first one, and how many there are. */
interface NameRange {
  readonly first: number;
  readonly count: number;
}

/** How many names of a range are read with one command. */
const namesAtOnce = 1_000;

/** Searches contents. */
export class SearchIndex {
  readonly #redis: Redis;
  readonly #hashes: HmgetBatcher;

  constructor(redis: Redis, hashes: HmgetBatcher) {
    this.#redis = redis;
    this.#hashes = hashes;
  }

  /** Returns a page of what matches a search. @throws MissingPartError if a part of the index, or a record, is missing */
  async find(target: ReadTarget, { name, exact }: Search, span: Span): Promise<Found> {
    const filters = Object.entries(exact);
    if (filters.length === 0) return this.#findNames(target, name ?? '', span);
    const lists = await Promise.all(filters.map(([search, value]) => this.#idsOf(target, search, value)));
    const [shortest = [], ...others] = lists.sort((a, b) => a.length - b.length);
    const sets = others.map((ids) => new Set(ids));
    const ids = shortest.filter((id) => sets.every((set) => set.has(id)));
    const found = name === undefined ? ids : await this.#sortByName(target, name, ids);
    return { totalCount: found.length, ids: found.slice(span.from, span.from + span.count) };
  }

  /** Returns the ids of the records that have a value, in list order. */
  async #idsOf({ content, version }: ReadTarget, search: string, value: string): Promise<string[]> {
    const key = content.exact[search] as string;
    const [[stored], size] = await Promise.all([this.#hashes.get(key, [value]), this.#redis.hlen(key)]);
    if (size !== version.exact[search]) throw new MissingPartError(key);
    return stored ? stored.toString('latin1').split(' ') : [];
  }

  async #rangeOf({ content, version }: ReadTarget, prefix: string): Promise<NameRange> {
    const { names: key } = content;
    const { min, max } = prefixBounds(prefix);
    const before = Buffer.concat([Buffer.from('('), min.subarray(1)]);
    const [size, first, count] = await Promise.all([
      this.#redis.zcard(key),
      this.#redis.zlexcount(key, '-', before),
      this.#redis.zlexcount(key, min, max),
    ]);
    if (size !== version.totalCount) throw new MissingPartError(key);
    return { first, count };
  }

  async #findNames(target: ReadTarget, prefix: string, { from, count }: Span): Promise<Found> {
    const range = await this.#rangeOf(target, prefix);
    const first = range.first + from;
    const until = range.first + Math.min(range.count, from + count);
    return {
      totalCount: range.count,
      ids: first < until ? await this.#idsBetween(target, first, until) : [],
    };
  }

  async #idsBetween({ content }: ReadTarget, first: number, until: number): Promise<string[]> {
    return (await this.#redis.zrange(content.names, first, String(until - 1))).map(idOfMember);
  }

  /** Returns those of some ids whose names have a prefix, by name. Reads whichever is less: their records, or all such names. */
  async #sortByName(target: ReadTarget, prefix: string, ids: readonly string[]): Promise<string[]> {
    const { first, count } = await this.#rangeOf(target, prefix);
    if (count >= ids.length) return this.#sortByRecords(target, prefix, ids);
    const wanted = new Set(ids);
    const found: string[] = [];
    for (let from = first; from < first + count; from += namesAtOnce) {
      const some = await this.#idsBetween(target, from, Math.min(from + namesAtOnce, first + count));
      found.push(...some.filter((id) => wanted.has(id)));
    }
    return found;
  }

  async #sortByRecords(
    { content, served }: ReadTarget,
    prefix: string,
    ids: readonly string[],
  ): Promise<string[]> {
    const members: string[] = [];
    for (let from = 0; from < ids.length; from += namesAtOnce) {
      const some = ids.slice(from, from + namesAtOnce);
      for (const [n, text] of (await this.#hashes.get(content.records, some)).entries()) {
        if (!text) throw new MissingPartError(content.records);
        members.push(nameMember(nameOf(served.collection, text), Number(some[n])));
      }
    }
    return members
      .filter((member) => hasPrefix(member, prefix))
      .sort(compareMembers)
      .map(idOfMember);
  }
}

function nameOf({ namePath }: Collection, text: Buffer): string {
  return valueAt(JSON.parse(text.toString()), namePath) as string;
}
