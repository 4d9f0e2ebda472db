// The fences of search indexes, for one process that serves: the first entry of each page of an index, by which the
// pages are found that a search has to read. Those of the indexes that were searched last are remembered.

import { LRUCache } from 'lru-cache';
import type { Redis } from './redis.ts';

/** How many fences are remembered, about 60 bytes each. */
const maxRemembered = 500_000;

/** How many fences are read with one command: well under a ms of Redis's time. */
const fencesAtOnce = 500;

/** The fences of an index that never changes under its name. */
export interface FenceList {
  readonly key: string;
  /** Differs from that of every other list of fences that the key ever held. */
  readonly name: string;
  /** How many there are. */
  readonly count: number;
}

/** Reads fences by one connection, which is borrowed. */
export class Fences {
  readonly #lists: LRUCache<string, readonly string[], FenceList>;

  constructor(redis: Redis) {
    this.#lists = new LRUCache({
      maxSize: maxRemembered,
      sizeCalculation: ({ length }) => Math.max(1, length),
      fetchMethod: (_name, _stale, { context }) => readFences(redis, context),
    });
  }

  /**
   * All fences of an index, sorted, each as its bytes, one character each; `undefined` where one is missing: all places
   * behind it would be told wrongly. Throws what the connection throws.
   */
  get(list: FenceList): readonly string[] | Promise<readonly string[] | undefined> {
    return (
      this.#lists.get(list.name) ?? this.#lists.fetch(list.name, { context: list, ignoreFetchAbort: true })
    );
  }
}

async function readFences(redis: Redis, { key, count }: FenceList): Promise<readonly string[] | undefined> {
  const fences: string[] = [];
  while (fences.length <= count) {
    const from = fences.length;
    const found = await redis.zrangeBuffer(key, from, String(from + fencesAtOnce - 1));
    for (const fence of found) fences.push(fence.toString('latin1'));
    if (found.length < fencesAtOnce) break;
  }
  return fences.length === count ? fences : undefined;
}

/** How many of these sorted texts come before a bound. */
export function countBelow(sorted: readonly string[], bound: string): number {
  let [from, until] = [0, sorted.length];
  while (from < until) {
    const middle = (from + until) >>> 1;
    if ((sorted[middle] as string) < bound) from = middle + 1;
    else until = middle;
  }
  return from;
}
