// stage-runs.lua: sorted runs of entries, until they are merged.

import type { Redis } from '../../shared/redis/connections.ts';
import type { PartKeys } from '../../shared/store/keys.ts';
import { type BegunVersion, heldReply } from '../../shared/store/scripts.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('stage-runs');

/** A piece of a sorted run of entries: its name, and the entries. */
export type RunPiece = readonly [name: string, entries: Buffer];

/** Lets Redis keep pieces of sorted runs of a staged search index. @throws LockLostError */
export async function stageRuns(
  redis: Redis,
  { keys, token, name, lifetimeMs }: BegunVersion,
  part: PartKeys,
  pieces: readonly RunPiece[],
): Promise<void> {
  const held = [keys.lock, keys.staged, part.workspace(name).sorting];
  heldReply(await evaluate(redis, script, held, [token, name, lifetimeMs, ...pieces.flat()]));
}
