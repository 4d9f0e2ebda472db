// The rejects of a collection's last import, as they are stored, and reading them.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Redis } from './redis/connections.ts';
import { parseStored } from './redis/damage.ts';
import type { CollectionKeys } from './store/keys.ts';

/** A record refused, with its reason. */
export interface Reject {
  /** Position upstream, from 1. */
  readonly position: number;
  /** JSON path (RFC 9535) of what was wrong. */
  readonly path: string;
  readonly reason: string;
  /** The record as it came, cut off where it is very long. */
  readonly raw: string;
}

/** The records that the last import rejected: the first of them, and how many there were. */
export interface LastRejects {
  readonly total: number;
  /** When that import ended, ISO 8601; `null` when there was none yet. */
  readonly endedAt: string | null;
  readonly rejects: readonly Reject[];
}

/** What stands before the rejects. */
export interface RejectsHeader {
  readonly total: number;
  readonly endedAt: string;
}

/** How many are parsed in one turn of the event loop: a ms or two of the longest ones. */
const parsedAtOnce = 100;

/** What the last import that read anything rejected. @throws DamagedKeyError */
export async function readLastRejects(redis: Redis, keys: CollectionKeys): Promise<LastRejects> {
  const [header, ...texts] = await redis.lrange(keys.rejects, 0, -1);
  if (header === undefined) return { total: 0, endedAt: null, rejects: [] };
  const { total, endedAt } = parseStored<RejectsHeader>(keys.rejects, header);
  const rejects: Reject[] = [];
  for (const [n, text] of texts.entries()) {
    rejects.push(parseStored<Reject>(keys.rejects, text));
    if (n % parsedAtOnce === parsedAtOnce - 1) await nextTurn();
  }
  return { total, endedAt, rejects };
}
