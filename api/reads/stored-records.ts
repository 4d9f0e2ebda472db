// The records of a content, as they are stored: by blocks, by their places in the list, by id. What is not as it was
// stored is told and not given.

import { type Block, blockLines, blockRecords, openBlock } from '../../shared/store/block.ts';
import type { Version } from '../../shared/store/versions.ts';
import type { DamageMarks } from './damage-marks.ts';
import type { HashReads } from './hash-reads.ts';
import type { KnownBlocks } from './known-blocks.ts';
import { ListOrders } from './list-orders.ts';
import type { Attempt } from './version-reads.ts';

/** Which records of a list are wanted: from an index, from 0, and how many at most. */
export interface Span {
  readonly from: number;
  readonly count: number;
}

/** What a read is made of: a version with its keys. */
type Source = Pick<Attempt, 'version' | 'keys' | 'part'>;

/** Reads records. Every method throws whatever the connection throws. */
export class StoredRecords {
  readonly #hashes: HashReads;
  readonly #orders: ListOrders;
  readonly #known: KnownBlocks;
  readonly #marks: DamageMarks;

  constructor(hashes: HashReads, marks: DamageMarks, known: KnownBlocks) {
    this.#known = known;
    this.#hashes = hashes;
    this.#orders = new ListOrders(hashes);
    this.#marks = marks;
  }

  /** Whether what is read of a version is remembered. */
  remembers(version: Version): boolean {
    return this.#known.remembers(version);
  }

  /** The blocks in which a span lies; `null` when not all of them are there and whole. */
  async blocks(source: Source, { from, count }: Span): Promise<readonly Block[] | null> {
    const first = Math.floor(from / blockRecords);
    const last = Math.floor((from + count - 1) / blockRecords);
    if (!this.#known.remembers(source.version)) return this.#readBlocks(source, first, last);
    const key = source.part.content(source.version.content).blocks;
    const name = lastingName(key, source.version);
    const known: Block[] = [];
    for (let number = first; number <= last; number += 1) {
      const block = this.#known.get(name, number);
      if (block) known.push(block);
    }
    // Readers are told when Redis or the content is away, whatever is known.
    if (known.length === last - first + 1 && (await this.#hashes.has(key))) return known;
    const blocks = await this.#readBlocks(source, first, last);
    return blocks?.map((block, n) => this.#known.keep(name, first + n, block)) ?? null;
  }

  async #readBlocks({ version, part }: Source, first: number, last: number): Promise<Block[] | null> {
    const key = part.content(version.content).blocks;
    const numbers = Array.from({ length: last - first + 1 }, (_, n) => String(first + n));
    const stored = await this.#hashes.get(key, numbers);
    const blocks: Block[] = [];
    for (const [n, bytes] of stored.entries()) {
      const block = bytes && openBlock(bytes);
      if (!block) {
        const what = `Block ${first + n} of ${key} is`;
        const instead = 'its records were read one by one instead.';
        // Blocks of very large records are not made, so one that is missing need not be a fault; nor is it one where all of
        // the content was let go meanwhile.
        const areAllMade = version.blocks === Math.ceil(version.totalCount / blockRecords);
        if (areAllMade || bytes) this.#marks.tell(`${what} missing; ${instead}`);
        return null;
      }
      blocks.push(block);
    }
    return blocks;
  }

  /** Records by their places in the list; `null` when not all of them are there and whole. */
  async at(source: Source, { from, count }: Span): Promise<Buffer[] | null> {
    const { version, part } = source;
    const { order } = part.content(version.content);
    const list = {
      ...{ key: order, name: lastingName(order, version) },
      ...{ count: version.totalCount },
    };
    const ids = await this.#orders.ids(list, { from, count });
    return ids.length === count ? this.byIds(source, ids) : null;
  }

  /** Whole blocks of records, a line each, in some pieces; `null` when not all of them are there and whole. */
  async lines(source: Source, span: Span): Promise<Buffer[] | null> {
    const first = Math.floor(span.from / blockRecords);
    const last = Math.floor((span.from + span.count - 1) / blockRecords);
    const blocks = await this.#readBlocks(source, first, last);
    if (blocks) return blocks.map(blockLines);
    const records = await this.at(source, span);
    return records && [Buffer.concat(records.flatMap((record) => [record, newLine]))];
  }

  /** Records by id; `null` when not all of them are there and whole. */
  async byIds(source: Source, ids: readonly string[]): Promise<Buffer[] | null> {
    const records: Buffer[] = [];
    for (const record of await this.#open(source, ids)) {
      if (!record) return null;
      records.push(record);
    }
    return records;
  }

  /** One record by id: `undefined` when there is none with it, `null` when it is not whole. */
  async byId(source: Source, id: string): Promise<Buffer | null | undefined> {
    return (await this.#open(source, [id]))[0];
  }

  /** Those of some ids that records have, in the order of the ids; `null` when not all of them are whole. */
  async present(source: Source, ids: readonly string[]): Promise<Buffer[] | null> {
    const records: Buffer[] = [];
    for (const record of await this.#open(source, ids)) {
      if (record === null) return null;
      if (record) records.push(record);
    }
    return records;
  }

  async #open({ version, part }: Source, ids: readonly string[]): Promise<(Buffer | null | undefined)[]> {
    const key = part.content(version.content).records;
    const stored = await this.#hashes.get(key, ids);
    return stored.map((bytes) => bytes ?? undefined);
  }
}

const newLine = Buffer.from('\n');

/** What a key holds of a version, for ever: also where an operator empties Redis and fills it again. */
export function lastingName(key: string, { checksum, publishedAt }: Version): string {
  return `${key} ${publishedAt} ${checksum}`;
}
