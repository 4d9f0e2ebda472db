// Whether a stored content is complete (the count of every part) and unaltered (everything read against the checksum).

import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Collection, FlagSearch } from '../shared/collections/define.ts';
import type { Redis } from '../shared/redis/connections.ts';
import { isWrongType } from '../shared/redis/failures.ts';
import { blockText, isBlockOf, openBlock, rangeIds, unpackIds } from '../shared/store/block.ts';
import { countDamage, partsOf } from '../shared/store/completeness.ts';
import type { CollectionKeys, ContentKeys } from '../shared/store/keys.ts';
import { StagedLostError } from '../shared/store/scripts.ts';
import { exactValues, memberOf, prefixTexts } from '../shared/store/search-index.ts';
import {
  type ContentFacts,
  currentFormat,
  type LiveVersion,
  readLiveVersion,
  type StoredContent,
  type Version,
} from '../shared/store/versions.ts';
import { FlagBits, readWordIndex } from '../shared/store/word-index.ts';
import { futureVersionWarning } from '../shared/time.ts';

/** How many ranges of a list, or names or values of an index, are read at once. */
const rangesAtOnce = 5;
const entriesAtOnce = 1_000;

/** The live version at the start of an import. */
export interface FoundLive {
  readonly live: LiveVersion | null;
  /** The live version unless it is damaged or of an unknown format; then `null`, and the import rebuilds it without comparing. */
  readonly intact: LiveVersion | null;
  /** Warnings for the operator, as sentences. */
  readonly warnings: readonly string[];
}

/** Reads the live version, and whether it is intact by its counts and marks. */
export async function findLive(redis: Redis, keys: CollectionKeys): Promise<FoundLive> {
  const live = await readLiveVersion(redis, keys);
  if (!live) return { live, intact: null, warnings: [] };
  const warnings = futureVersionWarning(live);
  const damage = await knownDamage(redis, keys, live);
  if (damage === null) return { live, intact: live, warnings };
  const warning = `Version ${live.version} is incomplete in Redis; comparison skipped. ${damage}`;
  return { live, intact: null, warnings: [warning, ...warnings] };
}

/** Returns known damage of a version without reading all of it; `null` if there is none. */
export async function knownDamage(
  redis: Redis,
  keys: CollectionKeys,
  version: Version,
): Promise<string | null> {
  if (version.format !== currentFormat)
    return `It is stored in format ${version.format}, which this release cannot read.`;
  const [marked, [missing = null]] = await Promise.all([
    redis.hget(keys.damaged, version.content),
    countDamage(redis, keys, version),
  ]);
  return marked ?? missing;
}

/** Refuses a staged content that is incomplete in Redis: lost keys would look like removed records. @throws StagedLostError */
export async function requireComplete(
  redis: Redis,
  keys: CollectionKeys,
  staged: StoredContent,
): Promise<void> {
  if ((await countDamage(redis, keys, staged)).length > 0) throw new StagedLostError();
}

/** Reads a whole content with its derived contents, and yields damage as sentences. */
export async function* contentDamage(
  redis: Redis,
  keys: CollectionKeys,
  { collection, content }: { readonly collection: Collection; readonly content: StoredContent },
): AsyncGenerator<string, void> {
  if (content.format !== currentFormat) {
    yield `It is stored in format ${content.format}, which this release cannot read.`;
    return;
  }
  yield* await countDamage(redis, keys, content);
  for (const { derived, part, facts } of partsOf(keys, content)) {
    const its = collection.derived.find((it) => it.collection.name === derived)?.collection;
    const read = { redis, keys: part.content(content.content), facts, collection: its ?? collection };
    try {
      yield* partDamage(read);
    } catch (error) {
      if (!isWrongType(error)) throw error; // The counts reported it.
    }
  }
}

interface ReadPart {
  readonly redis: Redis;
  readonly keys: ContentKeys;
  readonly facts: ContentFacts;
  readonly collection: Collection;
}

/** Reads records and blocks against the checksum; then the search index against the records. */
async function* partDamage(part: ReadPart): AsyncGenerator<string, void> {
  const { redis, keys, facts, collection } = part;
  const checksum = createHash('sha256');
  const index = new ExpectedIndex(collection);
  const ranges = Math.ceil(facts.totalCount / rangeIds);
  let isComplete = true;
  for (let from = 0; from < ranges; from += rangesAtOnce) {
    const numbers = Array.from({ length: Math.min(rangesAtOnce, ranges - from) }, (_, n) => from + n);
    const [orders, blocks] = await Promise.all([
      redis.hmgetBuffer(keys.order, ...numbers.map(String)),
      redis.hmgetBuffer(keys.blocks, ...numbers.map(String)),
    ]);
    for (const [n, number] of numbers.entries()) {
      const texts = await rangeTexts(part, number, orders[n] ?? null);
      if (!texts) {
        isComplete = false;
        yield `Range ${number} of ${keys.order}, or a record in it, is missing or damaged.`;
        continue;
      }
      for (const text of texts) checksum.update(text).update('\n');
      const damage = blockDamage(part, { number, stored: blocks[n] ?? null, texts });
      if (damage) yield damage;
      if (!index.add(texts)) {
        isComplete = false;
        yield `A record in range ${number} of ${keys.order} is not the JSON text of a record.`;
      }
    }
  }
  if (!isComplete) return;
  if (checksum.digest('hex') !== facts.checksum)
    yield `The records of ${keys.records}, in the order of ${keys.order}, do not match the version's checksum.`;
  else {
    let isIntact = true;
    for await (const damage of index.damage(redis, keys)) {
      isIntact = false;
      yield damage;
    }
    if (isIntact && !(await hasWords(redis, keys, index.flags)))
      yield `The index ${keys.words} does not have the words of its records.`;
  }
}

/** Returns whether the index of words is the one of the stored names. */
async function hasWords(
  redis: Redis,
  keys: ContentKeys,
  flags: ReadonlyMap<string, FlagBits>,
): Promise<boolean> {
  const index = await readWordIndex(redis, keys.prefix['name'] as string, flags);
  for (const [field, value] of index.fields())
    if (!(await redis.hgetBuffer(keys.words, field))?.equals(value)) return false;
  return true;
}

/** Reads the records of a range; `null` if one of them is missing. */
async function rangeTexts(
  { redis, keys, facts }: ReadPart,
  number: number,
  order: Buffer | null,
): Promise<Buffer[] | null> {
  const ids = order ? unpackIds(order) : [];
  if (ids.length !== Math.min(rangeIds, facts.totalCount - number * rangeIds)) return null;
  const records = await redis.hmgetBuffer(keys.records, ...ids);
  return records.includes(null) ? null : (records as Buffer[]);
}

/** Compares a block with the records of its range. Very large records have no block, so one may be absent. */
function blockDamage(
  { keys, facts }: ReadPart,
  { number, stored, texts }: { number: number; stored: Buffer | null; texts: readonly Buffer[] },
): string | null {
  if (!stored) {
    const areAllMade = facts.blocks === Math.ceil(facts.totalCount / rangeIds);
    return areAllMade ? `Block ${number} of ${keys.blocks} is missing.` : null;
  }
  return isBlockOf(stored, texts)
    ? null
    : `Block ${number} of ${keys.blocks} does not hold the records of its range.`;
}

/** Returns the text of a stored block; `null` if its bytes were altered. */
export function readBlock(stored: Buffer): Buffer | null {
  try {
    const block = openBlock(stored);
    const text = block && blockText(block);
    return block && text && crc32(text) === block.crc ? text : null;
  } catch {
    return null; // The bytes are not deflate data.
  }
}

/** The search index that the records of a content require. */
class ExpectedIndex {
  readonly #collection: Collection;
  /** Sums of members, by prefix search. */
  readonly #prefix = new Map<string, number>();
  readonly #exact = new Map<string, Map<string, string>>();

  readonly flags = new Map<string, FlagBits>();

  constructor(collection: Collection) {
    this.#collection = collection;
    for (const search of Object.keys(collection.flagSearches)) this.flags.set(search, new FlagBits());
  }

  /** Adds records in list order. @returns whether all of them are JSON texts of records */
  add(texts: readonly Buffer[]): boolean {
    try {
      for (const text of texts) {
        const record: unknown = JSON.parse(text.toString());
        const id = this.#collection.idOf(record);
        for (const [search, bits] of this.flags)
          bits.add(id, (this.#collection.flagSearches[search] as FlagSearch).valueOf(record));
        for (const [search, its] of prefixTexts(this.#collection, record))
          this.#prefix.set(search, added(this.#prefix.get(search) ?? 0, memberOf(its, id)));
        for (const [search, values] of exactValues(this.#collection, record)) {
          const known = this.#exact.get(search) ?? new Map<string, string>();
          this.#exact.set(search, known);
          for (const value of values) {
            const ids = known.get(value);
            known.set(value, ids === undefined ? String(id) : `${ids} ${id}`);
          }
        }
      }
      return true;
    } catch {
      return false;
    }
  }

  /** Yields the keys of the stored index that differ. */
  async *damage(redis: Redis, keys: ContentKeys): AsyncGenerator<string, void> {
    for (const [search, key] of Object.entries(keys.prefix)) {
      let sum = 0;
      for (let from = 0; ; from += entriesAtOnce) {
        const members = await redis.zrange(key, from, String(from + entriesAtOnce - 1));
        for (const member of members) sum = added(sum, member);
        if (members.length < entriesAtOnce) break;
      }
      if (sum !== (this.#prefix.get(search) ?? 0))
        yield `The index ${key} does not have the texts of its records.`;
    }
    for (const [search, key] of Object.entries(keys.exact)) {
      const expected = this.#exact.get(search) ?? new Map<string, string>();
      if (!(await hasExactly(redis, key, expected)))
        yield `The index ${key} does not have the values of its records.`;
    }
  }
}

/** Adds up CRC-32 checksums, in any order. */
function added(sum: number, text: string): number {
  return (sum + crc32(text)) % 2 ** 48;
}

async function hasExactly(
  redis: Redis,
  key: string,
  expected: ReadonlyMap<string, string>,
): Promise<boolean> {
  let cursor = '0';
  do {
    const [next, fields] = await redis.hscan(key, cursor, 'COUNT', entriesAtOnce);
    for (let n = 0; n < fields.length; n += 2)
      if (expected.get(fields[n] as string) !== fields[n + 1]) return false;
    cursor = next;
  } while (cursor !== '0');
  return (await redis.hlen(key)) === expected.size;
}
