// In: records of one collection, in order. Out: a staged content: records, order, blocks, search index, checksum.
// Memory does not grow with the list: duplicates are found by Redis, and entries sorted with its help.

import { createHash } from 'node:crypto';
import { blockRecords, maxBlockLength, packBlock } from '../shared/block.ts';
import type { Collection } from '../shared/collections/collection.ts';
import type { PartKeys } from '../shared/keys.ts';
import { packIds } from '../shared/list-order.ts';
import type { Redis } from '../shared/redis.ts';
import {
  type Arrangement,
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

type NumberedBlock = readonly [number: number, stored: Buffer];

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
  /** Records of the block that is not full yet, as JSON texts; `null` when they are too large for one. */
  #pending: string[] | null = [];
  #pendingLength = 0;

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
    const firstRank = this.#count;
    const order = packIds(records.map(({ id }) => id));
    const entries: string[] = [];
    const packing: Promise<NumberedBlock>[] = [];
    this.#checksum.update(records.map(({ json }) => `${json}\n`).join(''));
    for (const { json, id, position, record } of records) {
      entries.push(...entriesOf(this.#collection, { record, id, position }));
      const full = this.#addToBlock(json);
      if (full) packing.push(full);
    }
    await Promise.all([
      this.#entries.add(entries),
      Promise.all(packing).then((blocks) => this.#arrange({ firstRank, order, blocks })),
    ]);
  }

  /** Writes what is left, and the search index, sorted. */
  async finish(): Promise<ContentFacts> {
    const last = this.#endBlock();
    if (last) await this.#arrange({ firstRank: 0, order: Buffer.alloc(0), blocks: [await last] });
    const entries = await this.#seal();
    const checksum = this.#checksum.digest('hex');
    return { totalCount: this.#count, checksum, blocks: this.#blocks, entries };
  }

  #addToBlock(json: string): Promise<NumberedBlock> | null {
    this.#count += 1;
    this.#pendingLength += json.length;
    if (this.#pendingLength > maxBlockLength) this.#pending = null;
    this.#pending?.push(json);
    return this.#count % blockRecords === 0 ? this.#endBlock() : null;
  }

  #endBlock(): Promise<NumberedBlock> | null {
    const texts = this.#pending;
    const number = Math.ceil(this.#count / blockRecords) - 1;
    this.#pending = [];
    this.#pendingLength = 0;
    if (!texts || texts.length === 0) return null;
    this.#blocks += 1;
    return packBlock(texts).then((stored) => [number, stored] as const);
  }

  #arrange(arrangement: Arrangement): Promise<void> {
    return arrange(this.#redis, this.#staging, this.#part, arrangement);
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
