// discard.lua: what was staged is dropped without a trace.

import type { Redis } from '../../shared/redis/connections.ts';
import type { ContentName } from '../../shared/store/keys.ts';
import { type Held, heldReply } from './held.ts';
import { stagedKeys } from './key-lists.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('discard');

/** What became of something staged that was to be dropped: it was, or it had been published after all. */
export type Dropped = 'dropped' | 'published';

/** Drops what was staged under a name without a trace, unless it had been published. @throws LockLostError */
export async function discard(redis: Redis, { keys, token }: Held, name: ContentName): Promise<Dropped> {
  const discarded = [keys.lock, keys.staged, keys.versions, ...stagedKeys(keys, name)];
  return dropped(await evaluate(redis, script, discarded, [token, name]));
}

/** What a script that drops replied. @throws LockLostError */
export function dropped(reply: unknown): Dropped {
  return heldReply(reply) === 2 ? 'published' : 'dropped';
}

/** Deletes what imports that died have staged; the caller holds the lock. @throws LockLostError */
export async function discardAll(redis: Redis, held: Held): Promise<void> {
  for (const name of await redis.smembers(held.keys.staged)) await discard(redis, held, name);
}
