// The index of words and flags of a content, one hash: `w0`, `w1`, … have words in their order, each with the ranks of its names in the
// sorted set of names; `first` has the first word of each. `n0`, `n1`, … have the ids of names by rank. Two fields of each flag have a
// bit for each record: by its position in the list, and by the rank of its name.

import type { Redis } from '../redis/connections.ts';
import { packIds, rangeIds } from './block.ts';
import { fold, idOfMember, textOfMember } from './search-index.ts';

/** The shortest word that is indexed and searched, in characters. */
export const minWordLength = 2;

const words = /[\p{L}\p{Nd}]+/gu;

/** Returns the words of a text, folded: its runs of letters and digits. */
export function wordsOf(text: string): string[] {
  return fold(text).match(words) ?? [];
}

/** Returns whether each word is the beginning of a word of a text. */
export function hasWords(text: string, wanted: readonly string[]): boolean {
  const its = wordsOf(text);
  return wanted.every((word) => its.some((it) => it.startsWith(word)));
}

/** The field with the first word of each piece. */
export const firstWordsField = 'first';

/** Returns the field of a piece of words. */
export function piece(number: number): string {
  return `w${number}`;
}

/** Returns the field with the ids of names. @param range of 200 ranks */
export function namesField(range: number): string {
  return `n${range}`;
}

/** Returns the field with the bits of a flag. @param by the position in the list, or the rank of the name */
export function flagField(search: string, by: 'position' | 'rank'): string {
  return `${by} ${search}`;
}

/** A flag of all records of a content. */
export class FlagBits {
  /** The ids of the records whose flag is true. */
  readonly #ids = new Set<number>();
  #byPosition = Buffer.alloc(1_024);
  #count = 0;

  /** Adds the next record of the list. */
  add(id: number, flag: boolean): void {
    if (this.#count === 8 * this.#byPosition.length)
      this.#byPosition = Buffer.concat([this.#byPosition, Buffer.alloc(this.#byPosition.length)]);
    if (flag) {
      this.#ids.add(id);
      setBit(this.#byPosition, this.#count);
    }
    this.#count += 1;
  }

  /** Returns the fields of the hash. @param ids by rank */
  *fields(search: string, ids: readonly number[]): Generator<readonly [field: string, value: Buffer], void> {
    const byRank = Buffer.alloc(Math.ceil(ids.length / 8));
    for (const [rank, id] of ids.entries()) if (this.#ids.has(id)) setBit(byRank, rank);
    yield [flagField(search, 'position'), this.#byPosition.subarray(0, Math.ceil(this.#count / 8))];
    yield [flagField(search, 'rank'), byRank];
  }
}

function setBit(bits: Buffer, at: number): void {
  bits[at >>> 3] = (bits[at >>> 3] as number) | (1 << (at & 7));
}

/** Returns the bits of a field as numbers of 32 bits. @param count how many bits */
export function marksOf(bits: Buffer, count: number): Uint32Array {
  const marks = new Uint32Array(Math.ceil(count / 32));
  for (const [n, byte] of bits.entries())
    marks[n >>> 2] = (marks[n >>> 2] as number) | (byte << (8 * (n & 3)));
  return marks;
}

/** A piece ends when it has this many bytes. */
const pieceBytes = 16_384;

/** Builds the index from the members of the sorted set of names, in their order. */
export class WordIndexBuilder {
  readonly #ranks = new Map<string, RankList>();
  readonly #ids: number[] = [];
  readonly #flags: ReadonlyMap<string, FlagBits>;

  constructor(flags: ReadonlyMap<string, FlagBits>) {
    this.#flags = flags;
  }

  /** Adds the next member. */
  add(member: string): void {
    const rank = this.#ids.length;
    this.#ids.push(Number(idOfMember(member)));
    for (const word of textOfMember(member).match(words) ?? []) {
      if (word.length < minWordLength) continue;
      const ranks = this.#ranks.get(word);
      if (ranks) ranks.add(rank);
      else this.#ranks.set(ownText(word), new RankList(rank));
    }
  }

  /** Returns the fields of the hash. */
  *fields(): Generator<readonly [field: string, value: Buffer], void> {
    const first: string[] = [];
    let parts: Buffer[] = [];
    let length = 0;
    for (const word of [...this.#ranks.keys()].sort()) {
      if (parts.length === 0) first.push(word);
      const { bytes } = this.#ranks.get(word) as RankList;
      const text = Buffer.from(word);
      parts.push(packNumbers([text.length, bytes.length]), text, bytes);
      length += text.length + bytes.length;
      if (length < pieceBytes) continue;
      yield [piece(first.length - 1), Buffer.concat(parts)];
      [parts, length] = [[], 0];
    }
    if (parts.length > 0) yield [piece(first.length - 1), Buffer.concat(parts)];
    yield [firstWordsField, Buffer.from(first.join(' '))];
    for (let range = 0; range * rangeIds < this.#ids.length; range += 1)
      yield [namesField(range), packIds(this.#ids.slice(range * rangeIds, (range + 1) * rangeIds))];
    for (const [search, bits] of this.#flags) yield* bits.fields(search, this.#ids);
  }
}

/** How many names one command reads. */
const namesAtOnce = 1_000;

/** Builds the index of words from a sorted set of names. @param key of the set @param flags of the same records */
export async function readWordIndex(
  redis: Redis,
  key: string,
  flags: ReadonlyMap<string, FlagBits>,
): Promise<WordIndexBuilder> {
  const index = new WordIndexBuilder(flags);
  const read = (from: number) => redis.zrange(key, from, String(from + namesAtOnce - 1));
  let next = read(0);
  for (let from = namesAtOnce; ; from += namesAtOnce) {
    const members = await next;
    const isLast = members.length < namesAtOnce;
    if (!isLast) next = read(from);
    next.catch(() => undefined); // The next await throws it.
    for (const member of members) index.add(member);
    if (isLast) return index;
  }
}

/** Copies a word: a slice of a name would keep the name in memory. */
function ownText(word: string): string {
  return Buffer.from(word).toString();
}

/** Ascending numbers, stored as their differences: seven bits in a byte, the lowest first, and 128 if more follow. */
class RankList {
  #bytes = Buffer.allocUnsafeSlow(16);
  #length = 0;
  #last = -1;

  constructor(first: number) {
    this.add(first);
  }

  /** Adds a number; one that it has is skipped. */
  add(rank: number): void {
    if (rank === this.#last) return;
    let left = rank - this.#last - 1;
    this.#last = rank;
    if (this.#length + 8 > this.#bytes.length) {
      const longer = Buffer.allocUnsafeSlow(2 * this.#bytes.length);
      this.#bytes.copy(longer);
      this.#bytes = longer;
    }
    for (; left > 127; left = Math.floor(left / 128)) this.#bytes[this.#length++] = (left % 128) + 128;
    this.#bytes[this.#length++] = left;
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }
}

function packNumbers(numbers: readonly number[]): Buffer {
  const bytes: number[] = [];
  for (let left of numbers) {
    for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
    bytes.push(left);
  }
  return Buffer.from(bytes);
}

/** Returns the pieces that may have words with a prefix: from the first number to the last. */
export function piecesWith(prefix: string, first: readonly string[]): readonly [from: number, to: number] {
  let from = 0;
  while (from + 1 < first.length && (first[from + 1] as string) <= prefix) from += 1;
  let to = from;
  while (to + 1 < first.length && (first[to + 1] as string).startsWith(prefix)) to += 1;
  return [from, to];
}

/** Marks the ranks of all names in a piece that have a word with a prefix. @param marks one bit for each rank */
export function markRanks(piece: Buffer, prefix: string, marks: Uint32Array): void {
  const wanted = Buffer.from(prefix);
  let at = 0;
  const number = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = piece[at++] as number;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < piece.length) {
    const length = number();
    const size = number();
    const start = at;
    at += length;
    const end = at + size;
    if (
      length >= wanted.length &&
      piece.compare(wanted, 0, wanted.length, start, start + wanted.length) === 0
    )
      for (let rank = -1; at < end; ) {
        rank += number() + 1;
        marks[rank >>> 5] = (marks[rank >>> 5] as number) | (1 << (rank & 31));
      }
    at = end;
  }
}
