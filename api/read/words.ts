// Searches the index of words and flags of a content. A search marks the matching records, so any page costs the same.

import { rangeIds, unpackId } from '../../shared/store/block.ts';
import {
  firstWordsField,
  flagField,
  markRanks,
  marksOf,
  namesField,
  piece,
  piecesWith,
} from '../../shared/store/word-index.ts';
import { type ContentCache, type HmgetBatcher, idAt, type Span } from './records.ts';
import { MissingPartError, type ReadTarget } from './versions.ts';

/** The result of a search. */
export interface Found {
  readonly totalCount: number;
  /** Decimal digits, in the order of the results. */
  readonly ids: readonly string[];
}

/** What to find. */
interface Asked {
  /** Folded. */
  readonly words: readonly string[];
  readonly flags: readonly (readonly [search: string, value: boolean])[];
  /** Only these ranks of names. */
  readonly range: { readonly first: number; readonly count: number } | undefined;
}

/** The ranks of some names: a bit for each name of the content. */
type Marks = Uint32Array;

/** Finds records by words of their names, and by flags. Methods throw MissingPartError if a part of the index is missing. */
export class WordIndex {
  readonly #hashes: HmgetBatcher;
  readonly #cache: ContentCache;

  constructor(hashes: HmgetBatcher, cache: ContentCache) {
    this.#hashes = hashes;
    this.#cache = cache;
  }

  /**
   * Returns a page of the records whose names have all words and lie in a range of ranks, and which have all flags: in the order of
   * names or, by flags alone, of the list.
   */
  async find(target: ReadTarget, { words, flags, range }: Asked, span: Span): Promise<Found> {
    const isByRank = words.length > 0 || range !== undefined;
    const by = isByRank ? 'rank' : 'position';
    const [first, ...others] = await Promise.all([
      ...words.map((word) => this.#marksOf(target, word)),
      ...flags.map((flag) => this.#flagged(target, flag, by)),
    ]);
    const all = Uint32Array.from(first as Marks);
    for (const marks of others)
      for (let n = 0; n < all.length; n += 1) all[n] = (all[n] as number) & (marks[n] as number);
    if (range) keepRange(all, range);
    const { ranks, totalCount } = markedRanks(all, span);
    const idOf = isByRank
      ? (rank: number) => this.#idOf(target, rank)
      : (position: number) => idAt(this.#hashes, this.#cache, target, position);
    return { totalCount, ids: await Promise.all(ranks.map(idOf)) };
  }

  /** Returns the records with a flag. @param by the numbers to mark */
  async #flagged(
    target: ReadTarget,
    [search, value]: readonly [search: string, value: boolean],
    by: 'position' | 'rank',
  ): Promise<Marks> {
    const { totalCount } = target.version;
    const marks = marksOf(await this.#read(target, flagField(search, by)), totalCount);
    if (value) return marks;
    const inverted = marks.map((it) => ~it);
    keepRange(inverted, { first: 0, count: totalCount });
    return inverted;
  }

  /** Returns the ranks of the names that have a word with this beginning. */
  async #marksOf(target: ReadTarget, word: string): Promise<Marks> {
    return this.#cache.get(`${target.contentName} word ${word}`, async () => {
      const marks = new Uint32Array(Math.ceil((target.version.searches['name'] ?? 0) / 32));
      const first = await this.#firstWords(target);
      const [from, to] = piecesWith(word, first);
      const numbers = Array.from({ length: first.length === 0 ? 0 : to - from + 1 }, (_, n) => from + n);
      for (const bytes of await Promise.all(numbers.map((number) => this.#read(target, piece(number)))))
        markRanks(bytes, word, marks);
      return { value: marks, size: marks.byteLength + 2 * word.length + 100 };
    });
  }

  async #firstWords(target: ReadTarget): Promise<readonly string[]> {
    return this.#cache.get(`${target.contentName} first words`, async () => {
      const text = (await this.#read(target, firstWordsField)).toString();
      return { value: text === '' ? [] : text.split(' '), size: 2 * text.length + 100 };
    });
  }

  async #idOf(target: ReadTarget, rank: number): Promise<string> {
    const range = Math.floor(rank / rangeIds);
    return unpackId(await this.#read(target, namesField(range)), rank % rangeIds);
  }

  async #read({ content, contentName }: ReadTarget, field: string): Promise<Buffer> {
    return this.#cache.get(`${contentName} words ${field}`, async () => {
      const [stored] = await this.#hashes.get(content.words, [field]);
      if (!stored) throw new MissingPartError(content.words);
      return { value: Buffer.from(stored), size: stored.length + 100 };
    });
  }
}

/** Removes the marks outside of a range. */
function keepRange(marks: Marks, { first, count }: { readonly first: number; readonly count: number }): void {
  const end = first + count;
  for (let n = 0; n < marks.length; n += 1) {
    const [from, to] = [first - 32 * n, end - 32 * n];
    if (from >= 32 || to <= 0) marks[n] = 0;
    else {
      if (from > 0) marks[n] = (marks[n] as number) & (-1 << from);
      if (to < 32) marks[n] = (marks[n] as number) & ~(-1 << to);
    }
  }
}

/** Returns how many ranks are marked, and those of a span. */
function markedRanks(marks: Marks, { from, count }: Span): { totalCount: number; ranks: number[] } {
  let totalCount = 0;
  const ranks: number[] = [];
  for (let n = 0; n < marks.length; n += 1) {
    const bits = marks[n] as number;
    if (bits === 0) continue;
    const its = countBits(bits);
    if (totalCount + its > from && ranks.length < count)
      for (let left = bits, at = totalCount; left !== 0; left &= left - 1, at += 1)
        if (at >= from && ranks.length < count) ranks.push(32 * n + 31 - Math.clz32(left & -left));
    totalCount += its;
  }
  return { totalCount, ranks };
}

/** Returns how many bits of 32 are set: sums of 2, of 4, of 8 bits, then of the four bytes. */
function countBits(bits: number): number {
  const twos = bits - ((bits >>> 1) & 0x55555555);
  const fours = (twos & 0x33333333) + ((twos >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
