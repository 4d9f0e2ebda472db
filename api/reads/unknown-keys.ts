// Keys that do not exist, by the network they came from: past a bound, Redis is not asked about each of them, but once a
// second for the digests of all keys that there are. So no flood locks out a client that has a good key.

import { LRUCache } from 'lru-cache';
import type { Redis } from '../../shared/redis/connections.ts';

/** How many a network may send at once, and how many a second after that. */
export const unknownKeysAtOnce = 100;
const forgivenEachMs = 100;

/** Networks that are remembered; those that were longest silent are forgotten first. */
const maxNetworks = 10_000;

/** For how long it is known which keys there are, in ms. */
const rosterMs = 1_000;

/** A network sent too many keys that do not exist. */
export class TooManyUnknownKeysError extends Error {
  /** When to come again, in seconds. */
  readonly retryAfter = 1;

  constructor() {
    super('Too many keys that do not exist came from this address. Check the key before you try again.');
  }
}

/** Bounds what unknown keys cost, for one process. */
export class UnknownKeys {
  readonly #redis: Redis;
  readonly #keys: string;
  /** When each network would have sent none, by its name. */
  readonly #forgivenAt = new LRUCache<string, number>({ max: maxNetworks });
  #roster: { readonly digests: Promise<ReadonlySet<string>>; readonly until: number } | undefined;

  /** @param keys the Redis key of the hash of keys */
  constructor(redis: Redis, keys: string) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /**
   * Counts a key that is not known yet, before Redis is asked for it.
   * @returns whether it was counted: past the bound, a key that exists is let through without
   * @throws TooManyUnknownKeysError where the network has sent too many, and a key with this digest does not exist
   */
  async mind(network: string, digested: string): Promise<boolean> {
    const now = Date.now();
    const forgivenAt = Math.max(now, this.#forgivenAt.get(network) ?? 0);
    if (forgivenAt - now <= (unknownKeysAtOnce - 1) * forgivenEachMs) {
      this.#forgivenAt.set(network, forgivenAt + forgivenEachMs);
      return true;
    }
    if (!(await this.#stored(now)).has(digested)) throw new TooManyUnknownKeysError();
    return false;
  }

  /** Takes back what was counted: the key exists. */
  forgive(network: string): void {
    const forgivenAt = this.#forgivenAt.get(network);
    if (forgivenAt !== undefined) this.#forgivenAt.set(network, forgivenAt - forgivenEachMs);
  }

  /** The digests of all keys. */
  #stored(now: number): Promise<ReadonlySet<string>> {
    if (this.#roster && this.#roster.until > now) return this.#roster.digests;
    const digests = this.#redis.hkeys(this.#keys).then((all) => new Set(all));
    const roster = { digests, until: now + rosterMs };
    this.#roster = roster;
    digests.catch(() => {
      if (this.#roster === roster) this.#roster = undefined;
    });
    return digests;
  }
}
