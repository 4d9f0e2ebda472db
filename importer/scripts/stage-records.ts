// stage-records.lua: records, and which of them are duplicates.

import type { Redis } from '../../shared/redis/connections.ts';
import type { PartKeys } from '../../shared/store/keys.ts';
import { type BegunVersion, heldReply } from '../../shared/store/scripts.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('stage-records');

/** One record on its way into a staged content. */
export interface StagedRecord {
  /** Position upstream, from 1. */
  readonly position: number;
  readonly id: number;
  /** Its JSON text, with the check of its id behind it. */
  readonly stored: Buffer;
}

/** A record of a batch whose id came before. */
export interface Duplicate {
  /** Index in the batch. */
  readonly index: number;
  /** Position of the first record with that id. */
  readonly firstPosition: number;
  /** Whether the first one is the same record. */
  readonly isSame: boolean;
}

/** Stages a batch of records of a part. @returns the duplicates in it. @throws LockLostError */
export async function stageRecords(
  redis: Redis,
  { keys, token, name, lifetimeMs }: BegunVersion,
  part: PartKeys,
  records: readonly StagedRecord[],
): Promise<Duplicate[]> {
  // Few large arguments: each one costs this process and Redis about as much as a record.
  const places = records.map(({ position, id, stored }) => `${position} ${id} ${stored.length}`).join(' ');
  const texts = Buffer.concat(records.map(({ stored }) => stored));
  const reply = await evaluate(
    redis,
    script,
    [keys.lock, keys.staged, part.workspace(name).positions, part.content(name).records],
    [token, name, lifetimeMs, places, texts],
  );
  const flat = heldReply(reply) as number[];
  const duplicates: Duplicate[] = [];
  for (let i = 0; i < flat.length; i += 3) {
    const [index, firstPosition, same] = flat.slice(i, i + 3) as [number, number, number];
    duplicates.push({ index: index - 1, firstPosition, isSame: same === 1 });
  }
  return duplicates;
}
