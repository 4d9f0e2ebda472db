// The lease of a collection: one import holds it at a time and renews it; it is free 30 s after its holder's death.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Redis } from '../shared/redis/connections.ts';
import { holderOf, type LockHolder } from '../shared/store/import-locks.ts';
import type { CollectionKeys, ContentName } from '../shared/store/keys.ts';
import {
  begin,
  type Lock,
  LockLostError,
  release,
  renew,
  type StagingSession,
} from '../shared/store/scripts.ts';

/** Lifetimes, in ms. What is staged outlives the lock, and is renewed with it. */
export interface Lifetimes {
  readonly lockMs: number;
  readonly stagedMs: number;
  readonly renewEveryMs: number;
}

/** The lifetimes that are used outside of tests. */
export const lifetimes: Lifetimes = Object.freeze({ lockMs: 30_000, stagedMs: 60_000, renewEveryMs: 8_000 });

/** A lock that this process holds. */
export class Lease implements Lock {
  readonly keys: CollectionKeys;
  /** Every write of the import shows it. */
  readonly token: string;
  readonly #redis: Redis;
  readonly #times: Lifetimes;
  readonly #lost = new AbortController();
  readonly #timer: NodeJS.Timeout;
  /** What is staged under the lock and renewed with it. */
  #name: ContentName = '';
  #renewedAt = Date.now();

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
      // If the first reply was lost, the repetition is refused by our own token.
      if (current === token) return new Lease(redis, { keys, token }, times);
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
   * Begins a version; what is staged of it is renewed with the lock from now on.
   * @param name that never becomes a version's number; `''`: a new number is taken
   * @throws LockLostError
   */
  async begin(name: string): Promise<StagingSession> {
    const lifetimeMs = this.#times.stagedMs;
    this.#name = await begin(this.#redis, this, { name, lifetimeMs });
    return { keys: this.keys, token: this.token, name: this.#name, lifetimeMs };
  }

  /** Gives the lock back; it would expire by itself. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
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
      // Any other failure may pass; if none succeeds in the lock's lifetime, the lock is lost all the same.
      (error: unknown) => error instanceof LockLostError && this.#lost.abort(error),
    );
  }
}

/**
 * Lets a lock expire on time although the clock of Redis was put back or a backup was restored: Redis stores the time at
 * which a key expires. A holder that lives renews its lock.
 */
async function limitLifetime(redis: Redis, { lock }: CollectionKeys, { lockMs }: Lifetimes): Promise<void> {
  const left = await redis.pttl(lock); // -1: for ever, -2: the lock is free by now.
  if (left > lockMs || left === -1) await redis.pexpire(lock, lockMs);
}
