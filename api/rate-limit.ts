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

/** One rate limit, shared by all keys with this rate; each key has its own counter. */
class RateLimit {
  readonly #rate: number;
  readonly #options: RateLimiterOptions;
  readonly #limiter: RateLimiterRedis;

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
        `Requests are not counted against their rate limit: ${plainReason(error as Error)}`,
      );
      return null;
    }
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
