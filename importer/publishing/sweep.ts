// What imports that died have left behind, unlinked.

import type { Redis } from '../../shared/redis/connections.ts';
import { discard } from '../scripts/discard.ts';
import type { Held } from '../scripts/held.ts';

/** Unlinks what imports that died have staged: whatever is staged, since the caller holds the lock. @throws LockLostError */
export async function sweepStaged(redis: Redis, held: Held): Promise<void> {
  for (const name of await redis.smembers(held.keys.staged)) {
    await discard(redis, held, name);
  }
}
