// Stages the content of one collection in Redis by plain commands: records, order, blocks, search index and digests.

import { createHash, hash } from 'node:crypto';
import type { Collection, FlagSearch } from '../shared/collections/define.ts';
import { execute, type Redis } from '../shared/redis/connections.ts';
import { blockRecords, maxBlockLength, packBlock, packIds } from '../shared/store/block.ts';
import type { ContentKeys } from '../shared/store/keys.ts';
import { exactValues, memberOf, prefixTexts } from '../shared/store/search-index.ts';
import type { ContentFacts } from '../shared/store/versions.ts';
import { FlagBits, readWordIndex } from '../shared/store/word-index.ts';

/** The place of a staged content. */
export interface Staging {
  readonly redis: Redis;
  /** How long staged keys live after each write or renewal, in ms. */
  readonly lifetimeMs: number;
}

/** A valid record. */
export interface ContentRecord {
  readonly id: number;
  /** Its JSON text, on one line. */
  readonly json: string;
  readonly record: unknown;
}

/** A batch is sent when it has this many records or bytes: Redis usually handles it within a millisecond. */
const batchRecords = 50;
const batchBytes = 1_000_000;

/** A batch of the index of words is sent when it has this many bytes. */
const wordsBytes = 100_000;

/** How many batches may be sent before Redis has replied to the first. */
const maxInFlight = 16;

type Command = readonly [name: 'hset' | 'zadd', key: string, args: (string | number | Buffer)[]];

/** Stages one content. `flush` and `finish` throw whatever Redis replies. */
export class ContentWriter {
  readonly #staging: Staging;
  readonly #keys: ContentKeys;
  readonly #collection: Collection;
  readonly #checksum = createHash('sha256');
  readonly #set = new SetDigest();
  #linesLength = 0;
  #count = 0;
  #blocks = 0;
  /** Unsent records: ids and JSON texts in turn. */
  #records: string[] = [];
  /** Unsent members and the total count, by prefix search. */
  readonly #prefix = new Map<string, { members: (string | number)[]; count: number }>();
  #bytes = 0;
  /** The ids of each value, by exact search, separated by spaces. */
  readonly #exact = new Map<string, Map<string, string>>();
  readonly #flags = new Map<string, FlagBits>();
  /** The block that is not full yet. Its texts are `null` if its records are too large for a block. */
  #ids: number[] = [];
  #texts: string[] | null = [];
  #textLength = 0;
  /** Batches that were sent or are being compressed, the oldest first. */
  readonly #inFlight: Promise<void>[] = [];

  constructor(staging: Staging, keys: ContentKeys, collection: Collection) {
    this.#staging = staging;
    this.#keys = keys;
    this.#collection = collection;
    for (const search of Object.keys(keys.prefix)) this.#prefix.set(search, { members: [], count: 0 });
    for (const search of Object.keys(keys.exact)) this.#exact.set(search, new Map());
    for (const search of Object.keys(collection.flagSearches)) this.#flags.set(search, new FlagBits());
  }

  /** Whether enough records are collected to send them, see {@link flush}. */
  get isFull(): boolean {
    return this.#records.length >= 2 * batchRecords || this.#bytes >= batchBytes;
  }

  /** Appends a record. Its id must be new. */
  add({ id, json, record }: ContentRecord): void {
    const length = Buffer.byteLength(json);
    this.#count += 1;
    this.#set.add(hash('sha256', json, 'buffer'));
    this.#linesLength += length + 1;
    this.#records.push(String(id), json);
    this.#bytes += length;
    for (const [search, its] of prefixTexts(this.#collection, record)) {
      const known = this.#prefix.get(search) as { members: (string | number)[]; count: number };
      known.members.push(0, memberOf(its, id));
      known.count += 1;
    }
    for (const [search, values] of exactValues(this.#collection, record)) {
      const known = this.#exact.get(search) as Map<string, string>;
      for (const value of values) {
        const ids = known.get(value);
        if (ids === undefined) known.set(ownText(value), String(id));
        else known.set(value, `${ids} ${id}`);
      }
    }
    for (const [search, bits] of this.#flags)
      bits.add(id, (this.#collection.flagSearches[search] as FlagSearch).valueOf(record));
    this.#addToBlock(id, json);
  }

  /** Sends the collected records; waits if Redis is too far behind. */
  async flush(): Promise<void> {
    if (this.#records.length === 0) return;
    const batch: Command[] = [['hset', this.#keys.records, this.#records]];
    for (const [search, known] of this.#prefix) {
      if (known.members.length > 0) batch.push(['zadd', this.#keys.prefix[search] as string, known.members]);
      known.members = [];
    }
    const texts = this.#records.filter((_, n) => n % 2 === 1);
    this.#checksum.update(`${texts.join('\n')}\n`);
    this.#records = [];
    this.#bytes = 0;
    await this.#send(() => batch);
  }

  /** Waits until no write is in progress, however each ends. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#inFlight);
  }

  /** Sends everything left and waits until Redis has stored it. */
  async finish(): Promise<ContentFacts> {
    await this.flush();
    if (this.#ids.length > 0) this.#endBlock();
    const searches: Record<string, number> = {};
    for (const [search, { count }] of this.#prefix) searches[search] = count;
    for (const [search, values] of this.#exact) {
      searches[search] = values.size;
      await this.#sendExact(this.#keys.exact[search] as string, values);
    }
    await Promise.all(this.#inFlight);
    searches['words'] = await this.#writeWords();
    await Promise.all(this.#inFlight);
    return {
      totalCount: this.#count,
      checksum: this.#checksum.digest('hex'),
      setDigest: this.#set.hex(),
      linesLength: this.#linesLength,
      blocks: this.#blocks,
      searches,
    };
  }

  #addToBlock(id: number, json: string): void {
    this.#ids.push(id);
    this.#textLength += json.length;
    if (this.#textLength > maxBlockLength) this.#texts = null;
    this.#texts?.push(json);
    if (this.#ids.length === blockRecords) this.#endBlock();
  }

  #endBlock(): void {
    const number = String(Math.ceil(this.#count / blockRecords) - 1);
    const order: Command = ['hset', this.#keys.order, [number, packIds(this.#ids)]];
    const texts = this.#texts;
    this.#ids = [];
    this.#texts = [];
    this.#textLength = 0;
    if (texts) this.#blocks += 1;
    // The next flush waits for it; one block is small.
    void this.#send(async () =>
      texts ? [order, ['hset', this.#keys.blocks, [number, await packBlock(texts)]]] : [order],
    ).catch(() => undefined);
  }

  /** Reads the names back in their order, and indexes their words. @returns the number of fields */
  async #writeWords(): Promise<number> {
    const { redis } = this.#staging;
    let fields = 0;
    let args: (string | Buffer)[] = [];
    let length = 0;
    const flush = () => {
      const batch: Command[] = [['hset', this.#keys.words, args]];
      [args, length] = [[], 0];
      return this.#send(() => batch);
    };
    const index = await readWordIndex(redis, this.#keys.prefix['name'] as string, this.#flags);
    for (const [field, value] of index.fields()) {
      fields += 1;
      args.push(field, value);
      length += value.length;
      if (length >= wordsBytes) await flush();
    }
    if (args.length > 0) await flush();
    return fields;
  }

  async #sendExact(key: string, values: ReadonlyMap<string, string>): Promise<void> {
    let args: string[] = [];
    let length = 0;
    for (const [value, ids] of values) {
      args.push(value, ids);
      length += ids.length;
      if (args.length < 4 * batchRecords && length < batchBytes) continue;
      const batch: Command[] = [['hset', key, args]];
      args = [];
      length = 0;
      await this.#send(() => batch);
    }
    if (args.length > 0) await this.#send(() => [['hset', key, args]]);
  }

  async #send(commands: () => readonly Command[] | Promise<readonly Command[]>): Promise<void> {
    const sent = Promise.resolve(commands()).then((batch) => write(this.#staging, batch));
    sent.catch(() => undefined); // The next await throws it.
    this.#inFlight.push(sent);
    while (this.#inFlight.length >= maxInFlight) await this.#inFlight.shift();
  }
}

/** Copies a text: a slice of upstream's text would keep all of that text in memory. */
function ownText(text: string): string {
  return Buffer.from(text).toString();
}

/**
 * Writes staged keys together with their expiry in one step, so that a process that dies leaves no permanent key.
 * A repetition has the same result.
 */
async function write({ redis, lifetimeMs }: Staging, batch: readonly Command[]): Promise<void> {
  await execute(() => {
    const transaction = redis.multi();
    for (const [name, key, args] of batch) {
      if (name === 'hset') transaction.hset(key, ...args);
      else transaction.zadd(key, ...(args as (string | number)[]));
      transaction.pexpire(key, lifetimeMs);
    }
    return transaction;
  });
}

/** A SHA-256 as this many numbers of 32 bits. */
const limbs = 8;
const limbBytes = 4;
const base = 2 ** 32;

/** Carries are added after this many digests: sums stay below 2^53. */
const carryAfter = 2 ** 20;

/** Adds SHA-256 digests, modulo 2^256. */
export class SetDigest {
  /** The lowest limb is the last one, as in a digest. */
  readonly #sums = new Float64Array(limbs);
  #added = 0;

  /** Adds a digest. @param digest 32 bytes, big-endian */
  add(digest: Buffer): void {
    for (let n = 0; n < limbs; n += 1)
      this.#sums[n] = (this.#sums[n] as number) + digest.readUInt32BE(n * limbBytes);
    this.#added += 1;
    if (this.#added % carryAfter === 0) this.#carry();
  }

  /** Returns the sum as hexadecimal digits, big-endian. */
  hex(): string {
    this.#carry();
    const bytes = Buffer.alloc(limbs * limbBytes);
    for (let n = 0; n < limbs; n += 1) bytes.writeUInt32BE(this.#sums[n] as number, n * limbBytes);
    return bytes.toString('hex');
  }

  #carry(): void {
    let carried = 0;
    for (let n = limbs - 1; n >= 0; n -= 1) {
      const sum = (this.#sums[n] as number) + carried;
      this.#sums[n] = sum % base;
      carried = Math.floor(sum / base);
    }
  }
}
