// Finds what changed between two versions by joining the change sets that imports store.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Redis } from '../../shared/redis/connections.ts';
import { factsField, parseFacts, readChangeSet } from '../../shared/store/change-sets.ts';
import type { CollectionKeys, PartKeys } from '../../shared/store/keys.ts';
import type { ContentCache } from './records.ts';
import { type ReadTarget, VersionGoneError } from './versions.ts';

/** What became of a record between two versions. */
export type ChangeKind = 'added' | 'changed' | 'removed';

export const changeKinds: readonly ChangeKind[] = ['added', 'changed', 'removed'];

/** The ids that changed, in order, with the kind of each change; 9 bytes per id. */
export interface ChangeList {
  readonly ids: Float64Array;
  /** The kind of each id: an index of {@link changeKinds}. */
  readonly kinds: Uint8Array;
}

const noChanges: ChangeList = { ids: new Float64Array(), kinds: new Uint8Array() };

/** How many joins may be queued. A join takes up to about 100 ms, and a queued request gets 503 after 2 s. */
const maxWaiting = 16;

/** How many ids are handled in one turn of the event loop: a few ms. */
const idsAtOnce = 5_000;

/** Too many joins are queued. */
export class TooManyJoinsError extends Error {
  constructor() {
    super('Too many change lists are being computed. Try again shortly.');
  }
}

/** The digests of a record before and after; `-` if there was no record. */
interface Digests {
  before: string;
  readonly after: string;
}

/** Joins change sets one list at a time: a join holds the digests of all changed ids in memory. */
export class Changes {
  readonly #redis: Redis;
  readonly #cache: ContentCache;
  #lastJoin: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(redis: Redis, cache: ContentCache) {
    this.#redis = redis;
    this.#cache = cache;
  }

  /** Checks that changes since a version are kept. @throws VersionGoneError */
  async require({ served, keys, version }: ReadTarget, since: number): Promise<void> {
    if (since === version.version) return;
    if (since < version.version && (await this.#redis.zscore(keys.changeSets, since)) !== null) return;
    const [oldest] = await this.#redis.zrange(keys.changeSets, 0, '0');
    throw new VersionGoneError(
      `Changes of ${served.collection.name} since version ${since} are not kept, or this version was never published; ` +
        `the oldest version with kept changes is ${oldest}. Read the whole list again.`,
    );
  }

  /** Returns the last version that was published at a time, or before it. @throws VersionGoneError if it is not known any more */
  async versionAt({ served, keys, part, version, contentName }: ReadTarget, time: Date): Promise<number> {
    if (Date.parse(version.publishedAt) <= time.getTime()) return version.version;
    const earlier = await this.#cache.get(`${contentName} before ${version.version}`, async () => {
      const numbers = await this.#redis.zrevrangebyscore(keys.changeSets, version.version, '-inf');
      const texts = await Promise.all(
        numbers.map((it) => this.#redis.hget(part.changeSet(Number(it)), factsField)),
      );
      return { value: texts.map(parseFacts), size: 100 * numbers.length + 100 };
    });
    for (const facts of earlier) {
      if (facts === null) break;
      if (facts.previousMs <= time.getTime()) return facts.previous;
    }
    throw new VersionGoneError(
      `No version of ${served.collection.name} with kept changes was published at ${time.toISOString()} or before. Read the whole list again.`,
    );
  }

  /** Returns what changed since a version. @throws VersionGoneError, TooManyJoinsError */
  async since(target: ReadTarget, since: number): Promise<ChangeList> {
    const { version } = target;
    if (since === version.version) return noChanges;
    return this.#cache.get(`${target.contentName} changes ${since} ${version.version}`, async () => {
      const list = await this.#inTurn(() => this.#join(target, since));
      return { value: list, size: list.ids.byteLength + list.kinds.byteLength };
    });
  }

  async #inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.#waiting >= maxWaiting) throw new TooManyJoinsError();
    this.#waiting += 1;
    const join = this.#lastJoin.then(work);
    this.#lastJoin = join.catch(() => undefined);
    try {
      return await join;
    } finally {
      this.#waiting -= 1;
    }
  }

  async #join({ served, keys, part, version, changes }: ReadTarget, since: number): Promise<ChangeList> {
    const numbers = changes
      ? [version.version, changes.previous]
      : await this.#redis.zrevrangebyscore(keys.changeSets, version.version, since);
    const published = numbers.map(Number);
    const lost = new VersionGoneError(
      `Changes of ${served.collection.name} since version ${since} are incomplete in Redis. Read the whole list again.`,
    );
    if (published[0] !== version.version || published.at(-1) !== since) throw lost;
    const digests = new Map<number, Digests>();
    const add = (id: string, text: string) => {
      const [before = '-', after = '-'] = text.split(' ');
      const known = digests.get(Number(id));
      if (known) known.before = before;
      else digests.set(Number(id), { before, after });
    };
    for (const [n, number] of published.slice(0, -1).entries()) {
      const facts = await readChangeSet(this.#redis, part.changeSet(number), add, changes);
      if (facts?.previous !== published[n + 1]) throw lost;
    }
    return listOf(digests);
  }
}

/** Returns the ids whose digests differ. */
async function listOf(digests: ReadonlyMap<number, Digests>): Promise<ChangeList> {
  const changed: number[] = [];
  let seen = 0;
  for (const [id, { before, after }] of digests) {
    if (before !== after) changed.push(id);
    seen += 1;
    if (seen % idsAtOnce === 0) await nextTurn();
  }
  const ids = Float64Array.from(changed).sort();
  const kinds = new Uint8Array(ids.length);
  for (const [n, id] of ids.entries()) {
    kinds[n] = changeKinds.indexOf(kindOf(digests.get(id) as Digests));
    if (n % idsAtOnce === idsAtOnce - 1) await nextTurn();
  }
  return { ids, kinds };
}

/** Returns what became of a record whose digests differ. */
function kindOf({ before, after }: Digests): ChangeKind {
  if (before === '-') return 'added';
  return after === '-' ? 'removed' : 'changed';
}

/** What one version did to a record. */
export interface RecordChange {
  readonly version: number;
  readonly change: ChangeKind;
}

/** The history of one record. */
export interface RecordHistory {
  /** The latest first. */
  readonly changes: readonly RecordChange[];
  /** The first version whose changes are kept; `null` if none are. */
  readonly since: number | null;
}

/** Reads the versions that changed a record: one small read per version with kept changes, all sent at once. */
export async function readRecordHistory(
  redis: Redis,
  { keys, part }: { readonly keys: CollectionKeys; readonly part: PartKeys },
  id: string,
): Promise<RecordHistory> {
  const versions = (await redis.zrevrange(keys.changeSets, 0, '-1')).map(Number);
  const texts = await Promise.all(versions.map((version) => redis.hget(part.changeSet(version), id)));
  const changes = versions.flatMap((version, n): RecordChange[] => {
    const [before = '-', after = '-'] = texts[n]?.split(' ') ?? [];
    return before === after ? [] : [{ version, change: kindOf({ before, after }) }];
  });
  return { changes, since: versions.at(-1) ?? null };
}
