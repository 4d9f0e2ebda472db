// Rate limits of API keys, over all processes: requests per second, counted in Redis by rate-limiter-flexible.
// Header fields: draft-ietf-httpapi-ratelimit-headers-10.

import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Boom from '@hapi/boom';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { Redis } from '../shared/redis/connections.ts';
import { plainReason, refusalKind } from '../shared/redis/failures.ts';
import type { ApiKey } from '../shared/store/api-keys.ts';
import { rateKey } from '../shared/store/keys.ts';

/** The options of rate limits. */
export interface RateLimiterOptions {
  readonly redis: Redis;
  readonly keyPrefix: string;
  /** For keys without their own rate, such as `10/s`; `undefined`: no limit. */
  readonly defaultRate: string | undefined;
  /** Called with a sentence for each request that Redis could not count; the request is served. */
  readonly onUncounted: (message: string) => void;
}

/** The rate limits of all keys. */
export class RateLimiter {
  readonly #options: RateLimiterOptions;
  /** Limits by rate, such as `10/s`. */
  readonly #limits = new Map<string, RateLimit>();

  constructor(options: RateLimiterOptions) {
    this.#options = options;
  }

  /** Returns the limit of a key, or `null` if it has none. */
  limitOf({ rate }: ApiKey): RateLimit | null {
    const its = rate ?? this.#options.defaultRate;
    if (its === undefined) return null;
    const known = this.#limits.get(its);
    if (known) return known;
    const limit = new RateLimit(Number.parseInt(its, 10), this.#options);
    this.#limits.set(its, limit);
    return limit;
  }
}

/** What Redis counted for the requests of one turn: how many of them the limit allows, and when its second ends. */
interface Count {
  readonly left: number;
  readonly seconds: number;
}

/** One rate limit, shared by all keys with this rate; each key has its own counter. */
class RateLimit {
  readonly #rate: number;
  readonly #options: RateLimiterOptions;
  readonly #limiter: RateLimiterRedis;
  /** Requests that wait for the end of this turn of the event loop, by key. */
  readonly #batches = new Map<string, { size: number; readonly count: Promise<Count> }>();

  constructor(rate: number, options: RateLimiterOptions) {
    this.#rate = rate;
    this.#options = options;
    this.#limiter = new RateLimiterRedis({
      storeClient: options.redis,
      keyPrefix: '', // charge() passes whole key names, so each counter has its own slot in a Cluster.
      points: rate,
      duration: 1,
      inMemoryBlockOnConsumed: rate, // A key that is over its limit is refused without asking Redis.
    });
  }

  /**
   * Charges one request and adds the rate-limit fields to its response.
   * @returns 429 if the key is over its limit. @throws if Redis is unavailable
   */
  async charge(id: string, response: ServerResponse): Promise<Boom.Boom | null> {
    const { count, position } = this.#join(id);
    try {
      const { left, seconds } = await count;
      if (position > left) return this.#tooMany(response, seconds);
      this.#setFields(response, left - position, seconds);
      return null;
    } catch (error) {
      if (refusalKind(error) === null) throw error;
      this.#options.onUncounted(
        `Requests are not counted against their rate limit: ${plainReason(error as Error)}`,
      );
      return null;
    }
  }

  /** Adds a request to those of its key that arrived in the same turn of the event loop: one command counts them all. */
  #join(id: string): { readonly count: Promise<Count>; readonly position: number } {
    const known = this.#batches.get(id);
    if (known) return { count: known.count, position: ++known.size };
    const batch = { size: 1, count: nextTurn().then(() => this.#countAll(id)) };
    this.#batches.set(id, batch);
    return { count: batch.count, position: 1 };
  }

  async #countAll(id: string): Promise<Count> {
    const size = this.#batches.get(id)?.size ?? 0;
    this.#batches.delete(id);
    try {
      return this.#countOf(await this.#limiter.consume(rateKey(this.#options.keyPrefix, id), size), size);
    } catch (error) {
      if (error instanceof RateLimiterRes) return this.#countOf(error, size);
      throw error;
    }
  }

  #countOf({ consumedPoints, msBeforeNext }: RateLimiterRes, size: number): Count {
    // The library reports 0 for a key that it refuses without asking Redis.
    const left = consumedPoints === 0 ? 0 : this.#rate - (consumedPoints - size);
    return { left, seconds: secondsOf(msBeforeNext) };
  }

  #setFields(response: ServerResponse, left: number, seconds: number): void {
    if (response.headersSent) return; // The response timed out before Redis replied.
    response.setHeader('ratelimit-policy', `"default";q=${this.#rate};w=1`);
    response.setHeader('ratelimit', `"default";r=${left};t=${seconds}`);
  }

  #tooMany(response: ServerResponse, seconds: number): Boom.Boom {
    this.#setFields(response, 0, seconds);
    const error = Boom.tooManyRequests(
      `This key is limited to ${this.#rate} requests per second. Try again in ${seconds} s.`,
    );
    error.output.headers['retry-after'] = String(seconds);
    return error;
  }
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
