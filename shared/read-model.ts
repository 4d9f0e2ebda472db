// Every read the API makes: records as the bytes that were stored at import, always of one version.

import { readChangeList } from './change-list.ts';
import { type CollectionKeys, type ContentKeys, collectionKeys } from './keys.ts';
import type { LiveVersions } from './live-versions.ts';
import type { Redis } from './redis.ts';
import { readKeptVersion, readKeptVersions, type Version } from './versions.ts';

/** Nothing was published yet, or what was live has vanished: there is nothing to answer from. */
export class NoVersionError extends Error {}

/** A version that was asked for by its number is not kept, or never was; the message says what is kept. */
export class VersionGoneError extends Error {}

/** A part of a list: records as JSON text, in list order. */
export interface RecordRange {
  readonly version: Version;
  readonly records: readonly Buffer[];
}

/** One record as JSON text; `null` when the version has none with that id. */
export interface SingleRecord {
  readonly version: Version;
  readonly record: Buffer | null;
}

/** One id that is not as it was. */
export interface Change {
  readonly id: number;
  readonly change: 'added' | 'changed' | 'removed';
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

/** Which records of a list are wanted: from an index, from 0, and how many at most. */
export interface Span {
  readonly from: number;
  readonly count: number;
}

/** One of the two tries of a read: what is known of the live version may be half a second old at the first. */
interface Attempt {
  readonly keys: CollectionKeys;
  readonly isLastTry: boolean;
}

/** Number of the kept version to read from; `undefined`: the live one. */
export type Pin = number | undefined;

/**
 * Reads from the versions that importers publish. Every read throws {@link NoVersionError}, {@link VersionGoneError},
 * or whatever the connection throws while Redis is away.
 */
export class ReadModel {
  readonly #redis: Redis;
  readonly #live: LiveVersions;
  readonly #keyPrefix: string;

  constructor({ redis, live, keyPrefix }: { redis: Redis; live: LiveVersions; keyPrefix: string }) {
    this.#redis = redis;
    this.#live = live;
    this.#keyPrefix = keyPrefix;
  }

  /** Records in list order; beyond the end there are none. */
  async range(collection: string, { from, count }: Span, pin: Pin): Promise<RecordRange> {
    return this.#read(collection, pin, async (version, content) => {
      const expected = Math.max(0, Math.min(count, version.totalCount - from));
      if (expected === 0) return { version, records: [] };
      const ids = await this.#redis.zrange(content.order, from, `${from + expected - 1}`);
      const records = await this.#records(content, ids);
      return records?.length === expected ? { version, records } : vanished;
    });
  }

  /** One record. @param id decimal digits without leading zeros */
  async byId(collection: string, id: string, pin: Pin): Promise<SingleRecord> {
    return this.#read(collection, pin, async (version, content) => {
      const record = await this.#redis.hgetBuffer(content.records, id);
      if (record === null && (await this.#redis.exists(content.records)) === 0) return vanished;
      return { version, record };
    });
  }

  /**
   * What is not as it was at the version `since`, by id.
   * @returns also `'later'` when `since` is later than the version at which the changes are to end
   */
  async changes(
    collection: string,
    { since, from, count }: Span & { since: number },
    pin: Pin,
  ): Promise<ChangeRange | 'later'> {
    return this.#read(collection, pin, async (version, content, { keys, isLastTry }) => {
      // This process may not have heard yet of a version that another one has answered from.
      if (since > version.version) return isLastTry ? 'later' : vanished;
      const list = await readChangeList(this.#redis, keys, { since, until: version.version });
      if (!list) {
        const [oldest] = await this.#redis.zrange(keys.changeSets, 0, '0');
        throw new VersionGoneError(
          `Changes of ${collection} since version ${since} are not kept; they are kept from published versions since ${oldest}.`,
        );
      }
      const part = list.slice(from, from + count);
      const present = part.filter(({ change }) => change !== 'removed').map(({ id }) => String(id));
      const records = await this.#records(content, present);
      if (!records) return vanished;
      const byId = new Map(present.map((id, i) => [Number(id), records[i] as Buffer]));
      const changes = part.map(({ id, change }) => ({ id, change, record: byId.get(id) ?? null }));
      return { version, totalCount: list.length, changes };
    });
  }

  /** Which version of each of these collections is live; `null` where none is. Asks Redis, whatever is known. */
  async liveVersions(collections: readonly string[]): Promise<ReadonlyMap<string, Version | null>> {
    return new Map(
      await Promise.all(collections.map(async (name) => [name, await this.#live.refresh(name)] as const)),
    );
  }

  /** Records by id; `null` when not all of them are there. */
  async #records({ records }: ContentKeys, ids: readonly string[]): Promise<Buffer[] | null> {
    if (ids.length === 0) return [];
    const found = await this.#redis.hmgetBuffer(records, ...ids);
    return found.includes(null) ? null : (found as Buffer[]);
  }

  /** Runs a read against one version; where its content has vanished, asks once more for the version. */
  async #read<Result>(
    collection: string,
    pin: Pin,
    read: (version: Version, content: ContentKeys, attempt: Attempt) => Promise<Result | typeof vanished>,
  ): Promise<Result> {
    const keys = collectionKeys(this.#keyPrefix, collection);
    for (const isLastTry of [false, true]) {
      const live = await (isLastTry ? this.#live.refresh(collection) : this.#live.get(collection));
      if (!live) throw new NoVersionError(`No version of ${collection} has been published yet.`);
      const version = pin === undefined ? live : await this.#kept(collection, keys, pin);
      const result = await read(version, keys.content(version.content), { keys, isLastTry });
      if (result !== vanished) return result;
    }
    throw new NoVersionError(
      `What is asked for of ${collection} is not whole in Redis; the next import mends the live version.`,
    );
  }

  async #kept(collection: string, keys: CollectionKeys, number: number): Promise<Version> {
    const version = await readKeptVersion(this.#redis, keys, number);
    if (version) return version;
    const kept = await readKeptVersions(this.#redis, keys);
    const numbers = kept.map((it) => it.version).join(', ');
    throw new VersionGoneError(`Version ${number} of ${collection} is not kept; these are: ${numbers}.`);
  }
}

const vanished = Symbol('the content of the version is gone');
