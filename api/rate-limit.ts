// Rate limits of API keys, over all processes: requests per second, counted in Redis by rate-limiter-flexible.
// Header fields: draft-ietf-httpapi-ratelimit-headers-10.

import type { ServerResponse } from 'node:http';
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
  /** For keys without a rate of their own, such as `10/s`; `undefined`: they have no limit. */
  readonly defaultRate: string | undefined;
  /** Called with a sentence for each request that Redis could not count; such a request is served. */
  readonly onUncounted: (message: string) => void;
}

/** The rate limits of all keys. */
export class RateLimiter {
  readonly #options: RateLimiterOptions;
  /** By rate, such as `10/s`. */
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

/** One rate limit, shared by all keys that have it; each key is counted by itself. */
class RateLimit {
  readonly #rate: number;
  readonly #options: RateLimiterOptions;
  readonly #limiter: RateLimiterRedis;

  constructor(rate: number, options: RateLimiterOptions) {
    this.#rate = rate;
    this.#options = options;
    this.#limiter = new RateLimiterRedis({
      storeClient: options.redis,
      keyPrefix: '', // Our own key names, so that each counter has a slot of its own in a Cluster.
      points: rate,
      duration: 1,
      inMemoryBlockOnConsumed: rate, // A key that is over its limit is refused without asking Redis.
    });
  }

  /**
   * Charges one request, and puts the fields of the limit into its response.
   * @returns 429 if the key is over its limit. Throws if Redis is unavailable
   */
  async charge(id: string, response: ServerResponse): Promise<Boom.Boom | null> {
    try {
      const { remainingPoints, msBeforeNext } = await this.#limiter.consume(
        rateKey(this.#options.keyPrefix, id),
      );
      this.#setFields(response, remainingPoints, secondsOf(msBeforeNext));
      return null;
    } catch (error) {
      if (error instanceof RateLimiterRes) return this.#tooMany(response, secondsOf(error.msBeforeNext));
      if (refusalKind(error) === null) throw error;
      this.#options.onUncounted(
        `Requests are not held against the rates of their keys: ${plainReason(error as Error)}`,
      );
      return null;
    }
  }

  #setFields(response: ServerResponse, left: number, seconds: number): void {
    if (response.headersSent) return; // It took too long, and was answered by then.
    response.setHeader('ratelimit-policy', `"default";q=${this.#rate};w=1`);
    response.setHeader('ratelimit', `"default";r=${left};t=${seconds}`);
  }

  #tooMany(response: ServerResponse, seconds: number): Boom.Boom {
    this.#setFields(response, 0, seconds);
    const error = Boom.tooManyRequests(
      `This key may ask ${this.#rate} times a second. Try again in ${seconds} s.`,
    );
    error.output.headers['retry-after'] = String(seconds);
    return error;
  }
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
