// Reasons why an import must wait: the lock of another process, and the pause after a rollback.

import type { Redis } from '../redis/connections.ts';
import { parseStored } from '../redis/failures.ts';
import type { CollectionKeys } from './keys.ts';

/** The holder of a lock, and the time since when. */
export interface LockHolder {
  readonly holder: string;
  readonly since: string;
}

/** Returns the holder of a collection's lock; `null` if it is free. @throws DamagedKeyError */
export async function readLockHolder(redis: Redis, keys: CollectionKeys): Promise<LockHolder | null> {
  const token = await redis.get(keys.lock);
  return token === null ? null : holderOf(token, keys.lock);
}

/** How far the import in progress has come. */
export interface StoredProgress {
  /** Records. */
  readonly read: number;
  /** Of the bytes of the document, from 0 to 100; `null` if their number is unknown. */
  readonly percent: number | null;
}

/** Returns the progress of the import that holds the lock; `null` without one. @throws DamagedKeyError */
export async function readProgress(redis: Redis, keys: CollectionKeys): Promise<StoredProgress | null> {
  const text = await redis.get(keys.progress);
  return text === null ? null : parseStored<StoredProgress>(keys.progress, text);
}

/** Returns the holder in a lock's token. @param key of the lock @throws DamagedKeyError */
export function holderOf(token: string, key: string): LockHolder {
  const { holder, since } = parseStored<LockHolder>(key, token);
  return { holder, since };
}

/** A pause of scheduled imports, since the rollback that published this version. */
export interface Pause {
  readonly since: string;
  readonly version: number;
  /** Who rolled back, and the reason; absent if an earlier build stored the pause. */
  readonly by?: string | null;
  readonly why?: string | null;
}

/** Returns the pause of a collection; `null` if there is none. @throws DamagedKeyError */
export async function readPause(redis: Redis, keys: CollectionKeys): Promise<Pause | null> {
  const text = await redis.get(keys.pause);
  return text === null ? null : parseStored<Pause>(keys.pause, text);
}
