// In: records of one collection, in order. Out: a staged content: records, order, blocks, search index, digests.
// Memory does not grow with the list: duplicates are found by Redis, and entries sorted with its help.

import { createHash, hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Collection } from '../../shared/collections/define.ts';
import { checkLength, writeCheck } from '../../shared/formats/checked-bytes.ts';
import { entriesAt, unrankedEntryOf } from '../../shared/formats/search-entries.ts';
import { packEntries, pageEntries } from '../../shared/formats/search-page.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { blockRecords, maxBlockLength, packBlock } from '../../shared/store/block.ts';
import type { PartKeys } from '../../shared/store/keys.ts';
import { packIds } from '../../shared/store/packed-ids.ts';
import type { ContentFacts } from '../../shared/store/versions.ts';
import type { BegunVersion } from '../scripts/held.ts';
import { type StagedBlock, stageBlocks } from '../scripts/stage-blocks.ts';
import { type StagedPage, stagePages } from '../scripts/stage-pages.ts';
import { type Duplicate, type StagedRecord, stageRecords } from '../scripts/stage-records.ts';
import { EntrySorter } from './entry-sorter.ts';
import { FrequentKeys } from './frequent-keys.ts';
import { partsOf } from './parts.ts';
import { SetDigest } from './set-digest.ts';

/** A record with what it is found by. */
export interface ContentRecord extends StagedRecord {
  /** Its JSON text, on one line. */
  readonly json: string;
  readonly record: unknown;
}

/** A record as it is stored: its JSON text in UTF-8, with the check of its id behind it. */
export function storedRecord(id: number, json: string): Buffer {
  const stored = Buffer.allocUnsafe(Buffer.byteLength(json) + checkLength);
  stored.write(json);
  writeCheck(stored, id);
  return stored;
}

const lineFeed = Buffer.from('\n');

/** How many pages of entries are sent with one command: less than a ms of work for Redis. */
const pagesAtOnce = 32;
const command = {
  count: pagesAtOnce,
  length: 1_000_000,
  lengthOf: ({ stored }: StagedPage) => stored.length,
};

/** How many characters of entries are sorted as one text: those of all records of a batch may be too long for one. */
const sortedAtOnce = { count: 32_768, length: 1_000_000, lengthOf: (entry: string) => entry.length };

/** Stages the content of one collection. Every method throws LockLostError, and whatever Redis answers with. */
export class ContentWriter {
  readonly #redis: Redis;
  readonly #begun: BegunVersion;
  readonly #part: PartKeys;
  readonly #collection: Collection;
  readonly #checksum = createHash('sha256');
  readonly #set = new SetDigest();
  #linesLength = 0;
  #fencesCheck = 0;
  /** The entries of the search index: each kind is made of the one before, once that is sorted. */
  readonly #names: EntrySorter;
  readonly #listed: EntrySorter;
  readonly #frequent: EntrySorter;
  #count = 0;
  #blocks = 0;
  /** Of the block that is not full yet: the ids, and the records as JSON texts, `null` when they are too large for one. */
  #ids: number[] = [];
  #texts: string[] | null = [];
  #textLength = 0;

  constructor(redis: Redis, begun: BegunVersion, part: PartKeys, collection: Collection) {
    this.#redis = redis;
    this.#begun = begun;
    this.#part = part;
    this.#collection = collection;
    this.#names = new EntrySorter(redis, begun, part, 'names');
    this.#listed = new EntrySorter(redis, begun, part, 'listed');
    this.#frequent = new EntrySorter(redis, begun, part, 'frequent');
  }

  /** Writes the records of one batch. @returns those whose id came before; they are not written */
  async stageRecords(records: readonly StagedRecord[]): Promise<Duplicate[]> {
    return records.length === 0 ? [] : stageRecords(this.#redis, this.#begun, this.#part, records);
  }

  /** Writes what staged records are read by; each record that is not a duplicate is given once, in order. */
  async stageListing(records: readonly ContentRecord[]): Promise<void> {
    if (records.length === 0) return;
    const entries: string[] = [];
    const packing: Promise<StagedBlock>[] = [];
    this.#checksum.update(records.map(({ json }) => `${json}\n`).join(''));
    for (const { json, stored, id, record } of records) {
      this.#takeLine(stored.subarray(0, stored.length - checkLength));
      entries.push(unrankedEntryOf(this.#collection, { record, id, place: this.#count }));
      this.#addToBlock(id, json);
      if (this.#ids.length === blockRecords) packing.push(this.#endBlock());
    }
    await Promise.all([addTo(this.#names, entries), this.#stageBlocks(packing)]);
  }

  /** Writes what is left, and the search index, sorted. */
  async finish(): Promise<ContentFacts> {
    if (this.#ids.length > 0) await this.#stageBlocks([this.#endBlock()]);
    const entries = await this.#stageIndex();
    return {
      ...{ totalCount: this.#count, checksum: this.#checksum.digest('hex'), setDigest: this.#set.hex() },
      ...{ linesLength: this.#linesLength, blocks: this.#blocks, entries, fencesCheck: this.#fencesCheck },
    };
  }

  #takeLine(text: Buffer): void {
    this.#set.add(hash('sha256', text, 'buffer'));
    this.#linesLength += text.length + lineFeed.length;
  }

  #addToBlock(id: number, json: string): void {
    this.#count += 1;
    this.#ids.push(id);
    this.#textLength += json.length;
    if (this.#textLength > maxBlockLength) this.#texts = null;
    this.#texts?.push(json);
  }

  async #endBlock(): Promise<StagedBlock> {
    const number = Math.ceil(this.#count / blockRecords) - 1;
    const [order, texts] = [packIds(this.#ids, number), this.#texts];
    this.#ids = [];
    this.#texts = [];
    this.#textLength = 0;
    if (texts) this.#blocks += 1;
    return { number, order, stored: texts && (await packBlock(texts, number)) };
  }

  async #stageBlocks(packing: readonly Promise<StagedBlock>[]): Promise<void> {
    if (packing.length === 0) return;
    await stageBlocks(this.#redis, this.#begun, this.#part, await Promise.all(packing));
  }

  /** Writes the entries, sorted, by pages. @returns how many there are */
  async #stageIndex(): Promise<number> {
    const atOnce = pagesAtOnce * pageEntries;
    let count = 0;
    let left: string[] = [];
    let writing: Promise<void> = Promise.resolve();
    const write = async (entries: readonly string[]) => {
      const pages = pagesOf(entries, count / pageEntries);
      count += entries.length;
      for (const { fence } of pages) this.#fencesCheck = crc32(lineFeed, crc32(fence, this.#fencesCheck));
      for (const some of partsOf(pages, command)) {
        await writing;
        writing = stagePages(this.#redis, this.#begun, this.#part, some);
        writing.catch(() => undefined); // Thrown by the next await.
      }
    };
    for await (const sorted of this.#sortedEntries()) {
      left = left.concat(sorted); // Of many runs these are too many for the arguments of a call.
      for (; left.length >= atOnce; left = left.slice(atOnce)) await write(left.slice(0, atOnce));
    }
    if (left.length > 0) await write(left);
    await writing;
    return count;
  }

  /** All entries, some at a time: those by name first, which tell the ranks that others have; then those of keys. */
  async *#sortedEntries(): AsyncGenerator<readonly string[]> {
    let rank = 0;
    for await (const sorted of this.#names.sorted()) {
      const names: string[] = [];
      const listed: string[] = [];
      for (const unranked of sorted) {
        const [name, ...others] = entriesAt(unranked, rank) as [string, ...string[]];
        rank += 1;
        names.push(name);
        for (const entry of others) listed.push(entry);
        if (listed.length >= sortedAtOnce.count) await addTo(this.#listed, listed.splice(0));
      }
      await addTo(this.#listed, listed);
      yield names;
    }
    const frequentKeys = new FrequentKeys();
    for await (const sorted of this.#listed.sorted()) {
      await addTo(
        this.#frequent,
        sorted.flatMap((entry) => frequentKeys.take(entry)),
      );
      yield sorted;
    }
    yield* this.#frequent.sorted();
  }
}

async function addTo(sorter: EntrySorter, entries: readonly string[]): Promise<void> {
  for (const some of partsOf(entries, sortedAtOnce)) await sorter.add(some);
}

function pagesOf(sorted: readonly string[], firstNumber: number): StagedPage[] {
  const pages: StagedPage[] = [];
  for (let at = 0; at < sorted.length; at += pageEntries) {
    const number = firstNumber + pages.length;
    const page = sorted.slice(at, at + pageEntries);
    const fence = Buffer.from(page[0] as string, 'latin1');
    pages.push({ number, stored: packEntries(page, number), fence });
  }
  return pages;
}
