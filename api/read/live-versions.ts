// Knows which version of each collection is live: polls Redis twice a second, and at once if a publication is announced.

import type { Collection } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { damageIn } from '../../shared/redis/failures.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { type LiveVersion, readLiveVersion } from '../../shared/store/versions.ts';
import type { Replica } from './replica.ts';

/** Half of the second within which every process serves a new version. */
const pollMs = 500;

/** How long a live version is trusted after Redis confirmed it, in ms. */
const freshMs = 2 * pollMs;

/** What to follow, and the connections for it; both are borrowed. */
export interface LiveVersionsOptions {
  readonly redis: Redis;
  /** A connection for subscriptions only. */
  readonly listener: Redis;
  readonly keyPrefix: string;
  /** Present if contents are read from a replica: the live version is then one that the replica has, too. */
  readonly replica?: Replica | undefined;
  /** Collections that have versions of their own. */
  readonly sources: readonly Collection[];
  /** Called once with a sentence if the pointer to the live version becomes unreadable. */
  readonly onDamage?: (message: string) => void;
}

/** The live versions of all collections, as one process knows them. */
export class LiveVersions {
  readonly #redis: Redis;
  readonly #listener: Redis;
  readonly #replica: Replica | undefined;
  readonly #keyPrefix: string;
  readonly #sources: readonly Collection[];
  readonly #known = new Map<string, LiveVersion>();
  readonly #onDamage: (message: string) => void;
  readonly #damaged = new Map<string, string>();
  readonly #onMove: ((source: Collection) => void)[] = [];
  /** The number of reads of the pointers so far, and the read that last set each collection's live version. */
  #reads = 0;
  readonly #setBy = new Map<string, number>();
  /** When Redis last confirmed each live version, by the monotonic clock. */
  readonly #confirmedAt = new Map<string, number>();
  /** Reads in flight that requests wait for. */
  readonly #refreshing = new Map<string, Promise<LiveVersion | null>>();
  #timer: NodeJS.Timeout | undefined;

  constructor({
    redis,
    listener,
    replica,
    keyPrefix,
    sources,
    onDamage = () => undefined,
  }: LiveVersionsOptions) {
    this.#redis = redis;
    this.#listener = listener;
    this.#replica = replica;
    this.#keyPrefix = keyPrefix;
    this.#sources = sources;
    this.#onDamage = onDamage;
  }

  /** Starts to follow publications. Does not wait for Redis, which may be unavailable. */
  start(): void {
    const channels = this.#sources.map((source) => collectionKeys(this.#keyPrefix, source).announcements);
    this.#listener.subscribe(...channels).catch(() => undefined);
    this.#listener.on('message', () => this.#poll());
    this.#timer = setInterval(() => this.#poll(), pollMs);
    this.#poll();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#listener.removeAllListeners('message');
  }

  /** Calls a listener whenever the live version of a collection changes or disappears. */
  onMove(listener: (source: Collection) => void): void {
    this.#onMove.push(listener);
  }

  /** Returns the live version that this process knows, without a read. */
  known(source: Collection): LiveVersion | undefined {
    return this.#known.get(source.name);
  }

  /**
   * Returns the live version of a collection; `null` if nothing was published yet. Redis is read only if it has not confirmed
   * the known version within the last second. If Redis is unavailable, it throws the error of the connection and serves nothing.
   */
  async get(source: Collection): Promise<LiveVersion | null> {
    const known = this.#known.get(source.name);
    if (known && this.#isFresh(source)) return known;
    const reading = this.#refreshing.get(source.name) ?? this.refresh(source);
    this.#refreshing.set(source.name, reading);
    try {
      return await reading;
    } finally {
      if (this.#refreshing.get(source.name) === reading) this.#refreshing.delete(source.name);
    }
  }

  #isFresh({ name }: Collection): boolean {
    const isConnected = this.#replica !== undefined || this.#redis.status === 'ready';
    return isConnected && performance.now() - (this.#confirmedAt.get(name) ?? 0) < freshMs;
  }

  /** Reads which version is live. @param isPatient whether a replica that lags behind may catch up first */
  async refresh(source: Collection, isPatient = false): Promise<LiveVersion | null> {
    const keys = collectionKeys(this.#keyPrefix, source);
    const read = ++this.#reads;
    const startedAt = performance.now();
    const live = this.#replica
      ? await this.#replica.readLive(keys, this.#known.get(source.name), isPatient)
      : await readLiveVersion(this.#redis, keys);
    const known = this.#known.get(source.name);
    // A later read has already finished, with this version or a newer one.
    if (read < (this.#setBy.get(source.name) ?? 0)) return known ?? null;
    this.#setBy.set(source.name, read);
    this.#confirmedAt.set(source.name, startedAt);
    if (live && live.document === known?.document) return known;
    if (live) this.#known.set(source.name, live);
    else this.#known.delete(source.name);
    for (const listener of this.#onMove) listener(source);
    return live;
  }

  #poll(): void {
    for (const source of this.#sources) {
      this.refresh(source, true)
        .then(() => void this.#damaged.delete(source.name))
        .catch((error: unknown) => this.#reportDamage(source, error))
        .catch(() => undefined);
    }
  }

  /** Reports an unreadable pointer once. If Redis is unavailable, each read reports that itself. */
  async #reportDamage({ name }: Collection, error: unknown): Promise<void> {
    const damage = await damageIn(this.#redis, error);
    if (damage === null || !this.#known.has(name)) return;
    this.#confirmedAt.set(name, performance.now()); // Redis is up, and the known version can be read.
    if (this.#damaged.get(name) === damage.message) return;
    this.#damaged.set(name, damage.message);
    this.#onDamage(`${damage.message} Until it is repaired, the API serves the last known version.`);
  }
}
