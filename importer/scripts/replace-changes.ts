// replace-changes.lua: change sets that were made anew, in the place of damaged ones.

import type { Redis } from '../../shared/redis/connections.ts';
import { type ChangeSetFacts, changeSetText } from '../../shared/store/change-sets.ts';
import { changeSetKeys } from '../../shared/store/keys.ts';
import type { BegunVersion } from '../../shared/store/scripts.ts';
import { requirePublished } from '../../shared/store/scripts.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('replace-changes');

/**
 * Puts the change sets that were staged in the place of those of a version; may be repeated.
 * @param facts of each part, in their order; `null` where it was compared with nothing
 * @throws LockLostError; StagedLostError when they are not whole
 */
export async function replaceChanges(
  redis: Redis,
  { keys, token, name }: BegunVersion,
  { version, facts }: { version: number; facts: readonly (ChangeSetFacts | null)[] },
): Promise<void> {
  const staged = changeSetKeys(keys, name);
  const places = changeSetKeys(keys, version);
  const reply = await evaluate(
    redis,
    script,
    [keys.lock, keys.staged, ...staged.flatMap((key, n) => [key, places[n] as string])],
    [token, String(name), ...facts.flatMap((its) => (its ? [its.size, changeSetText(its)] : [-1, '']))],
  );
  requirePublished(reply as number);
}
