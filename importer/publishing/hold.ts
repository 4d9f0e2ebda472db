// What a rollback leaves for later imports: the schedule is held, and the content that was rolled back from is known.

import type { CollectionKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';

/** Lifts the hold of a collection. @returns whether there was one */
export async function liftHold(redis: Redis, keys: CollectionKeys): Promise<boolean> {
  return (await redis.del(keys.hold)) === 1;
}

/** Whether a content of this checksum was rolled back from, and not been wanted again since. */
export async function isUndone(redis: Redis, keys: CollectionKeys, checksum: string): Promise<boolean> {
  return (await redis.sismember(keys.undone, checksum)) === 1;
}
