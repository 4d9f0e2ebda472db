// The hold that a rollback leaves: scheduled imports are skipped until it is lifted.

import type { Redis } from './redis/connections.ts';
import { parseStored } from './redis/damage.ts';
import type { CollectionKeys } from './store/keys.ts';

/** Scheduled imports of a collection are skipped since then, because of a rollback to this version. */
export interface Hold {
  readonly since: string;
  readonly version: number;
}

/** The hold of a collection, or `null` when its schedule runs. @throws DamagedKeyError */
export async function readHold(redis: Redis, keys: CollectionKeys): Promise<Hold | null> {
  const text = await redis.get(keys.hold);
  return text === null ? null : parseStored<Hold>(keys.hold, text);
}
