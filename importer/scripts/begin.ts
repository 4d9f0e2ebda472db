// begin.lua: begins a version.

import type { Redis } from '../../shared/redis/connections.ts';
import type { ContentName } from '../../shared/store/keys.ts';
import { type Held, heldReply } from './held.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('begin');

/**
 * Begins a version.
 * @param name that never becomes a version's number; `''`: a number is taken: the time, UTC, as `YYYYMMDDhhmmss`, or one more
 * than the last one where that is not earlier
 * @returns the name that it is staged under
 * @throws LockLostError
 */
export async function begin(
  redis: Redis,
  { keys, token }: Held,
  { name, lifetimeMs }: { name: string; lifetimeMs: number },
): Promise<ContentName> {
  const held = [keys.lock, keys.staged, keys.next, keys.versions, keys.changeSets];
  const reply = heldReply(await evaluate(redis, script, held, [token, name, lifetimeMs]));
  return name || Number(reply);
}
