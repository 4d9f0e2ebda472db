// Every read the API makes: records as the bytes that were stored at import, always of one version.

import type { ServedCollection } from '../../shared/collections/collection.ts';
import {
  type Block,
  blockLines,
  blockRecords,
  openBlock,
  quarterRecords,
} from '../../shared/formats/block.ts';
import type { Search } from '../../shared/formats/search-entries.ts';
import { pageEntries } from '../../shared/formats/search-page.ts';
import { type CollectionKeys, type PartKeys, servedKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { damageIn } from '../../shared/redis/damage.ts';
import { readKeptVersion, readKeptVersions, type Version, versionOf } from '../../shared/versions.ts';
import { ChangeLists } from './change-lists.ts';
import {
  type ChangeKind,
  type ChangeList,
  ChangeWalk,
  changeKinds,
  isKeptForChanges,
  versionsWithChanges,
} from './change-sets.ts';
import { Fences } from './fences.ts';
import { HashReads } from './hash-reads.ts';
import { ListOrders } from './list-orders.ts';
import type { LiveVersions } from './live-versions.ts';
import { searchEntries } from './search.ts';

/** Nothing was published yet, or what was live has vanished: there is nothing to answer from. */
export class NoVersionError extends Error {}

/** What is asked for is in Redis, and not as it was stored; what it is was told as it was met. */
export class DamagedError extends NoVersionError {}

/** A version that was asked for by its number is not kept, or never was; the message says what is kept. */
export class VersionGoneError extends Error {}

/** What a read is of: a collection, and the version that was live, or asked for by its number, a moment ago. */
export interface ReadTarget {
  readonly served: ServedCollection;
  /** Number of the kept version to read from; `undefined`: the live one. */
  readonly pin: number | undefined;
  readonly version: Version;
}

/** Which records of a list are wanted: from an index, from 0, and how many at most. */
export interface Span {
  readonly from: number;
  readonly count: number;
}

/** A part of a list: within blocks as they are stored, or, where those are not whole, its records as JSON text. */
export interface ListRange {
  readonly version: Version;
  readonly part:
    | { readonly blocks: readonly Block[]; readonly span: Span }
    | { readonly records: readonly Buffer[] };
}

/** A part of what a search finds: records as JSON text. */
export interface SearchRange {
  readonly version: Version;
  readonly totalCount: number;
  readonly records: readonly Buffer[];
}

/** One record as JSON text; `null` when the version has none with that id. */
export interface SingleRecord {
  readonly version: Version;
  readonly record: Buffer | null;
}

/** One id whose record is another one, is new, or is gone. */
export interface Change {
  readonly id: number;
  readonly change: ChangeKind;
  /** The record as it is now; `null` when it was removed. */
  readonly record: Buffer | null;
}

/** A part of the list of changes, by id. */
export interface ChangeRange {
  /** The version at which the changes end. */
  readonly version: Version;
  readonly totalCount: number;
  readonly changes: readonly Change[];
}

/** A version to read from, with its keys. What is known of the live one may be half a second old at the first try. */
interface Attempt {
  readonly version: Version;
  readonly keys: CollectionKeys;
  readonly part: PartKeys;
  readonly isLastTry: boolean;
}

/** What a read model reads by. */
export interface ReadModelOptions {
  readonly redis: Redis;
  readonly live: LiveVersions;
  readonly keyPrefix: string;
  /** Told of what is not as it was stored, as a sentence; readers are answered all the same where that can be. */
  readonly onDamage: (message: string) => void;
}

/**
 * Reads from the versions that importers publish. Every read throws {@link NoVersionError}, {@link VersionGoneError},
 * or whatever the connection throws while Redis is away.
 */
export class ReadModel {
  readonly #redis: Redis;
  readonly #hashes: HashReads;
  readonly #orders: ListOrders;
  readonly #fences: Fences;
  readonly #live: LiveVersions;
  readonly #keyPrefix: string;
  readonly #onDamage: (message: string) => void;
  readonly #keys = new Map<ServedCollection, ReturnType<typeof servedKeys>>();
  readonly #changeLists = new ChangeLists();

  constructor({ redis, live, keyPrefix, onDamage }: ReadModelOptions) {
    this.#redis = redis;
    this.#hashes = new HashReads(redis);
    this.#orders = new ListOrders(this.#hashes);
    this.#fences = new Fences(redis);
    this.#live = live;
    this.#keyPrefix = keyPrefix;
    this.#onDamage = onDamage;
  }

  /** The version that a read is to be answered from. */
  async target(served: ServedCollection, pin: number | undefined): Promise<ReadTarget> {
    try {
      const live = versionOfLive(served, await this.#live.get(served.source));
      return { served, pin, version: pin === undefined ? live : await this.#kept(served, pin) };
    } catch (error) {
      return this.#refuse(error);
    }
  }

  /** Records in list order; beyond the end there are none. */
  async list(target: ReadTarget, span: Span): Promise<ListRange> {
    return this.#read(target, async ({ version, part }) => {
      const { from } = span;
      const count = Math.max(0, Math.min(span.count, version.totalCount - from));
      if (count === 0) {
        await this.#reach(part.content(version.content).order);
        return { version, part: { records: [] } };
      }
      const byBlocks = async () => {
        const blocks = await this.#blocks(version, part, { from, count });
        return blocks && { blocks, span: { from: from % blockRecords, count } };
      };
      const byRecords = async () => {
        const records = await this.#recordsAt(version, part, { from, count });
        return records && { records };
      };
      // To inflate a quarter of a block takes longer than to read so few records by themselves.
      const isLastQuarter = from % quarterRecords === 0 && from + count === version.totalCount;
      const isFew = count < quarterRecords && !isLastQuarter;
      const [first, second] = isFew ? [byRecords, byBlocks] : [byBlocks, byRecords];
      const found = (await first()) ?? (await second());
      return found ? { version, part: found } : vanished;
    });
  }

  /**
   * All records in list order, a line each, in pieces that are read as they are asked for; the first one is read already.
   * The pieces throw NoVersionError where the content of the version goes away meanwhile.
   */
  async lines(target: ReadTarget): Promise<{ version: Version; lines: AsyncGenerator<Buffer, void> }> {
    return this.#read(target, async ({ version, part }) => {
      const first = await this.#linesFrom(version, part, 0);
      return first ? { version, lines: this.#allLines(version, part, first) } : vanished;
    });
  }

  async *#allLines(version: Version, part: PartKeys, first: readonly Buffer[]): AsyncGenerator<Buffer, void> {
    yield* first;
    for (let from = linesAtOnce; from < version.totalCount; from += linesAtOnce) {
      const pieces = await this.#linesFrom(version, part, from);
      if (!pieces) throw new NoVersionError(`Version ${version.version} went away while it was sent.`);
      yield* pieces;
    }
  }

  /** The lines of the records from a place in the list on; `null` when not all of them are there. */
  async #linesFrom(version: Version, part: PartKeys, from: number): Promise<Buffer[] | null> {
    const span = { from, count: Math.min(linesAtOnce, version.totalCount - from) };
    const blocks = await this.#blocks(version, part, span);
    if (blocks) return blocks.map(blockLines);
    const records = await this.#recordsAt(version, part, span);
    return records && [Buffer.concat(records.flatMap((record) => [record, newLine]))];
  }

  /** What a search finds, in the order of its results. */
  async search(target: ReadTarget, search: Search, span: Span): Promise<SearchRange> {
    return this.#read(target, async ({ version, part }) => {
      const { entries, fences } = part.content(version.content);
      const count = Math.ceil(version.entries / pageEntries);
      const index = { pages: entries, fences: { key: fences, name: lastingName(fences, version), count } };
      const found = await searchEntries(
        { hashes: this.#hashes, fences: this.#fences },
        { index, search, span },
      );
      if (!found) return vanished;
      // What lies where is remembered, so Redis may not have been asked; the records are not.
      if (found.ids.length === 0) await this.#reach(entries);
      const records = await this.#records(version, part, found.ids);
      return records ? { version, totalCount: found.totalCount, records } : vanished;
    });
  }

  /** One record. @param id decimal digits without leading zeros */
  async byId(target: ReadTarget, id: string): Promise<SingleRecord> {
    return this.#read(target, async ({ version, part }) => {
      const { records } = part.content(version.content);
      const [record = null] = await this.#hashes.get(records, [id]);
      if (record === null && (await this.#redis.exists(records)) === 0) return vanished;
      return { version, record };
    });
  }

  /**
   * What changed since the version `since`, by id.
   * @param isHeld whether the client has the answer that ends at a version already: then nothing is joined for it
   * @returns also `'later'` when `since` is later than the version at which the changes are to end, and the version alone
   * when the client has the answer
   */
  async changes(
    target: ReadTarget,
    { since, from, count }: Span & { since: number },
    isHeld: (version: Version) => boolean,
  ): Promise<ChangeRange | { readonly held: Version } | 'later'> {
    return this.#read(target, async ({ version, keys, part, isLastTry }) => {
      // This process may not have heard yet of a version that another one has answered from.
      if (since > version.version) return isLastTry ? 'later' : vanished;
      const isEmpty = since === version.version;
      if (isEmpty) await this.#reach(keys.live);
      else await this.#requireChanges(target.served, { since, keys });
      if (isHeld(version)) return { held: version };
      const list = isEmpty
        ? noChanges
        : await this.#changeList(target.served, { since, version, keys, part });
      const ids = [...list.ids.subarray(from, from + count)];
      const kinds = [...list.kinds.subarray(from, from + count)].map(
        (kind) => changeKinds[kind] as ChangeKind,
      );
      const present = ids.filter((_id, n) => kinds[n] !== 'removed').map(String);
      const records = await this.#records(version, part, present);
      if (!records) return vanished;
      const left = [...records];
      const changes = ids.map((id, n) => {
        const change = kinds[n] as ChangeKind;
        return { id, change, record: change === 'removed' ? null : (left.shift() as Buffer) };
      });
      return { version, totalCount: list.ids.length, changes };
    });
  }

  /** Which version of each of these collections is live, by name; `null` where none is. Asks Redis, whatever is known. */
  async liveVersions(served: readonly ServedCollection[]): Promise<ReadonlyMap<string, Version | null>> {
    const sources = [...new Set(served.map(({ source }) => source))];
    const live = new Map(
      await Promise.all(
        sources.map(async (source) => {
          const found = await this.#live.refresh(source).catch((error) => this.#refuse(error));
          return [source, found] as const;
        }),
      ),
    );
    return new Map(
      served.map((it) => {
        const version = live.get(it.source);
        return [it.collection.name, version ? versionOf(it, version) : null];
      }),
    );
  }

  /** Throws while Redis is away: nothing is said then, not even that there is nothing. */
  async #reach(key: string): Promise<void> {
    await this.#redis.exists(key);
  }

  /** Built once for each collection. */
  #keysOf(served: ServedCollection): ReturnType<typeof servedKeys> {
    const known = this.#keys.get(served);
    if (known) return known;
    const keys = servedKeys(this.#keyPrefix, served);
    this.#keys.set(served, keys);
    return keys;
  }

  /** @throws VersionGoneError where changes since a version are not kept */
  async #requireChanges(
    { collection }: ServedCollection,
    { since, keys }: { since: number; keys: CollectionKeys },
  ): Promise<void> {
    if (await isKeptForChanges(this.#redis, keys, since)) return;
    const [oldest] = await this.#redis.zrange(keys.changeSets, 0, '0');
    throw new VersionGoneError(
      `Changes of ${collection.name} since version ${since} are not kept; they are kept from published versions since ${oldest}.`,
    );
  }

  /** @throws VersionGoneError where Redis has lost a change set */
  async #changeList(
    { collection }: ServedCollection,
    { since, version, keys, part }: Pick<Attempt, 'version' | 'keys' | 'part'> & { since: number },
  ): Promise<ChangeList> {
    // The time is part of the name in case an operator empties Redis and the numbers begin again.
    const ending = [collection.name, version.version, version.publishedAt].join();
    const begin = async () =>
      new ChangeWalk(this.#redis, part, await versionsWithChanges(this.#redis, keys, version.version));
    const list = await this.#changeLists.get({ ending, since, begin });
    if (list) return list;
    throw new VersionGoneError(
      `Redis has lost a part of what changed of ${collection.name} since version ${since}; read the whole list again.`,
    );
  }

  /** The blocks in which a span lies; `null` when not all of them are there and whole. */
  async #blocks(version: Version, part: PartKeys, { from, count }: Span): Promise<Block[] | null> {
    const key = part.content(version.content).blocks;
    const first = Math.floor(from / blockRecords);
    const last = Math.floor((from + count - 1) / blockRecords);
    const numbers = Array.from({ length: last - first + 1 }, (_, n) => String(first + n));
    const stored = await this.#hashes.get(key, numbers);
    const blocks: Block[] = [];
    for (const [n, bytes] of stored.entries()) {
      const block = bytes && openBlock(bytes);
      if (!block) {
        // Blocks of very large records are not made, so one that is missing need not be a fault.
        const isMade = bytes !== null || version.blocks === Math.ceil(version.totalCount / blockRecords);
        if (isMade)
          this.#onDamage(
            `Block ${first + n} of ${key} is ${bytes ? 'corrupted' : 'missing'}; its records were read one by one instead.`,
          );
        return null;
      }
      blocks.push(block);
    }
    return blocks;
  }

  /** Records by their place in the list; `null` when not all of them are there. */
  async #recordsAt(version: Version, part: PartKeys, { from, count }: Span): Promise<Buffer[] | null> {
    const { order } = part.content(version.content);
    const list = { key: order, name: lastingName(order, version), count: version.totalCount };
    const ids = await this.#orders.ids(list, { from, count });
    return ids.length === count ? this.#records(version, part, ids) : null;
  }

  /** Records by id; `null` when not all of them are there. */
  async #records(version: Version, part: PartKeys, ids: readonly string[]): Promise<Buffer[] | null> {
    const found = await this.#hashes.get(part.content(version.content).records, ids);
    return found.includes(null) ? null : (found as Buffer[]);
  }

  /** Runs a read against one version; where its content has vanished, asks once more for the version. */
  async #read<Result>(
    { served, pin, version }: ReadTarget,
    read: (attempt: Attempt) => Promise<Result | typeof vanished>,
  ): Promise<Result> {
    try {
      return await this.#readTwice({ served, pin, version }, read);
    } catch (error) {
      return this.#refuse(error);
    }
  }

  /** What is not as it was stored is told; nothing is answered from it. */
  async #refuse(error: unknown): Promise<never> {
    const damage = await damageIn(this.#redis, error);
    if (!damage) throw error;
    this.#onDamage(damage.message);
    throw new DamagedError('What is asked for is damaged in Redis; the next import mends the live version.');
  }

  async #readTwice<Result>(
    { served, pin, version }: ReadTarget,
    read: (attempt: Attempt) => Promise<Result | typeof vanished>,
  ): Promise<Result> {
    const { keys, part } = this.#keysOf(served);
    const result = await read({ version, keys, part, isLastTry: false });
    if (result !== vanished) return result;
    const live = versionOfLive(served, await this.#live.refresh(served.source));
    const now = pin === undefined ? live : await this.#kept(served, pin);
    const second = await read({ version: now, keys, part, isLastTry: true });
    if (second !== vanished) return second;
    const message = `What is asked for of ${served.collection.name} is not whole in Redis; the next import mends the live version.`;
    this.#onDamage(message);
    throw new DamagedError(message);
  }

  async #kept(served: ServedCollection, number: number): Promise<Version> {
    const { keys } = this.#keysOf(served);
    const version = await readKeptVersion(this.#redis, keys, number);
    const its = version && versionOf(served, version);
    if (its) return its;
    const kept = await readKeptVersions(this.#redis, keys);
    const numbers = kept.map((it) => it.version).join(', ');
    throw new VersionGoneError(
      `Version ${number} of ${served.collection.name} is not kept; these are: ${numbers}.`,
    );
  }
}

const newLine = Buffer.from('\n');

/** How many records are read at once to be streamed: some blocks. */
const linesAtOnce = 2 * blockRecords;

/** @throws NoVersionError when nothing is live */
function versionOfLive(served: ServedCollection, live: Version | null): Version {
  const version = live && versionOf(served, live);
  if (!version) throw new NoVersionError(`No version of ${served.collection.name} has been published yet.`);
  return version;
}

/** What a key holds of a version, for ever: also where an operator empties Redis and the numbers begin again. */
function lastingName(key: string, { checksum, publishedAt }: Version): string {
  return `${key} ${publishedAt} ${checksum}`;
}

const noChanges: ChangeList = { ids: new Float64Array(), kinds: new Uint8Array() };

const vanished = Symbol('the content of the version is gone');
