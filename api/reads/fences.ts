// The fences of search indexes, for one process that serves: the first entry of each page of an index, by which the
// pages are found that a search has to read. Those of the indexes that were searched last are remembered, if they are not
// very many.

import { crc32 } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import type { Redis } from '../../shared/redis/connections.ts';

/** How many characters of fences are remembered, and how much each fence takes besides its own. */
const maxRemembered = 40_000_000;
const fenceOverhead = 40;

/** Of a list with more than so many, Redis counts for each search: to read all of them would take longer than an answer may. */
const mostRead = 300_000;

/** How many fences are read with one command, well under a ms of Redis's time, and how many commands go out together. */
const fencesAtOnce = 500;
const commandsAtOnce = 16;

/** The fences of an index that never changes under its name. */
export interface FenceList {
  readonly key: string;
  /** Differs from that of every other list of fences that the key ever held. */
  readonly name: string;
  /** How many there are. */
  readonly count: number;
  /** CRC-32 of all of them, each with a line feed behind it; `undefined` where that is not known. */
  readonly check: number | undefined;
}

/** Reads fences by one connection, which is borrowed. */
export class Fences {
  readonly #redis: Redis;
  readonly #mostRead: number;
  readonly #lists: LRUCache<string, readonly string[], FenceList>;

  /** @param most how many fences are read and remembered at most; tests lower it */
  constructor(redis: Redis, most = mostRead) {
    this.#redis = redis;
    this.#mostRead = most;
    this.#lists = new LRUCache({
      maxSize: maxRemembered,
      sizeCalculation: (fences) => fences.reduce((sum, { length }) => sum + length + fenceOverhead, 1),
      fetchMethod: (_name, _stale, { context }) => readFences(redis, context),
    });
  }

  /** Whether all fences of an index are read, so that each is what it must be. */
  areRead({ count }: FenceList): boolean {
    return count <= this.#mostRead;
  }

  /**
   * How many fences of an index stand before each of some bounds. `null` where one is missing, or another one, as far as
   * they are read. Throws what the connection throws.
   */
  async countsBelow(list: FenceList, bounds: readonly string[]): Promise<readonly number[] | null> {
    if (!this.areRead(list)) return this.#askCounts(list, bounds);
    const sorted = await this.get(list);
    return sorted && bounds.map((bound) => countBelow(sorted, bound));
  }

  async #askCounts({ key, count }: FenceList, bounds: readonly string[]): Promise<number[] | null> {
    const [there, ...counts] = await Promise.all([
      this.#redis.zcard(key),
      ...bounds.map((bound) => this.#redis.zlexcount(key, '-', Buffer.from(`(${bound}`, 'latin1'))),
    ]);
    return there === count ? counts : null;
  }

  /**
   * All fences of an index, sorted, each as its bytes, one character each. `null` where one is missing or another one: a
   * fence tells a page by how many stand before it, so all that stand behind it would name the wrong page. Throws what
   * the connection throws.
   */
  async get(list: FenceList): Promise<readonly string[] | null> {
    const known = this.#lists.get(list.name);
    if (known) return known;
    try {
      return (await this.#lists.fetch(list.name, { context: list, ignoreFetchAbort: true })) ?? null;
    } catch (error) {
      if (error instanceof NotWholeError) return null;
      throw error;
    }
  }
}

/** What is thrown is not remembered. */
class NotWholeError extends Error {}

const lineFeed = Buffer.from('\n');

async function readFences(redis: Redis, { key, count, check }: FenceList): Promise<readonly string[]> {
  const fences: string[] = [];
  let crc = 0;
  const read = (from: number) => redis.zrangeBuffer(key, from, String(from + fencesAtOnce - 1));
  // To one beyond the last, where none is to be.
  for (let at = 0; at <= count; ) {
    const commands = Math.min(commandsAtOnce, Math.ceil((count + 1 - at) / fencesAtOnce));
    const starts = Array.from({ length: commands }, (_, n) => at + n * fencesAtOnce);
    at += commands * fencesAtOnce;
    const found = (await Promise.all(starts.map(read))).flat();
    for (const fence of found) {
      fences.push(fence.toString('latin1'));
      crc = crc32(lineFeed, crc32(fence, crc));
    }
  }
  if (fences.length !== count || (check !== undefined && crc !== check)) throw new NotWholeError();
  return fences;
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
