// Keys that do not exist, by the network they came from: past a bound, Redis is not asked about each of them, but once a
// second for the digests of all keys that there are. So no flood locks out a client that has a good key.

import type { Redis } from '../../shared/redis/connections.ts';
import { FailedCredentials } from './failed-credentials.ts';

/** How many a network may send. */
export const unknownKeyBounds = { atOnce: 100, forgivenMs: 100 } as const;

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
  readonly #onNone: () => Promise<void>;
  readonly #failed = new FailedCredentials(unknownKeyBounds);
  #roster: { readonly digests: Promise<ReadonlySet<string>>; readonly until: number } | undefined;

  /**
   * @param keys the Redis key of the hash of keys
   * @param onNone called if there are no keys at all; what it throws is thrown
   */
  constructor(redis: Redis, keys: string, onNone: () => Promise<void>) {
    this.#redis = redis;
    this.#keys = keys;
    this.#onNone = onNone;
  }

  /**
   * Counts a key that is not known yet, before Redis is asked for it.
   * @returns whether it was counted: past the bound, a key that exists is let through without
   * @throws TooManyUnknownKeysError where the network has sent too many, and a key with this digest does not exist
   */
  async mind(network: string, digested: string): Promise<boolean> {
    if (this.#failed.count(network)) return true;
    if (!(await this.#stored(Date.now())).has(digested)) throw new TooManyUnknownKeysError();
    return false;
  }

  /** Takes back what was counted: the key exists. */
  forgive(network: string): void {
    this.#failed.forgive(network);
  }

  /** The digests of all keys. */
  #stored(now: number): Promise<ReadonlySet<string>> {
    if (this.#roster && this.#roster.until > now) return this.#roster.digests;
    const digests = this.#redis.hkeys(this.#keys).then(async (all) => {
      if (all.length === 0) await this.#onNone();
      return new Set(all);
    });
    const roster = { digests, until: now + rosterMs };
    this.#roster = roster;
    digests.catch(() => {
      if (this.#roster === roster) this.#roster = undefined;
    });
    return digests;
  }
}
