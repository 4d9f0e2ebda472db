// The lists of changes that were asked for last, for one process that serves: what two versions differ in never changes.

import { LRUCache } from 'lru-cache';
import type { ChangeList } from './change-sets.ts';

/** How many lists are remembered, and how many ids in all of them: 9 bytes each. */
const maxLists = 16;
const maxIds = 2_000_000;

type Join = () => Promise<ChangeList | null>;

/** Remembers lists; those who ask for the same one share one join, and one join goes on at a time, so that other reads go on. */
export class ChangeLists {
  #lastJoin: Promise<unknown> = Promise.resolve();
  readonly #lists = new LRUCache<string, ChangeList, Join>({
    max: maxLists,
    maxSize: maxIds,
    // The one that was asked for last is remembered however long it is.
    sizeCalculation: ({ ids }) => Math.min(ids.length + 1, maxIds),
    fetchMethod: async (_name, _stale, { context: join }) => (await this.#inTurn(join)) ?? undefined,
  });

  /**
   * The list of a name, joined unless it is remembered.
   * @param name of which there is never another list
   * @param join throws what this then throws; `null` is not remembered
   */
  async get(name: string, join: Join): Promise<ChangeList | null> {
    return (await this.#lists.fetch(name, { context: join, ignoreFetchAbort: true })) ?? null;
  }

  #inTurn(join: Join): ReturnType<Join> {
    const joined = this.#lastJoin.then(join);
    this.#lastJoin = joined.catch(() => undefined);
    return joined;
  }
}
