// Every read the API makes: records as the bytes that were stored at import, always of one version.

import { type ContentKeys, collectionKeys } from './keys.ts';
import type { LiveVersions } from './live-versions.ts';
import type { Redis } from './redis.ts';
import type { Version } from './versions.ts';

/** Nothing was published yet, or what was live has vanished: there is nothing to answer from. */
export class NoVersionError extends Error {}

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

/** Reads from the versions that importers publish. */
export class ReadModel {
  readonly #redis: Redis;
  readonly #live: LiveVersions;
  readonly #keyPrefix: string;

  constructor({ redis, live, keyPrefix }: { redis: Redis; live: LiveVersions; keyPrefix: string }) {
    this.#redis = redis;
    this.#live = live;
    this.#keyPrefix = keyPrefix;
  }

  /**
   * Records of the live version in list order.
   * @param from index of the first, from 0; beyond the end there are none
   * @throws NoVersionError; whatever the connection throws while Redis is away
   */
  async range(collection: string, { from, count }: { from: number; count: number }): Promise<RecordRange> {
    return this.#read(collection, async (version, keys) => {
      const expected = Math.max(0, Math.min(count, version.totalCount - from));
      if (expected === 0) return { version, records: [] };
      const ids = await this.#redis.zrange(keys.order, from, `${from + expected - 1}`);
      const records = ids.length === 0 ? [] : await this.#redis.hmgetBuffer(keys.records, ...ids);
      const whole = records.filter((record) => record !== null);
      return whole.length === expected ? { version, records: whole } : vanished;
    });
  }

  /**
   * One record of the live version.
   * @param id decimal digits without leading zeros
   * @throws NoVersionError; whatever the connection throws while Redis is away
   */
  async byId(collection: string, id: string): Promise<SingleRecord> {
    return this.#read(collection, async (version, keys) => {
      const record = await this.#redis.hgetBuffer(keys.records, id);
      if (record === null && (await this.#redis.exists(keys.records)) === 0) return vanished;
      return { version, record };
    });
  }

  /** Which version of each of these collections is live; `null` where none is. Asks Redis, whatever is known. */
  async liveVersions(collections: readonly string[]): Promise<ReadonlyMap<string, Version | null>> {
    return new Map(
      await Promise.all(collections.map(async (name) => [name, await this.#live.refresh(name)] as const)),
    );
  }

  /** Runs a read against the live version; where its content has vanished, asks once more which version is live. */
  async #read<Result>(
    collection: string,
    read: (version: Version, keys: ContentKeys) => Promise<Result | typeof vanished>,
  ): Promise<Result> {
    const keys = collectionKeys(this.#keyPrefix, collection);
    for (const find of [this.#live.get, this.#live.refresh]) {
      const version = await find.call(this.#live, collection);
      if (!version) throw new NoVersionError(`No version of ${collection} has been published yet.`);
      const result = await read(version, keys.content(version.content));
      if (result !== vanished) return result;
    }
    throw new NoVersionError(
      `The live version of ${collection} is not whole in Redis; the next import restores it.`,
    );
  }
}

const vanished = Symbol('the content of the version is gone');
