// What stands in Redis of each collection, for whoever watches: what is live, how its imports ended, what keeps them from it.
// Read by the API, so that an importer that is dead is seen as well.

import type { Collection } from '../../shared/collections/define.ts';
import { knownTime } from '../../shared/dated-ahead.ts';
import {
  type HistoryEntry,
  historyCap,
  type ImportOutcome,
  readHistory,
} from '../../shared/ended-imports.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { DamagedKeyError, isWrongType, parseStored } from '../../shared/redis/damage.ts';
import { type CollectionKeys, collectionKeys } from '../../shared/store/keys.ts';
import { readLiveVersion, type Version } from '../../shared/store/versions.ts';

/** What the history tells of the imports that are kept in it. */
export interface ImportsStanding {
  readonly kept: ReadonlyMap<ImportOutcome, number>;
  /** The last one, but for those that found the lock held. */
  readonly last: HistoryEntry | null;
  /** The last one that read records: one that upstream answered with 304 has none to tell of. */
  readonly lastThatRead: HistoryEntry | null;
}

/** What stands of one collection that is imported; what is damaged is `null` here, and told elsewhere. */
export interface Standing {
  readonly source: Collection;
  readonly live: Version | null;
  /** When upstream was last found to be as the live version; ISO 8601. `null` if that is dated in the future. */
  readonly checkedAt: string | null;
  readonly imports: ImportsStanding | null;
  /** Since when an import has the lock; ISO 8601. */
  readonly lockedSince: string | null;
  /** Since when the schedule is held; ISO 8601. */
  readonly heldSince: string | null;
  /** How many contents are marked as damaged. */
  readonly damageMarks: number | null;
}

/** Reads what stands; the connection is borrowed. */
export class Standings {
  readonly #redis: Redis;
  readonly #keyPrefix: string;
  readonly #sources: readonly Collection[];
  /** By collection: what its history told when this was its last entry. */
  readonly #known = new Map<string, { readonly lastId: string; readonly imports: ImportsStanding }>();

  constructor({
    redis,
    keyPrefix,
    sources,
  }: {
    readonly redis: Redis;
    readonly keyPrefix: string;
    /** Collections that have versions of their own. */
    readonly sources: readonly Collection[];
  }) {
    this.#redis = redis;
    this.#keyPrefix = keyPrefix;
    this.#sources = sources;
  }

  /** What stands of each collection; throws while Redis is away. */
  async read(): Promise<Standing[]> {
    return Promise.all(this.#sources.map((source) => this.#readOne(source)));
  }

  async #readOne(source: Collection): Promise<Standing> {
    const redis = this.#redis;
    const keys = collectionKeys(this.#keyPrefix, source);
    const [live, checkedAt, imports, lockedSince, heldSince, damageMarks] = await Promise.all([
      unlessDamaged(readLiveVersion(redis, keys)),
      unlessDamaged(redis.get(keys.checked)),
      unlessDamaged(this.#imports(source.name, keys)),
      unlessDamaged(this.#since(keys.lock)),
      unlessDamaged(this.#since(keys.hold)),
      unlessDamaged(redis.hlen(keys.damaged)),
    ]);
    return { source, live, checkedAt: knownTime(checkedAt), imports, lockedSince, heldSince, damageMarks };
  }

  /** A lock and a hold both tell since when they are there. */
  async #since(key: string): Promise<string | null> {
    const text = await this.#redis.get(key);
    return text === null ? null : parseStored<{ since: string }>(key, text).since;
  }

  /** The whole history is read only where it has a new entry, since a hundred reports may be long. */
  async #imports(name: string, keys: CollectionKeys): Promise<ImportsStanding> {
    const [last] = await this.#redis.xrevrange(keys.imports, '+', '-', 'COUNT', 1);
    const lastId = last?.[0] ?? '';
    const known = this.#known.get(name);
    if (known?.lastId === lastId) return known.imports;
    const imports = standingOf(last ? await readHistory(this.#redis, keys, historyCap) : []);
    this.#known.set(name, { lastId, imports });
    return imports;
  }
}

/** @param history latest first */
function standingOf(history: readonly HistoryEntry[]): ImportsStanding {
  const kept = new Map<ImportOutcome, number>();
  for (const { outcome } of history) kept.set(outcome, (kept.get(outcome) ?? 0) + 1);
  return {
    kept,
    last: history.find(({ outcome }) => outcome !== 'locked') ?? null,
    lastThatRead: history.find(({ read }) => read > 0) ?? null,
  };
}

/** A key that does not hold what medref stores there keeps nobody from seeing the others. */
async function unlessDamaged<Value>(reading: Promise<Value>): Promise<Value | null> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof DamagedKeyError || error instanceof SyntaxError || isWrongType(error)) return null;
    throw error;
  }
}
