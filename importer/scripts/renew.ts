// renew.lua: a lock, and what is staged under it, live on.

import type { Redis } from '../../shared/redis/connections.ts';
import { type BegunVersion, heldReply } from './held.ts';
import { stagedKeys } from './key-lists.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('renew');

/** Renews a lock and the lifetime of what is staged under it. @throws LockLostError */
export async function renew(
  redis: Redis,
  { keys, token, name, lifetimeMs }: BegunVersion,
  lockMs: number,
): Promise<void> {
  const renewed = [keys.lock, keys.staged, ...stagedKeys(keys, name)];
  heldReply(await evaluate(redis, script, renewed, [token, name, lockMs, lifetimeMs]));
}
