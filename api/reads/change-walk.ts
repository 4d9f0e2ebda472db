// In: the change sets that imports have kept. Out: which ids are not as they were at a version, exactly, however many
// versions lie between.

import type { Redis } from '../../shared/redis/connections.ts';
import { readChangeSet } from '../../shared/store/change-sets.ts';
import type { CollectionKeys, PartKeys } from '../../shared/store/keys.ts';
import { merged, nextTurn } from './merging.ts';

/** What became of an id between two versions. */
export type ChangeKind = 'added' | 'changed' | 'removed';

/** The ids that are not as they were, by id, and what became of each; 9 bytes an id. */
export interface ChangeList {
  readonly ids: Float64Array;
  /** What became of the id at the same index: an index of {@link changeKinds}. */
  readonly kinds: Uint8Array;
}

export const changeKinds: readonly ChangeKind[] = ['added', 'changed', 'removed'];

/** How many ids are judged, and sorted, in one turn of the event loop: some ms. */
const idsAtOnce = 5_000;

/** The published versions whose changes are kept, up to one of them, the latest first; none where that one is not kept. */
export async function versionsWithChanges(
  redis: Redis,
  keys: CollectionKeys,
  until: number,
): Promise<number[]> {
  const numbers = await redis.zrevrangebyscore(keys.changeSets, until, '-inf');
  return Number(numbers[0]) === until ? numbers.map(Number) : [];
}

/** Whether changes since a version can be asked for at all. */
export async function isKeptForChanges(redis: Redis, keys: CollectionKeys, since: number): Promise<boolean> {
  return (await redis.zscore(keys.changeSets, since)) !== null;
}

/** A version that a walk is to stop at, and what is told there. */
class Stop {
  resolve: (list: ChangeList | null) => void = () => undefined;
  reject: (error: unknown) => void = () => undefined;
  readonly list = new Promise<ChangeList | null>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}

/** Digests of the record of an id before and after, `-` where there is none. */
export interface Digests {
  before: string;
  readonly after: string;
}

/**
 * Joins change sets from a version back to earlier ones: at each version that it passes it has the list of what changed
 * since. So those who ask at the same time for the changes since different versions have each set read once.
 */
export class ChangeWalk {
  readonly #redis: Redis;
  readonly #part: PartKeys;
  /** From the version at which the changes end, the latest first. */
  readonly #versions: readonly number[];
  readonly #digests = new Map<number, Digests>();
  readonly #stops = new Map<number, Stop>();
  /** How many versions' sets have been joined, or are being joined now. */
  #joined = 0;
  #isOver = false;

  /** @param versions see {@link versionsWithChanges} */
  constructor(redis: Redis, part: PartKeys, versions: readonly number[]) {
    this.#redis = redis;
    this.#part = part;
    this.#versions = versions;
  }

  /**
   * What changed since a version, once the walk comes by: see {@link run}.
   * @returns the list; `null` when the version was never published, or Redis has lost a change set; `'passed'` when the walk
   * has gone by already
   */
  since(version: number): Promise<ChangeList | null> | 'passed' {
    const place = this.#versions.indexOf(version);
    if (place === -1) return Promise.resolve(null);
    // At the place itself the walk stops once the set is joined, which it is being now.
    if (this.#isOver || place < this.#joined) return 'passed';
    const stop = this.#stops.get(version) ?? new Stop();
    this.#stops.set(version, stop);
    return stop.list;
  }

  /** Walks until all that were asked for have their lists. Throws nothing: they are told. */
  async run(): Promise<void> {
    try {
      while (this.#stops.size > 0) {
        const version = this.#versions[this.#joined] as number;
        this.#joined += 1;
        const previous = this.#versions[this.#joined];
        if (!(await this.#join(version, previous))) return this.#endAll((stop) => stop.resolve(null));
        const passed = this.#versions[this.#joined] as number;
        const stop = this.#stops.get(passed);
        if (!stop) continue;
        const list = await listOf(this.#digests);
        this.#stops.delete(passed);
        stop.resolve(list);
      }
      this.#isOver = true;
    } catch (error) {
      this.#endAll((stop) => stop.reject(error));
    }
  }

  #endAll(end: (stop: Stop) => void): void {
    this.#isOver = true;
    for (const stop of this.#stops.values()) end(stop);
    this.#stops.clear();
  }

  /**
   * Joins the change set of a version.
   * @param previous the version before it
   * @returns whether all of it is there, as it was kept
   */
  async #join(version: number, previous: number | undefined): Promise<boolean> {
    const facts = await readChangeSet(this.#redis, this.#part.changeSet(version), (id, digests) =>
      this.#add(Number(id), digests),
    );
    return facts !== null && (facts.previous === undefined || facts.previous === previous);
  }

  #add(id: number, text: string): void {
    const [before = '-', after = '-'] = text.split(' ');
    const known = this.#digests.get(id);
    if (known) known.before = before;
    else this.#digests.set(id, { before, after });
  }
}

/** The ids whose record before is not the one after; made in turns, so that others are answered meanwhile. */
export async function listOf(digests: ReadonlyMap<number, Digests>): Promise<ChangeList> {
  const runs: Float64Array[] = [];
  let run: number[] = [];
  let judged = 0;
  for (const [id, { before, after }] of digests) {
    if (before !== after) run.push(id);
    judged += 1;
    if (judged % idsAtOnce !== 0) continue;
    runs.push(Float64Array.from(run).sort());
    run = [];
    await nextTurn();
  }
  runs.push(Float64Array.from(run).sort());
  const ids = await merged(runs);
  const kinds = new Uint8Array(ids.length);
  for (let n = 0; n < ids.length; n += 1) {
    kinds[n] = changeKinds.indexOf(kindOf(digests.get(ids[n] as number) as Digests));
    if (n % idsAtOnce === idsAtOnce - 1) await nextTurn();
  }
  return { ids, kinds };
}

/** What became of an id whose digests differ. */
export function kindOf({ before, after }: Digests): ChangeKind {
  if (before === '-') return 'added';
  return after === '-' ? 'removed' : 'changed';
}
