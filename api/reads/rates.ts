// Rates of keys, over all processes: a bucket in Redis for each key that has one, which leaks as fast as its rate. All that
// one turn of the event loop asks of a bucket is one command; what is known to be over its rate is refused without any.

import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Redis } from '../../shared/redis/connections.ts';
import { plainReason, refusalKind } from '../../shared/redis/failures.ts';
import type { ApiKey } from '../../shared/store/api-keys.ts';
import { rateKey } from '../../shared/store/keys.ts';
import { atEndOfTurn } from '../read/hmget-batcher.ts';

/** Buckets that a process remembers. */
const maxBuckets = 10_000;

/**
 * A process lets in a small share of what is left without asking, for this long, in ms, and reports it after that, since a
 * command for each turn of the event loop would cost more than all else that a rate does. What this lets through too much, where many
 * processes do the same at once, is owed.
 */
const leasedShare = 16;
const leaseMs = 10;

/**
 * Puts requests into a bucket, as many as it takes, and a debt, which it always takes, up to a minute's worth in all.
 * KEYS: the bucket. ARGV: requests a second; requests; debt. Returns how many it took, and what is in it then, as text.
 *
 * A bucket is what is in it, in requests, and when, in µs of the clock of Redis. It takes a second's worth. It may be a
 * tenth of a request below nothing, so that who asks once a second is not refused where his clock is not that of Redis.
 * It is written to no disk and no replica: with `appendfsync always` each request would wait for the disk. It stays for a
 * minute after its last request, since its expiry is written to both.
 */
const fillScript = `
local rate, asked, debt = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local level, at = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%d+)$')
local used = -0.1
if level then used = math.max(used, level - math.max(0, now - at) * rate / 1000000) end
local taken = math.max(0, math.min(asked, math.floor(rate - used + 0.000001)))
if taken + debt > 0 then
  used = math.min(used + taken + debt, rate * 60)
  redis.set_repl(redis.REPL_NONE)
  redis.call('SET', KEYS[1], string.format('%.6f %.0f', used, now), 'PX', string.format('%.0f', 60000 + math.max(0, used) / rate * 1000))
end
return {taken, string.format('%.6f', used)}`;

/** Whether a request is within its rate, and what is left of that, reckoned when it is asked for. */
export class Standing {
  readonly isWithin: boolean;
  /** Requests a second. */
  readonly rate: number;
  /** What is in the bucket. */
  readonly #used: number;

  constructor(isWithin: boolean, rate: number, used: number) {
    this.isWithin = isWithin;
    this.rate = rate;
    this.#used = used;
  }

  /** How many more there may be at once. */
  get left(): number {
    return Math.min(this.rate, Math.max(0, Math.floor(this.rate - this.#used + 0.000001)));
  }

  /** Until there may be one more, in whole seconds, at least one. */
  get retryAfterS(): number {
    return Math.max(1, Math.ceil((this.#used + 1 - this.rate) / this.rate));
  }

  /** Until all of a second's worth may be asked for, in whole seconds, at least one. */
  get fullAfterS(): number {
    return Math.max(1, Math.ceil(this.#used / this.rate));
  }
}

/** What rates are kept by. */
export interface RatesOptions {
  readonly redis: Redis;
  readonly keyPrefix: string;
  /** Of keys that have no rate of their own, such as `10/s`; `undefined`: they have none. */
  readonly defaultRate: string | undefined;
  /** Told why a request went uncounted, as a sentence. */
  readonly onUncounted: (message: string) => void;
}

/** The rates of all keys, as one process knows them. The connection is borrowed. */
export class Rates {
  readonly #options: RatesOptions;
  readonly #buckets = new LRUCache<string, Bucket>({ max: maxBuckets });

  constructor(options: RatesOptions) {
    this.#options = options;
  }

  /** What a request with this key is charged by; `null` where the key has no rate. */
  charge({ id, rate }: ApiKey): Charge | null {
    const its = rate ?? this.#options.defaultRate;
    return its === undefined ? null : new Charge(this.#bucket(id, its));
  }

  #bucket(id: string, rate: string): Bucket {
    const name = `${id} ${rate}`;
    const known = this.#buckets.get(name);
    if (known) return known;
    const { redis, keyPrefix, onUncounted } = this.#options;
    const bucket = new Bucket({
      ...{ redis, onUncounted, key: rateKey(keyPrefix, id), rate: Number.parseInt(rate, 10) },
    });
    this.#buckets.set(name, bucket);
    return bucket;
  }
}

/** What one request is charged: once, however often it is asked for. */
export class Charge {
  readonly #bucket: Bucket;
  #standing: Standing | Promise<Standing> | undefined;

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }

  /** Charges the request, without waiting for what comes of it. @returns how it stands where it is refused already */
  begin(): Standing | null {
    if (this.#standing) return null;
    const standing = this.#bucket.take();
    if (standing instanceof Standing && !standing.isWithin) return standing;
    this.#standing = standing;
    return null;
  }

  /** How the request stands; where Redis has to be asked, a promise, which rejects as the connection does. */
  settle(): Standing | Promise<Standing> {
    return this.begin() ?? (this.#standing as Standing | Promise<Standing>);
  }

  /** Charges more for what the answer costs besides; it is not refused for it, but those that come next may be. */
  owe(requests: number): void {
    if (requests > 0) this.#bucket.owe(requests);
  }
}

interface BucketOptions extends Pick<RatesOptions, 'redis' | 'onUncounted'> {
  readonly key: string;
  readonly rate: number;
}

/** What Redis made of the requests of one turn. */
interface Filled {
  readonly taken: number;
  readonly used: number;
}

/** The bucket of one key. */
class Bucket {
  readonly #its: BucketOptions;
  /** What is asked for in this turn. */
  #asked: { requests: number; debt: number; readonly filled: Promise<Filled> } | undefined;
  /** What was in it when Redis last said so. */
  #known = { used: 0, at: 0 };
  /** How many requests may be let in without asking, for now, and how many were, of which Redis does not know yet. */
  #leased = 0;
  #unreported = 0;

  constructor(its: BucketOptions) {
    this.#its = its;
  }

  /** Charges one request, where it is not refused without asking. */
  take(): Standing | Promise<Standing> {
    const { rate } = this.#its;
    const now = performance.now();
    const used = this.#used(now);
    if (used + 1 > rate) return new Standing(false, rate, used);
    if (this.#leased === 0 || now - this.#known.at > leaseMs) return this.#fillInRedis();
    this.#leased -= 1;
    if (this.#unreported === 0) setTimeout(() => this.#report(), leaseMs);
    this.#unreported += 1;
    return new Standing(true, rate, used + 1);
  }

  owe(requests: number): void {
    this.#ask().debt += requests;
  }

  #fillInRedis(): Promise<Standing> {
    const asked = this.#ask();
    const place = asked.requests++;
    const standing = asked.filled.then(
      ({ taken, used }) => new Standing(place < taken, this.#its.rate, used),
    );
    standing.catch(() => undefined); // Told to who waits for it; a request may end without.
    return standing;
  }

  #report(): void {
    if (this.#unreported > 0) this.#ask();
  }

  /** What is in it now, as far as this process knows. */
  #used(now: number): number {
    const { used, at } = this.#known;
    return used + this.#unreported - ((now - at) * this.#its.rate) / 1_000;
  }

  #ask(): { requests: number; debt: number; readonly filled: Promise<Filled> } {
    if (this.#asked) return this.#asked;
    const filled = new Promise<Filled>((resolve, reject) => {
      atEndOfTurn(() => {
        const { requests = 0, debt = 0 } = this.#asked ?? {};
        this.#asked = undefined;
        const unreported = this.#unreported;
        this.#unreported = 0;
        this.#send(requests, debt + unreported).then(resolve, reject);
      });
    });
    filled.catch(() => undefined); // It is for those that ask for a request, and there may be none.
    this.#asked = { requests: 0, debt: 0, filled };
    return this.#asked;
  }

  async #send(requests: number, debt: number): Promise<Filled> {
    const { redis, key, rate, onUncounted } = this.#its;
    try {
      const [taken, text] = (await fill(redis, key, [rate, requests, debt])) as [number, string];
      const used = Number(text);
      this.#known = { used, at: performance.now() };
      this.#leased = Math.max(0, Math.floor((rate - used) / leasedShare));
      return { taken, used };
    } catch (error) {
      if (refusalKind(error) === null) throw error;
      // A Redis that may not or cannot count goes on to be read.
      onUncounted(`Requests are not held against the rates of their keys: ${plainReason(error as Error)}`);
      return { taken: requests, used: 0 };
    }
  }
}

const fillSha = hash('sha1', fillScript);

/** Runs the script by its digest, and sends its text only where Redis does not have it. */
async function fill(redis: Redis, key: string, args: readonly number[]): Promise<unknown> {
  try {
    return await redis.evalsha(fillSha, 1, key, ...args);
  } catch (error) {
    if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
    return redis.eval(fillScript, 1, key, ...args);
  }
}
