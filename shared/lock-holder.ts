// Who holds the lock of a collection, as the lock says it.

import type { Redis } from './redis/connections.ts';
import { parseStored } from './redis/damage.ts';
import type { CollectionKeys } from './store/keys.ts';

/** Who holds a lock, and since when. */
export interface LockHolder {
  readonly holder: string;
  readonly since: string;
}

/** Who holds the lock of a collection, or `null` when it is free. */
export async function readLockHolder(redis: Redis, keys: CollectionKeys): Promise<LockHolder | null> {
  const token = await redis.get(keys.lock);
  return token === null ? null : holderOf(token, keys.lock);
}

/** Who holds a lock, by its token. @param key of the lock @throws DamagedKeyError */
export function holderOf(token: string, key: string): LockHolder {
  const { holder, since } = parseStored<LockHolder>(key, token);
  return { holder, since };
}
