// Finds the version of a read. If part of its content is missing, the read is repeated once with the current version.

import { type Candidate, isPublishable, readCandidate } from '../../shared/candidates.ts';
import type { ServedCollection } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { DamagedKeyError, damageIn } from '../../shared/redis/failures.ts';
import type { ChangeSetFacts } from '../../shared/store/change-sets.ts';
import { type CollectionKeys, type ContentKeys, type PartKeys, servedKeys } from '../../shared/store/keys.ts';
import {
  currentFormat,
  readKeptVersion,
  readKeptVersions,
  requireKnownFormat,
  UnknownFormatError,
  type Version,
  versionOf,
} from '../../shared/store/versions.ts';
import type { LiveVersions } from './live-versions.ts';

/** Nothing was published yet, or the live version has vanished: there is nothing to respond with. */
export class NoVersionError extends Error {}

/** The requested data is damaged in Redis; the damage has been reported. */
export class DamagedError extends NoVersionError {}

/** A requested version is not kept or was never published; the message lists the kept versions. */
export class VersionGoneError extends Error {}

/** Part of a content is missing: the content has expired or is damaged. */
export class MissingPartError extends Error {
  constructor(key: string) {
    super(`Part of the Redis key ${key} is missing.`);
  }
}

/** A version to read from, with its keys. */
export interface ReadTarget {
  readonly served: ServedCollection;
  /** The kept version that the client named; `undefined`: the live version. */
  readonly pin: number | undefined;
  readonly version: Version;
  readonly keys: CollectionKeys;
  readonly part: PartKeys;
  readonly content: ContentKeys;
  /** Names the content in caches, unique even if an operator switches to another database. */
  readonly contentName: string;
  /** The candidate only: the facts of its change set. */
  readonly changes?: ChangeSetFacts;
}

/** The candidate of a collection, for the dashboard. */
export interface CandidateTarget {
  /** The live version; `null` without one. */
  readonly live: ReadTarget | null;
  readonly target: ReadTarget;
  readonly candidate: Candidate;
  /** Whether another version went live since it was compared: then its data is deleted. */
  readonly isOutdated: boolean;
}

/** What to find versions by. */
export interface VersionsOptions {
  readonly redis: Redis;
  readonly live: LiveVersions;
  readonly keyPrefix: string;
  /** Called with a sentence for each damage that a read finds. */
  readonly onDamage: (message: string) => void;
}

/** Finds versions. Methods throw NoVersionError, VersionGoneError, or the connection's error if Redis is unavailable. */
export class Versions {
  readonly #redis: Redis;
  readonly #live: LiveVersions;
  readonly #keyPrefix: string;
  readonly #onDamage: (message: string) => void;
  readonly #keys = new Map<ServedCollection, ReturnType<typeof servedKeys>>();

  constructor({ redis, live, keyPrefix, onDamage }: VersionsOptions) {
    this.#redis = redis;
    this.#live = live;
    this.#keyPrefix = keyPrefix;
    this.#onDamage = onDamage;
  }

  /** Returns the version to read from: the live one, or the kept one with the number `pin`. */
  async target(served: ServedCollection, pin: number | undefined): Promise<ReadTarget> {
    return this.#orRefuse(async () => this.#targetOf(served, pin, await this.#live.get(served.source)));
  }

  /** Returns the candidate of a collection; `null` if there is none. */
  async candidate(served: ServedCollection): Promise<CandidateTarget | null> {
    return this.#orRefuse(async () => {
      const { keys, part } = this.#keysOf(served);
      const [candidate, live] = await Promise.all([
        readCandidate(this.#redis, keys),
        this.#live.get(served.source),
      ]);
      const version = candidate && versionOf(served, candidate.version);
      if (!version) return null;
      const content = part.content(version.content);
      const contentName = `${content.records} ${version.checksum}`;
      const { collection, source } = served;
      // The change sets are those of the source, then those of its derived collections.
      const n = source.derived.findIndex((it) => it.collection === collection) + 1;
      const changes = candidate.changeSets[n] ?? undefined;
      return {
        ...{ candidate, isOutdated: !isPublishable(candidate, live) },
        ...{ live: live && (await this.#targetOf(served, undefined, live)) },
        target: {
          ...{ served, pin: version.version, version, keys, part, content, contentName },
          ...(changes && { changes }),
        },
      };
    });
  }

  /** Returns the kept versions of a collection, the latest first. */
  async kept(served: ServedCollection): Promise<Version[]> {
    return this.#orRefuse(async () => {
      const { keys } = this.#keysOf(served);
      const kept = await readKeptVersions(this.#redis, keys);
      if (kept.length === 0) throw new DamagedKeyError(`The Redis key ${keys.versionDocuments} is missing.`);
      return kept.reverse().flatMap((version) => knownVersionOf(served, version) ?? []);
    });
  }

  /** Asks Redis for the live version of each of these collections, by name; `null` if there is none. */
  async live(served: readonly ServedCollection[]): Promise<ReadonlyMap<string, Version | null>> {
    const sources = [...new Set(served.map(({ source }) => source))];
    const found = await this.#orRefuse(() =>
      Promise.all(sources.map(async (source) => [source, await this.#live.refresh(source)] as const)),
    );
    const live = new Map(found);
    return new Map(
      served.map((it) => {
        const version = live.get(it.source);
        return [it.collection.name, version ? knownVersionOf(it, version) : null];
      }),
    );
  }

  /** Reads from a version. If part of its content is missing, looks the version up again and reads once more. */
  async read<Result>(target: ReadTarget, read: (target: ReadTarget) => Promise<Result>): Promise<Result> {
    return this.#orRefuse(async () => {
      try {
        return await read(target);
      } catch (error) {
        if (!(error instanceof MissingPartError)) throw error;
      }
      const { served, pin } = target;
      const now = await this.#targetOf(served, pin, await this.#live.refresh(served.source));
      try {
        return await read(now);
      } catch (error) {
        if (!(error instanceof MissingPartError)) throw error;
        const what = `Version ${now.version.version} of ${served.collection.name} is incomplete in Redis.`;
        this.#onDamage(`${what} ${error.message} Run "medref verify ${served.source.name} --repair".`);
        throw new DamagedError(`${what} The next import repairs the live version.`);
      }
    });
  }

  /** @throws NoVersionError if nothing is live */
  async #targetOf(
    served: ServedCollection,
    pin: number | undefined,
    liveVersion: Version | null,
  ): Promise<ReadTarget> {
    if (!liveVersion)
      throw new NoVersionError(`No version of ${served.collection.name} has been published yet.`);
    const stored = pin === undefined ? liveVersion : await this.#keptVersion(served, pin);
    requireKnownFormat(served.source.name, stored);
    const version = versionOf(served, stored);
    if (!version) throw new NoVersionError(`Version ${stored.version} has no ${served.collection.name}.`);
    const { keys, part } = this.#keysOf(served);
    const content = part.content(version.content);
    const contentName = `${content.records} ${version.checksum}`;
    return { served, pin, version, keys, part, content, contentName };
  }

  async #keptVersion(served: ServedCollection, number: number): Promise<Version> {
    const { keys } = this.#keysOf(served);
    let version = await readKeptVersion(this.#redis, keys, number);
    if (!version && number >= (this.#live.known(served.source)?.version ?? 0)) {
      // Another process may have served a version that this process's replica does not have yet.
      await this.#live.refresh(served.source);
      version = await readKeptVersion(this.#redis, keys, number);
    }
    if (version) return version;
    const kept = await readKeptVersions(this.#redis, keys);
    const numbers = kept.map((it) => it.version).join(', ');
    throw new VersionGoneError(
      `Version ${number} of ${served.collection.name} is not kept. Kept versions: ${numbers}.`,
    );
  }

  /** Builds keys once for each collection. */
  #keysOf(served: ServedCollection): ReturnType<typeof servedKeys> {
    const known = this.#keys.get(served);
    if (known) return known;
    const keys = servedKeys(this.#keyPrefix, served);
    this.#keys.set(served, keys);
    return keys;
  }

  /** Reports damage and unknown formats, and throws DamagedError in their place. */
  async #orRefuse<Result>(read: () => Promise<Result>): Promise<Result> {
    try {
      return await read();
    } catch (error) {
      if (error instanceof UnknownFormatError) {
        this.#onDamage(error.message);
        throw new DamagedError('This release cannot read the stored data. An operator must run an import.');
      }
      const damage = await damageIn(this.#redis, error);
      if (!damage) throw error;
      this.#onDamage(damage.message);
      throw new DamagedError(
        'The requested data is damaged in Redis. The next import repairs the live version.',
      );
    }
  }
}

/** Returns a version with the facts of a served collection; `null` if this release does not know its format. */
function knownVersionOf(served: ServedCollection, version: Version): Version | null {
  return version.format === currentFormat ? versionOf(served, version) : null;
}
