// stage-blocks.lua: what records are listed by.

import type { Redis } from '../../shared/redis/connections.ts';
import type { PartKeys } from '../../shared/store/keys.ts';
import { type BegunVersion, heldReply } from '../../shared/store/scripts.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('stage-blocks');

/** What the records of one block of a staged content are listed by. */
export interface StagedBlock {
  /** From 0. */
  readonly number: number;
  /** Their ids in list order, as in packed-ids.ts. */
  readonly order: Buffer;
  /** As in block.ts; `null` where the records are too large for one. */
  readonly stored: Buffer | null;
}

/** Stages blocks of a part, and the order of their records. @throws LockLostError */
export async function stageBlocks(
  redis: Redis,
  { keys, token, name, lifetimeMs }: BegunVersion,
  part: PartKeys,
  blocks: readonly StagedBlock[],
): Promise<void> {
  const { order, blocks: stored } = part.content(name);
  const fields = blocks.flatMap((block) => [block.number, block.order, block.stored ?? '']);
  const held = [keys.lock, keys.staged, order, stored];
  heldReply(await evaluate(redis, script, held, [token, name, lifetimeMs, ...fields]));
}
