// What is live now, for one process that serves: asked each half second, and at once when a publication is announced.

import type { Collection } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { damageIn } from '../../shared/redis/damage.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { type LiveVersion, readLiveVersion } from '../../shared/store/versions.ts';
import type { Replica } from './replica.ts';

/** Half of the second within which every process answers from a new version. */
const pollMs = 500;

/** What it follows, and by which connections; both are borrowed. */
export interface LiveVersionsOptions {
  readonly redis: Redis;
  /** Used for nothing else. */
  readonly listener: Redis;
  readonly keyPrefix: string;
  /** Where contents are read from a replica: the live version is the one that it has, too. */
  readonly replica?: Replica | undefined;
  /** Collections that have versions of their own. */
  readonly sources: readonly Collection[];
  /** Told once of a live version that cannot be read, though one is known, as a sentence; nobody is unless it is given. */
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
  /** How often Redis was asked, and which time each collection's live version was last told for. */
  #asked = 0;
  readonly #answered = new Map<string, number>();
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

  /** Begins to follow what is published; waits for nothing, since Redis may be away. */
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

  /** Has somebody told whenever another version of a collection is live, or none, than was known. */
  onMove(listener: (source: Collection) => void): void {
    this.#onMove.push(listener);
  }

  /** The live version as far as this process knows; Redis is not asked. */
  known(source: Collection): LiveVersion | undefined {
    return this.#known.get(source.name);
  }

  /** The live version of a collection; `null` when nothing was published yet. Throws when Redis has to be asked and is away. */
  async get(source: Collection): Promise<LiveVersion | null> {
    return this.#known.get(source.name) ?? this.refresh(source);
  }

  /** Asks Redis which version is live. @param isPatient whether a replica that is behind may catch up first */
  async refresh(source: Collection, isPatient = false): Promise<LiveVersion | null> {
    const keys = collectionKeys(this.#keyPrefix, source);
    const asked = ++this.#asked;
    const live = this.#replica
      ? await this.#replica.readLive(keys, this.#known.get(source.name), isPatient)
      : await readLiveVersion(this.#redis, keys);
    const known = this.#known.get(source.name);
    // Who asked later, and was answered before, knows of what is as new or newer.
    if (asked < (this.#answered.get(source.name) ?? 0)) return known ?? null;
    this.#answered.set(source.name, asked);
    if (live && live.document === known?.document) return known;
    if (live) this.#known.set(source.name, live);
    else this.#known.delete(source.name);
    for (const told of this.#onMove) told(source);
    return live;
  }

  #poll(): void {
    for (const source of this.#sources) {
      this.refresh(source, true)
        .then(() => void this.#damaged.delete(source.name))
        .catch((error: unknown) => this.#meet(source, error))
        .catch(() => undefined);
    }
  }

  /**
   * While Redis is away the reads fail by themselves, so a poll that fails has nothing to add. What is damaged no reader meets, as
   * long as a version is known from before.
   */
  async #meet({ name }: Collection, error: unknown): Promise<void> {
    if (!this.#known.has(name)) return;
    const damage = await damageIn(this.#redis, error);
    if (damage === null || this.#damaged.get(name) === damage.message) return;
    this.#damaged.set(name, damage.message);
    this.#onDamage(
      `${damage.message} Until it is mended, ${name} are answered from the version that was live before.`,
    );
  }
}
