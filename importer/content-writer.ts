// In: records of one collection, in order. Out: a staged content: records, order, blocks, search index, checksum.
// Memory does not grow with the list: duplicates are found by Redis, and entries sorted with its help.

import { createHash } from 'node:crypto';
import { blockRecords, maxBlockLength, packBlock } from '../shared/block.ts';
import type { Collection } from '../shared/collections/collection.ts';
import type { PartKeys } from '../shared/keys.ts';
import { packIds } from '../shared/list-order.ts';
import type { Redis } from '../shared/redis.ts';
import {
  type ArrangedBlock,
  arrange,
  type Duplicate,
  type EntryPage,
  type StagedRecord,
  type Staging,
  seal,
  stage,
} from '../shared/scripts.ts';
import { entriesOf, packEntries, pageEntries } from '../shared/search-index.ts';
import type { ContentFacts } from '../shared/versions.ts';
import { EntrySorter } from './entry-sorter.ts';

/** A record with what it is found by. */
export interface ContentRecord extends StagedRecord {
  readonly record: unknown;
}

/** How many pages of entries are sent with one command: less than a ms of work for Redis. */
const pagesAtOnce = 32;

/** Stages the content of one collection. Every method throws LockLostError, and whatever Redis answers with. */
export class ContentWriter {
  readonly #redis: Redis;
  readonly #staging: Staging;
  readonly #part: PartKeys;
  readonly #collection: Collection;
  readonly #checksum = createHash('sha256');
  readonly #entries: EntrySorter;
  #count = 0;
  #blocks = 0;
  /** Of the block that is not full yet: the ids, and the records as JSON texts, `null` when they are too large for one. */
  #ids: number[] = [];
  #texts: string[] | null = [];
  #textLength = 0;

  constructor(redis: Redis, staging: Staging, part: PartKeys, collection: Collection) {
    this.#redis = redis;
    this.#staging = staging;
    this.#part = part;
    this.#collection = collection;
    this.#entries = new EntrySorter(redis, staging, part);
  }

  /** Writes the records of one batch. @returns those whose id came before; they are not written */
  async stage(records: readonly StagedRecord[]): Promise<Duplicate[]> {
    return records.length === 0 ? [] : stage(this.#redis, this.#staging, this.#part, records);
  }

  /** Writes what staged records are read by; each record that is not a duplicate is given once, in order. */
  async arrange(records: readonly ContentRecord[]): Promise<void> {
    if (records.length === 0) return;
    const entries: string[] = [];
    const packing: Promise<ArrangedBlock>[] = [];
    this.#checksum.update(records.map(({ json }) => `${json}\n`).join(''));
    for (const { json, id, position, record } of records) {
      entries.push(...entriesOf(this.#collection, { record, id, position }));
      this.#addToBlock(id, json);
      if (this.#ids.length === blockRecords) packing.push(this.#endBlock());
    }
    await Promise.all([this.#entries.add(entries), this.#arrange(packing)]);
  }

  /** Writes what is left, and the search index, sorted. */
  async finish(): Promise<ContentFacts> {
    if (this.#ids.length > 0) await this.#arrange([this.#endBlock()]);
    const entries = await this.#seal();
    const checksum = this.#checksum.digest('hex');
    return { totalCount: this.#count, checksum, blocks: this.#blocks, entries };
  }

  #addToBlock(id: number, json: string): void {
    this.#count += 1;
    this.#ids.push(id);
    this.#textLength += json.length;
    if (this.#textLength > maxBlockLength) this.#texts = null;
    this.#texts?.push(json);
  }

  async #endBlock(): Promise<ArrangedBlock> {
    const number = Math.ceil(this.#count / blockRecords) - 1;
    const [order, texts] = [packIds(this.#ids), this.#texts];
    this.#ids = [];
    this.#texts = [];
    this.#textLength = 0;
    if (texts) this.#blocks += 1;
    return { number, order, stored: texts && (await packBlock(texts)) };
  }

  async #arrange(packing: readonly Promise<ArrangedBlock>[]): Promise<void> {
    if (packing.length === 0) return;
    await arrange(this.#redis, this.#staging, this.#part, await Promise.all(packing));
  }

  /** Writes the entries, sorted, by pages. @returns how many there are */
  async #seal(): Promise<number> {
    const atOnce = pagesAtOnce * pageEntries;
    let count = 0;
    let left: string[] = [];
    let writing: Promise<void> = Promise.resolve();
    const write = async (entries: readonly string[]) => {
      const pages = pagesOf(entries, count / pageEntries);
      count += entries.length;
      await writing;
      writing = seal(this.#redis, this.#staging, this.#part, pages);
      writing.catch(() => undefined); // Thrown by the next await.
    };
    for await (const sorted of this.#entries.sorted()) {
      left = left.concat(sorted); // Of many runs these are too many for the arguments of a call.
      for (; left.length >= atOnce; left = left.slice(atOnce)) await write(left.slice(0, atOnce));
    }
    if (left.length > 0) await write(left);
    await writing;
    return count;
  }
}

function pagesOf(sorted: readonly string[], firstNumber: number): EntryPage[] {
  const pages: EntryPage[] = [];
  for (let at = 0; at < sorted.length; at += pageEntries) {
    const page = sorted.slice(at, at + pageEntries);
    const fence = Buffer.from(page[0] as string, 'latin1');
    pages.push({ number: firstNumber + pages.length, stored: packEntries(page), fence });
  }
  return pages;
}
