// Which version a read is of. A read whose content has gone meanwhile, or is damaged, is made once more.

import type { ServedCollection } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { DamagedKeyError, damageIn } from '../../shared/redis/damage.ts';
import { type CollectionKeys, type PartKeys, servedKeys } from '../../shared/store/keys.ts';
import {
  readKeptVersion,
  readKeptVersions,
  requireKnownFormat,
  UnknownFormatError,
  type Version,
  versionOf,
} from '../../shared/store/versions.ts';
import type { DamageMarks } from './damage-marks.ts';
import type { LiveVersions } from './live-versions.ts';

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

/** A version to read from, with its keys. What is known of the live one may be half a second old at the first try. */
export interface Attempt {
  readonly version: Version;
  readonly keys: CollectionKeys;
  readonly part: PartKeys;
  readonly isLastTry: boolean;
}

/** What a read gives that did not find all of what it was to read. */
export const vanished = Symbol('the content of the version is gone');

/** What versions are read by. */
export interface VersionReadsOptions {
  readonly redis: Redis;
  readonly live: LiveVersions;
  readonly keyPrefix: string;
  readonly marks: DamageMarks;
}

/** Finds versions. Every method throws NoVersionError, VersionGoneError, or whatever the connection throws while Redis is away. */
export class VersionReads {
  readonly #redis: Redis;
  readonly #live: LiveVersions;
  readonly #keyPrefix: string;
  readonly #marks: DamageMarks;
  readonly #keys = new Map<ServedCollection, ReturnType<typeof servedKeys>>();

  constructor({ redis, live, keyPrefix, marks }: VersionReadsOptions) {
    this.#redis = redis;
    this.#live = live;
    this.#keyPrefix = keyPrefix;
    this.#marks = marks;
  }

  /** The version that a read is to be answered from. */
  async target(served: ServedCollection, pin: number | undefined): Promise<ReadTarget> {
    return this.#orRefuse(async () => {
      const live = versionOfLive(served, await this.#live.get(served.source));
      return { served, pin, version: pin === undefined ? live : await this.#kept(served, pin) };
    });
  }

  /** The versions of a collection that are kept, the latest first; asked only where one is live. */
  async kept(served: ServedCollection): Promise<Version[]> {
    return this.#orRefuse(async () => {
      const { keys } = this.#keysOf(served);
      const kept = await readKeptVersions(this.#redis, keys);
      if (kept.length === 0) throw new DamagedKeyError(`The Redis key ${keys.versionDocuments} is gone.`);
      return kept.reverse().flatMap((version) => versionOf(served, version) ?? []);
    });
  }

  /** Which version of each of these collections is live, by name; `null` where none is. Asks Redis, whatever is known. */
  async live(served: readonly ServedCollection[]): Promise<ReadonlyMap<string, Version | null>> {
    const sources = [...new Set(served.map(({ source }) => source))];
    const found = await this.#orRefuse(() =>
      Promise.all(sources.map(async (source) => [source, await this.#live.refresh(source)] as const)),
    );
    const live = new Map(found);
    return new Map(
      served.map((it) => {
        const version = live.get(it.source);
        return [it.collection.name, version ? versionOf(it, version) : null];
      }),
    );
  }

  /** Runs a read against one version; where its content has vanished, asks once more for the version. */
  async read<Result>(
    target: ReadTarget,
    read: (attempt: Attempt) => Promise<Result | typeof vanished>,
  ): Promise<Result> {
    return this.#orRefuse(() => this.#readTwice(target, read));
  }

  async #readTwice<Result>(
    { served, pin, version }: ReadTarget,
    read: (attempt: Attempt) => Promise<Result | typeof vanished>,
  ): Promise<Result> {
    const { keys, part } = this.#keysOf(served);
    requireKnownFormat(served.source.name, version);
    const result = await read({ version, keys, part, isLastTry: false });
    if (result !== vanished) return result;
    const live = versionOfLive(served, await this.#live.refresh(served.source));
    const now = pin === undefined ? live : await this.#kept(served, pin);
    requireKnownFormat(served.source.name, now);
    const second = await read({ version: now, keys, part, isLastTry: true });
    if (second !== vanished) return second;
    const message = `What is asked for of version ${now.version} of ${served.collection.name} is not whole in Redis; the next import mends the live version.`;
    this.#marks.found(keys, now, message);
    throw new DamagedError(message);
  }

  async #kept(served: ServedCollection, number: number): Promise<Version> {
    const { keys } = this.#keysOf(served);
    let version = await readKeptVersion(this.#redis, keys, number);
    if (!version && number >= ((await this.#live.get(served.source))?.version ?? 0)) {
      // Another process may have answered from what a replica does not have yet; that is passed over then.
      await this.#live.refresh(served.source);
      version = await readKeptVersion(this.#redis, keys, number);
    }
    const its = version && versionOf(served, version);
    if (its) return its;
    const kept = await readKeptVersions(this.#redis, keys);
    const numbers = kept.map((it) => it.version).join(', ');
    throw new VersionGoneError(
      `Version ${number} of ${served.collection.name} is not kept; these are: ${numbers}.`,
    );
  }

  /** Built once for each collection. */
  #keysOf(served: ServedCollection): ReturnType<typeof servedKeys> {
    const known = this.#keys.get(served);
    if (known) return known;
    const keys = servedKeys(this.#keyPrefix, served);
    this.#keys.set(served, keys);
    return keys;
  }

  /** What is not as it was stored, or as only a newer release stores it, is told; nothing is answered from it. */
  async #orRefuse<Result>(read: () => Promise<Result>): Promise<Result> {
    try {
      return await read();
    } catch (error) {
      if (error instanceof UnknownFormatError) {
        this.#marks.tell(error.message);
        throw new DamagedError(
          'The data is stored in a format that this release does not know. Its operator has to import it again.',
        );
      }
      const damage = await damageIn(this.#redis, error);
      if (!damage) throw error;
      this.#marks.tell(damage.message);
      throw new DamagedError(
        'What is asked for is damaged in Redis; the next import mends the live version.',
      );
    }
  }
}

/** @throws NoVersionError when nothing is live */
function versionOfLive(served: ServedCollection, live: Version | null): Version {
  const version = live && versionOf(served, live);
  if (!version) throw new NoVersionError(`No version of ${served.collection.name} has been published yet.`);
  return version;
}
