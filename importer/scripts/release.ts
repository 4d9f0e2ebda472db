// release.lua: a lock is given back.

import type { Redis } from '../../shared/redis/connections.ts';
import type { Held } from './held.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('release');

/** Gives a lock back; one that is not the caller's any more is left alone. */
export async function release(redis: Redis, { keys, token }: Held): Promise<void> {
  await evaluate(redis, script, [keys.lock], [token]);
}
