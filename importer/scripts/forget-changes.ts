// forget-changes.lua: change sets are let go.

import type { Redis } from '../../shared/redis/connections.ts';
import { changeSetKeys } from '../../shared/store/keys.ts';
import { type Held, heldReply } from '../../shared/store/scripts.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('forget-changes');

/**
 * Lets go of the change sets up to that of a version.
 * @param before versions from which changes are not told any more, all those before it; at least one
 * @throws LockLostError
 */
export async function forgetChanges(
  redis: Redis,
  { keys, token }: Held,
  { version, before }: { version: number; before: readonly number[] },
): Promise<void> {
  const leaving = [...before, version].flatMap((number) => changeSetKeys(keys, number));
  heldReply(await evaluate(redis, script, [keys.lock, keys.changeSets, ...leaving], [token, ...before]));
}
