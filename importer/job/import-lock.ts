// The lock of a collection: one import at a time, renewed while its holder lives, free 30 s after its death.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { CollectionKeys, ContentName } from '../../shared/keys.ts';
import { holderOf, type LockHolder } from '../../shared/lock-holder.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { begin } from '../scripts/begin.ts';
import type { BegunVersion } from '../scripts/held.ts';
import { LockLostError } from '../scripts/held.ts';
import { release } from '../scripts/release.ts';
import { renew } from '../scripts/renew.ts';

/** Lifetimes, in ms. What is staged outlives the lock, and is renewed with it. */
export interface Lifetimes {
  readonly lockMs: number;
  readonly stagedMs: number;
  readonly renewEveryMs: number;
}

/** The lifetimes that hold outside of tests. */
export const lifetimes: Lifetimes = Object.freeze({ lockMs: 30_000, stagedMs: 60_000, renewEveryMs: 8_000 });

/** A lock that is held. */
export interface ImportLock {
  /** What every write of the import must show. */
  readonly token: string;
  /** Aborted when the lock is lost. */
  readonly signal: AbortSignal;
  /**
   * Begins a version under the lock; what is staged of it is renewed with the lock from now on.
   * @param name that never becomes a version's number; `''`: a new number is taken
   * @throws LockLostError
   */
  begin(name: string): Promise<BegunVersion>;
  release(): Promise<void>;
}

/** Takes the lock of a collection, or tells who holds it. Tests shorten the lifetimes. */
export async function takeLock(
  redis: Redis,
  keys: CollectionKeys,
  times: Lifetimes = lifetimes,
): Promise<ImportLock | LockHolder> {
  const holder: LockHolder = {
    holder: `process ${process.pid} on ${hostname()}`,
    since: new Date().toISOString(),
  };
  const token = JSON.stringify({ ...holder, token: randomUUID() });
  const taken = await redis.set(keys.lock, token, 'PX', times.lockMs, 'NX');
  const current = taken === 'OK' ? token : await redis.get(keys.lock);
  // The first reply may have been lost, and the repetition refused by our own token.
  if (current === token) return heldLock(redis, keys, token, times);
  if (current === null) return takeLock(redis, keys, times);
  await shortenLifetime(redis, keys, times);
  return holderOf(current, keys.lock);
}

/**
 * Lets a lock expire on time although the clock of Redis was put back, or a copy of it was restored: Redis keeps the time at
 * which a key expires, not how long it has left. A holder that lives renews its lock.
 */
async function shortenLifetime(redis: Redis, { lock }: CollectionKeys, { lockMs }: Lifetimes): Promise<void> {
  const left = await redis.pttl(lock); // -1: for ever, -2: the lock is free by now.
  if (left > lockMs || left === -1) await redis.pexpire(lock, lockMs);
}

function heldLock(redis: Redis, keys: CollectionKeys, token: string, times: Lifetimes): ImportLock {
  const lost = new AbortController();
  let name: ContentName = 0;
  let renewedAt = Date.now();
  const timer = setInterval(() => {
    if (Date.now() - renewedAt > times.lockMs) lost.abort(new LockLostError());
    renew(redis, { keys, token, name, lifetimeMs: times.stagedMs }, times.lockMs).then(
      () => {
        renewedAt = Date.now();
      },
      // Any other failure may pass; if none succeeds in the lock's lifetime, it is lost all the same.
      (error: unknown) => error instanceof LockLostError && lost.abort(error),
    );
  }, times.renewEveryMs);
  return {
    token,
    signal: lost.signal,
    begin: async (asked) => {
      const lifetimeMs = times.stagedMs;
      name = await begin(redis, { keys, token }, { name: asked, lifetimeMs });
      return { keys, token, name, lifetimeMs };
    },
    release: async () => {
      clearInterval(timer);
      await release(redis, { keys, token });
    },
  };
}
