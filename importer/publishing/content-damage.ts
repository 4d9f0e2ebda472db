// In: a content, of which everything is read, by bounded pieces. Out: what of it is not as it was stored, as sentences.

import { createHash, type Hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type ContentFormat, formatOf } from '../../shared/formats/content-format.ts';
import { pageEntries } from '../../shared/formats/search-page.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { isWrongType } from '../../shared/redis/damage.ts';
import type { CollectionKeys, ContentKeys } from '../../shared/store/keys.ts';
import { rangeIds, unpackIds } from '../../shared/store/packed-ids.ts';
import type { ContentFacts, StoredContent } from '../../shared/store/versions.ts';
import { partsOf, sizesOf } from './wholeness.ts';

/** How many ranges of a list are read at once, and how many pages of an index: less than a MB, as a rule. */
const rangesAtOnce = 5;
const pagesAtOnce = 500;

/** Told of what is read, so that it can be compared with something else. */
export interface ContentWitness {
  /** A record's JSON text, in list order. */
  record?(text: Buffer): void;
  /** An entry of the search index, as its bytes, in their order. */
  entry?(entry: string): void;
  /** Asked at the end, when all was read and nothing was damaged: what else is wrong, as a sentence, or nothing. */
  verdict?(keys: ContentKeys): string | null;
}

/**
 * Reads all of a content, with what is derived, and holds it against its checksums. Ends early for who asks for no more.
 * @param witnessOf makes the witness of each part: of the collection itself for `null`, of a derived one for its name
 */
export async function* contentDamage(
  redis: Redis,
  keys: CollectionKeys,
  content: StoredContent,
  witnessOf: (derived: string | null) => ContentWitness = () => ({}),
): AsyncGenerator<string, void> {
  for (const { key, command, size } of sizesOf(keys, content)) {
    const found = await (command === 'HLEN' ? redis.hlen(key) : redis.zcard(key)).catch(noneOfWrongType);
    if (found === null) yield `The Redis key ${key} is of another type.`;
    else if (found !== size) yield `The Redis key ${key} has ${found} elements, not ${size}.`;
  }
  const format = formatOf(content);
  for (const { derived, part, facts } of partsOf(keys, content)) {
    const its = { redis, keys: part.content(content.stored), facts, format, witness: witnessOf(derived) };
    let isWhole = true;
    try {
      for await (const damage of partDamage(its)) {
        isWhole = false;
        yield damage;
      }
      const verdict = isWhole && its.witness.verdict?.(its.keys);
      if (verdict) yield verdict;
    } catch (error) {
      if (!isWrongType(error)) throw error; // That was told above.
    }
  }
}

async function* partDamage(part: ReadPart): AsyncGenerator<string, void> {
  yield* listDamage(part);
  yield* indexDamage(part);
}

function noneOfWrongType(error: unknown): null {
  if (isWrongType(error)) return null;
  throw error;
}

interface ReadPart {
  readonly redis: Redis;
  readonly keys: ContentKeys;
  readonly facts: ContentFacts;
  readonly format: ContentFormat;
  readonly witness: ContentWitness;
}

/** Order, records and blocks, range by range, then all records together. */
async function* listDamage(part: ReadPart): AsyncGenerator<string, void> {
  const { redis, keys, facts } = part;
  const checksum = createHash('sha256');
  const ranges = Math.ceil(facts.totalCount / rangeIds);
  let isRead = true;
  for (let from = 0; from < ranges; from += rangesAtOnce) {
    const numbers = Array.from({ length: Math.min(rangesAtOnce, ranges - from) }, (_, n) => from + n);
    const [orders, blocks] = await Promise.all([
      redis.hmgetBuffer(keys.order, ...numbers.map(String)),
      redis.hmgetBuffer(keys.blocks, ...numbers.map(String)),
    ]);
    const found = await Promise.all(numbers.map((number, n) => readRange(part, number, orders[n] ?? null)));
    for (const [n, range] of found.entries()) {
      isRead &&= range.texts !== null;
      for (const text of range.texts ?? []) part.witness.record?.(text);
      yield* range.damage;
      const joined = range.texts && joinedByCommas(range.texts);
      yield* blockDamage(part, { number: from + n, stored: blocks[n] ?? null, joined });
      if (joined && range.texts) checksum.update(asLines(joined, range.texts));
    }
  }
  if (isRead && !isDigest(checksum, facts.checksum))
    yield `The records of ${keys.records} in the order of ${keys.order} are not those that were published.`;
}

const lineFeed = Buffer.from('\n');
const comma = ','.charCodeAt(0);

/** Texts with a comma behind each: so few calls are made for each of a million records. */
function joinedByCommas(texts: readonly Buffer[]): Buffer {
  const joined = Buffer.allocUnsafe(texts.reduce((sum, { length }) => sum + length + 1, 0));
  let at = 0;
  for (const text of texts) {
    at += text.copy(joined, at);
    at = joined.writeUInt8(comma, at);
  }
  return joined;
}

/** The same texts, in the same place, a line each. */
function asLines(joined: Buffer, texts: readonly Buffer[]): Buffer {
  let at = -1;
  for (const { length } of texts) {
    at += length + 1;
    joined[at] = lineFeed[0] as number;
  }
  return joined;
}

function isDigest(found: Hash, expected: string): boolean {
  return found.digest('hex') === expected;
}

/** A range of a list as it was found. */
interface FoundRange {
  /** `null` where not all of them could be read. */
  readonly texts: readonly Buffer[] | null;
  readonly damage: readonly string[];
}

async function readRange(
  { redis, keys, facts, format }: ReadPart,
  number: number,
  stored: Buffer | null,
): Promise<FoundRange> {
  const packed = stored && format.openRange(stored, number);
  const ids = packed ? unpackIds(packed) : [];
  if (ids.length !== Math.min(rangeIds, facts.totalCount - number * rangeIds))
    return {
      texts: null,
      damage: [`Range ${number} of ${keys.order} is ${stored ? 'damaged' : 'missing'}.`],
    };
  const records = await redis.hmgetBuffer(keys.records, ...ids);
  const damage: string[] = [];
  const texts: Buffer[] = [];
  for (const [n, record] of records.entries()) {
    const text = record && format.openRecord(record, ids[n] as string);
    if (text) texts.push(text);
    else damage.push(`Record ${ids[n]} of ${keys.records} is ${record ? 'damaged' : 'missing'}.`);
  }
  return { texts: damage.length === 0 ? texts : null, damage };
}

/** A block is to hold the very records of its range; blocks of very large records are not made, so one may be missing. */
function* blockDamage(
  { keys, facts, format }: ReadPart,
  { number, stored, joined }: { number: number; stored: Buffer | null; joined: Buffer | null },
): Generator<string, void> {
  if (!stored) {
    const areAllMade = facts.blocks === Math.ceil(facts.totalCount / rangeIds);
    if (areAllMade) yield `Block ${number} of ${keys.blocks} is missing.`;
    return;
  }
  const block = format.openBlock(stored, number);
  if (!block) yield `Block ${number} of ${keys.blocks} is damaged.`;
  else if (joined && block.crc !== crc32(joined.subarray(0, -1)))
    yield `Block ${number} of ${keys.blocks} does not hold the records of its range.`;
}

/** The pages of the index, in order, and the fence of each. */
async function* indexDamage({ redis, keys, facts, format, witness }: ReadPart): AsyncGenerator<string, void> {
  const pages = Math.ceil(facts.entries / pageEntries);
  let [count, last, check] = [0, '', 0];
  for (let from = 0; from < pages; from += pagesAtOnce) {
    const until = Math.min(pages, from + pagesAtOnce);
    const numbers = Array.from({ length: until - from }, (_, n) => String(from + n));
    const [stored, fences] = await Promise.all([
      redis.hmgetBuffer(keys.entries, ...numbers),
      redis.zrangeBuffer(keys.fences, from, String(until - 1)),
    ]);
    for (const [n, bytes] of stored.entries()) {
      const fence = fences[n];
      if (fence) check = crc32(lineFeed, crc32(fence, check));
      const entries = bytes && format.openPage(bytes, from + n);
      if (!entries) {
        yield `Page ${from + n} of ${keys.entries} is ${bytes ? 'damaged' : 'missing'}.`;
        continue;
      }
      if (fence?.toString('latin1') !== entries[0])
        yield `Fence ${from + n} of ${keys.fences} is not the first entry of its page.`;
      if (!entries.every((entry, i) => (i === 0 ? last : (entries[i - 1] as string)) < entry))
        yield `The entries of page ${from + n} of ${keys.entries} are not in their order.`;
      last = entries.at(-1) as string;
      count += entries.length;
      for (const entry of entries) witness.entry?.(entry);
    }
  }
  if (count !== facts.entries) yield `${keys.entries} has ${count} entries, not ${facts.entries}.`;
  if (facts.fencesCheck !== undefined && facts.fencesCheck !== check)
    yield `The fences of ${keys.fences} are not those that were published.`;
}
