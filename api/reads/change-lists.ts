// The lists of changes that were asked for last, for one process that serves: what two versions differ in never changes.

import { LRUCache } from 'lru-cache';
import type { ChangeList, ChangeWalk } from './change-walk.ts';

/** How many lists are remembered, and how many ids in all of them: 9 bytes each. */
const maxLists = 16;
const maxIds = 2_000_000;

/** How many walks go on side by side; each holds the digests of all ids that it has met. */
const maxWalks = 3;

/**
 * How many walks wait for their turn. Each takes a tenth of a second and more, and who waits is answered with 503 after 2 s:
 * what is further behind would only make those before it later.
 */
const maxWaiting = 32;

/** So many walks wait that another one would not be ready in time; nothing was read for it. */
export class TooManyJoinsError extends Error {
  constructor() {
    super('Too many lists of changes are being made at the moment. Try again shortly.');
  }
}

/** What is asked for. */
export interface ChangesAsked {
  /** A name of where the changes end: of a part of a version, of which there is never another one. */
  readonly ending: string;
  readonly since: number;
  /** Makes the walk that has not begun yet; throws what {@link ChangeLists.get} then throws. */
  readonly begin: () => Promise<ChangeWalk>;
}

/**
 * Remembers lists. Those who ask for the same one share it, and those who ask for changes that end at the same version
 * share one walk, as long as it has not passed what they ask for.
 */
export class ChangeLists {
  readonly #walks = new Map<string, Promise<ChangeWalk>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  /** Walks that have begun, or wait for their turn. */
  #underWay = 0;
  readonly #lists = new LRUCache<string, ChangeList, ChangesAsked>({
    max: maxLists,
    maxSize: maxIds,
    // The one that was asked for last is remembered however long it is.
    sizeCalculation: ({ ids }) => Math.min(ids.length + 1, maxIds),
    fetchMethod: async (_name, _stale, { context }) => (await this.#walk(context)) ?? undefined,
  });

  /** The list that is asked for; `null`, which is not remembered, where there is none. @throws TooManyJoinsError */
  async get(asked: ChangesAsked): Promise<ChangeList | null> {
    const name = `${asked.ending} ${asked.since}`;
    return (await this.#lists.fetch(name, { context: asked, ignoreFetchAbort: true })) ?? null;
  }

  async #walk({ ending, since, begin }: ChangesAsked): Promise<ChangeList | null> {
    for (let underWay = this.#walks.get(ending); underWay; underWay = this.#walks.get(ending)) {
      const found = (await underWay).since(since);
      if (found !== 'passed') return found;
      if (this.#walks.get(ending) === underWay) this.#walks.delete(ending);
    }
    if (this.#underWay >= maxWalks + maxWaiting) throw new TooManyJoinsError();
    this.#underWay += 1;
    const beginning = begin();
    this.#walks.set(ending, beginning);
    const isOver = () => {
      this.#underWay -= 1;
      if (this.#walks.get(ending) === beginning) this.#walks.delete(ending);
    };
    try {
      const walk = await beginning;
      const list = walk.since(since);
      this.#inTurn(() => walk.run()).finally(isOver);
      return list === 'passed' ? null : list;
    } catch (error) {
      isOver();
      throw error;
    }
  }

  /** Runs something once there is a place for it. */
  async #inTurn(run: () => Promise<void>): Promise<void> {
    if (this.#running >= maxWalks) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      await run();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }
}
