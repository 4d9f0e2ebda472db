// Reads records of a content: blocks by position, records by id; batched into one HMGET, and kept in one cache.

import { LRUCache } from 'lru-cache';
import type { Redis } from '../../shared/redis/connections.ts';
import {
  type Block,
  blockLines,
  blockRecords,
  idBytes,
  openBlock,
  unpackId,
  unpackIds,
} from '../../shared/store/block.ts';
import { MissingPartError, type ReadTarget } from './versions.ts';

/** A part of a list: its first index, from 0, and how many elements at most. */
export interface Span {
  readonly from: number;
  readonly count: number;
}

/** Reads records. Methods throw MissingPartError, or the errors of the connection. */
export class Records {
  readonly #hashes: HmgetBatcher;
  readonly #cache: ContentCache;

  constructor(hashes: HmgetBatcher, cache: ContentCache) {
    this.#hashes = hashes;
    this.#cache = cache;
  }

  /** Returns the blocks that a span lies in; `null` if one is not stored, as blocks of very large records are. */
  async blocks(target: ReadTarget, span: Span): Promise<Block[] | null> {
    const blocks = await Promise.all(blockNumbers(span).map((number) => this.#block(target, number)));
    return blocks.every((block) => block !== null) ? blocks : null;
  }

  async #block({ content, contentName }: ReadTarget, number: number): Promise<Block | null> {
    return this.#cache.get(`${contentName} block ${number}`, async () => {
      const [bytes] = await this.#hashes.get(content.blocks, [String(number)]);
      const block = bytes && openBlock(ownCopy(bytes));
      if (!block) return { value: null, size: 0 };
      return { value: block, size: block.stored.length + block.textLength };
    });
  }

  /** Returns the records of a span, which lies within the list. */
  async at(target: ReadTarget, span: Span): Promise<Buffer[]> {
    const numbers = blockNumbers(span);
    const orders = await Promise.all(
      numbers.map((number) => orderOf(this.#hashes, this.#cache, target, number)),
    );
    const from = span.from % blockRecords;
    return this.byIds(target, orders.flatMap(unpackIds).slice(from, from + span.count));
  }

  /** Returns the records of whole blocks, one per line, in several pieces. They are not cached. */
  async lines(target: ReadTarget, span: Span): Promise<Buffer[]> {
    const stored = await this.#hashes.get(target.content.blocks, blockNumbers(span).map(String));
    const blocks = stored.map((bytes) => bytes && openBlock(bytes));
    if (blocks.every((block) => block !== null)) return blocks.map(blockLines);
    const records = await this.at(target, span);
    return [Buffer.concat(records.flatMap((record) => [record, newLine]))];
  }

  /** Returns the records with these ids; the content has all of them. */
  async byIds(target: ReadTarget, ids: readonly string[]): Promise<Buffer[]> {
    const { records: key } = target.content;
    const records = await this.#hashes.get(key, ids);
    if (!records.every((record) => record !== null)) throw new MissingPartError(key);
    return records;
  }

  /** Returns the record of each id, `null` if the content has none. */
  find({ content }: ReadTarget, ids: readonly string[]): Promise<(Buffer | null)[]> {
    return this.#hashes.get(content.records, ids);
  }
}

/** Returns the packed ids of a block. */
async function orderOf(
  hashes: HmgetBatcher,
  cache: ContentCache,
  { content, contentName, version }: ReadTarget,
  number: number,
): Promise<Buffer> {
  return cache.get(`${contentName} order ${number}`, async () => {
    const [packed] = await hashes.get(content.order, [String(number)]);
    const count = Math.min(blockRecords, version.totalCount - number * blockRecords);
    if (packed?.length !== count * idBytes) throw new MissingPartError(content.order);
    return { value: ownCopy(packed), size: packed.length };
  });
}

/** Returns the id at a position of the list, from 0. */
export async function idAt(
  hashes: HmgetBatcher,
  cache: ContentCache,
  target: ReadTarget,
  position: number,
): Promise<string> {
  const packed = await orderOf(hashes, cache, target, Math.floor(position / blockRecords));
  return unpackId(packed, position % blockRecords);
}

function blockNumbers({ from, count }: Span): number[] {
  const first = Math.floor(from / blockRecords);
  const last = Math.floor((from + count - 1) / blockRecords);
  return Array.from({ length: last - first + 1 }, (_, n) => first + n);
}

/** Copies a value for the cache: a reply of Redis is part of a larger buffer, which would stay in memory. */
function ownCopy(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

const newLine = Buffer.from('\n');

/** A command is sent once it has this many fields: a longer one would delay other clients of Redis. */
const maxFields = 500;

/** The fields of one hash that this turn reads. */
interface Batch {
  readonly fields: string[];
  readonly reply: Promise<(Buffer | null)[]>;
  send(): void;
}

/** Batches reads of hash fields on one borrowed connection. */
export class HmgetBatcher {
  readonly #redis: Redis;
  readonly #batches = new Map<string, Batch>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Returns the values of fields in their order; `null` for a missing field. Throws the errors of the connection. */
  async get(key: string, fields: readonly string[]): Promise<(Buffer | null)[]> {
    if (fields.length === 0) return [];
    const batch = this.#batches.get(key) ?? this.#begin(key);
    const from = batch.fields.length;
    for (const field of fields) batch.fields.push(field);
    const until = batch.fields.length;
    if (until >= maxFields) this.#send(key, batch);
    const values = await batch.reply;
    return values.length === fields.length ? values : values.slice(from, until);
  }

  #begin(key: string): Batch {
    // The first batch of a turn sends all batches of that turn, so that they leave in one write.
    if (this.#batches.size === 0) atEndOfTurn(() => this.#sendAll());
    const fields: string[] = [];
    let send = () => {};
    const reply = new Promise<(Buffer | null)[]>((resolve, reject) => {
      send = () => void this.#redis.hmgetBuffer(key, ...fields).then(resolve, reject);
    });
    const batch: Batch = { fields, reply, send };
    this.#batches.set(key, batch);
    return batch;
  }

  #send(key: string, batch: Batch): void {
    this.#batches.delete(key);
    batch.send();
  }

  #sendAll(): void {
    for (const [key, batch] of this.#batches) this.#send(key, batch);
  }
}

let waiting: (() => void)[] = [];

/** Calls functions at the end of this turn of the event loop, in the order in which they were passed. */
export function atEndOfTurn(act: () => void): void {
  if (waiting.length === 0) setImmediate(endTurn);
  waiting.push(act);
}

function endTurn(): void {
  const acts = waiting;
  waiting = [];
  for (const act of acts) act();
}

/** The size of the cache of one process, in bytes. */
const defaultBytes = 64_000_000;

/** A value with its size. */
interface Sized<Value> {
  readonly value: Value;
  /** In bytes; a value of size 0 is not cached. */
  readonly size: number;
}

/** A cache of blocks, orders of lists, and change lists. Names begin with the name of the content. */
export class ContentCache {
  readonly #known: LRUCache<string, Sized<unknown>>;
  readonly #reading = new Map<string, Promise<Sized<unknown>>>();

  constructor(bytes = defaultBytes) {
    this.#known = new LRUCache({ maxSize: bytes, sizeCalculation: ({ size }) => size });
  }

  /** Returns the value of a name, which always has the same type. Concurrent callers share one read. */
  async get<Value>(name: string, read: () => Promise<Sized<Value>>): Promise<Value> {
    const known = this.#known.get(name) ?? (await (this.#reading.get(name) ?? this.#read(name, read)));
    return known.value as Value;
  }

  async #read<Value>(name: string, read: () => Promise<Sized<Value>>): Promise<Sized<Value>> {
    const reading = read();
    this.#reading.set(name, reading);
    try {
      const found = await reading;
      if (found.size > 0) this.#known.set(name, found);
      return found;
    } finally {
      this.#reading.delete(name);
    }
  }
}
