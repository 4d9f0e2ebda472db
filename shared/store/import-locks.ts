// What keeps imports of a collection away: the lock of another import, and the pause that a rollback leaves.

import type { Redis } from '../redis/connections.ts';
import { parseStored } from '../redis/failures.ts';
import type { CollectionKeys } from './keys.ts';

/** Who holds a lock, and since when. */
export interface LockHolder {
  readonly holder: string;
  readonly since: string;
}

/** Returns who holds the lock of a collection, or `null` if it is free. @throws DamagedKeyError */
export async function readLockHolder(redis: Redis, keys: CollectionKeys): Promise<LockHolder | null> {
  const token = await redis.get(keys.lock);
  return token === null ? null : holderOf(token, keys.lock);
}

/** Returns who holds a lock, by its token. @param key of the lock @throws DamagedKeyError */
export function holderOf(token: string, key: string): LockHolder {
  const { holder, since } = parseStored<LockHolder>(key, token);
  return { holder, since };
}

/** Scheduled imports of a collection are paused since then, by a rollback that published this version. */
export interface Pause {
  readonly since: string;
  readonly version: number;
}

/** Returns the pause of a collection, or `null` if its schedule runs. @throws DamagedKeyError */
export async function readPause(redis: Redis, keys: CollectionKeys): Promise<Pause | null> {
  const text = await redis.get(keys.pause);
  return text === null ? null : parseStored<Pause>(keys.pause, text);
}
