// The lease of a collection: one import holds it at a time and renews it; it is free 30 s after its holder's death.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Redis } from '../shared/redis/connections.ts';
import { holderOf, type LockHolder, type StoredProgress } from '../shared/store/import-locks.ts';
import type { CollectionKeys, ContentName } from '../shared/store/keys.ts';
import {
  begin,
  type Lock,
  LockLostError,
  release,
  renew,
  type StagingSession,
} from '../shared/store/scripts.ts';

/** Lifetimes, in ms. Staged keys outlive the lock and are renewed with it. */
export interface Lifetimes {
  readonly lockMs: number;
  readonly stagedMs: number;
  readonly renewEveryMs: number;
}

/** The lifetimes in production. */
export const lifetimes: Lifetimes = Object.freeze({ lockMs: 30_000, stagedMs: 60_000, renewEveryMs: 8_000 });

/** How often the progress is stored at most, in ms. */
const reportEveryMs = 1_000;

/** The lock of a collection, held by this process. */
export class Lease implements Lock {
  readonly keys: CollectionKeys;
  /** Every write of the import presents it. */
  readonly token: string;
  readonly #redis: Redis;
  readonly #times: Lifetimes;
  readonly #lost = new AbortController();
  readonly #timer: NodeJS.Timeout;
  /** The staged version that is renewed with the lock. */
  #name: ContentName = '';
  #renewedAt = Date.now();
  /** By `performance.now()`. */
  #reportedAt = -Infinity;

  private constructor(redis: Redis, lock: Lock, times: Lifetimes) {
    this.#redis = redis;
    this.keys = lock.keys;
    this.token = lock.token;
    this.#times = times;
    this.#timer = setInterval(() => this.#renew(), times.renewEveryMs);
  }

  /** Takes the lock of a collection, or returns who holds it. */
  static async take(
    redis: Redis,
    keys: CollectionKeys,
    times: Lifetimes = lifetimes,
  ): Promise<Lease | LockHolder> {
    const holder: LockHolder = {
      holder: `process ${process.pid} on ${hostname()}`,
      since: new Date().toISOString(),
    };
    const token = JSON.stringify({ ...holder, token: randomUUID() });
    for (;;) {
      const taken = await redis.set(keys.lock, token, 'PX', times.lockMs, 'NX');
      const current = taken === 'OK' ? token : await redis.get(keys.lock);
      // If the first reply was lost, the second attempt is refused by our own token.
      if (current === token) {
        await redis.del(keys.progress).catch(() => undefined); // Of an import that died.
        return new Lease(redis, { keys, token }, times);
      }
      if (current === null) continue;
      await limitLifetime(redis, keys, times);
      return holderOf(current, keys.lock);
    }
  }

  /** Aborted when the lock is lost. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /**
   * Begins a version; its staged keys are renewed with the lock from now on.
   * @param name a name that is never a version number; `''`: takes the next number
   * @throws LockLostError
   */
  async begin(name: string): Promise<StagingSession> {
    const lifetimeMs = this.#times.stagedMs;
    this.#name = await begin(this.#redis, this, { name, lifetimeMs });
    return { keys: this.keys, token: this.token, name: this.#name, lifetimeMs };
  }

  /** Stores the progress of the import, at most once a second, for as long as the lock. */
  report(progress: StoredProgress): void {
    const now = performance.now();
    if (now - this.#reportedAt < reportEveryMs) return;
    this.#reportedAt = now;
    const text = JSON.stringify(progress);
    this.#redis.set(this.keys.progress, text, 'PX', this.#times.lockMs).catch(() => undefined); // Only display uses it.
  }

  /** Releases the lock. If that fails, it expires. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    if (this.#reportedAt > 0) await this.#redis.del(this.keys.progress);
    await release(this.#redis, this);
  }

  #renew(): void {
    const { lockMs, stagedMs: lifetimeMs } = this.#times;
    if (Date.now() - this.#renewedAt > lockMs) this.#lost.abort(new LockLostError());
    const begun = { keys: this.keys, token: this.token, name: this.#name, lifetimeMs };
    renew(this.#redis, begun, lockMs).then(
      () => {
        this.#renewedAt = Date.now();
      },
      // Any other failure may be temporary; if all renewals fail, the lock expires.
      (error: unknown) => error instanceof LockLostError && this.#lost.abort(error),
    );
  }
}

/**
 * Limits the expiry of a lock after the clock of Redis moved back or a backup was restored: Redis stores the absolute time
 * of expiry. A living holder renews its lock.
 */
async function limitLifetime(redis: Redis, { lock }: CollectionKeys, { lockMs }: Lifetimes): Promise<void> {
  const left = await redis.pttl(lock); // -1: no expiry; -2: the lock is free.
  if (left > lockMs || left === -1) await redis.pexpire(lock, lockMs);
}
