// The rejects of the last import of a collection, as Redis stores them.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Redis } from './redis/connections.ts';
import { parseStored } from './redis/damage.ts';
import type { CollectionKeys } from './store/keys.ts';

/** A rejected record with its reason. */
export interface Reject {
  /** Position in the upstream list, from 1. */
  readonly position: number;
  /** JSON path (RFC 9535) of the fault. */
  readonly path: string;
  readonly reason: string;
  /** The record as upstream sent it; a very long one is cut. */
  readonly raw: string;
}

/** The first rejects of the last import, and how many there were. */
export interface LastRejects {
  readonly total: number;
  /** When that import ended, ISO 8601; `null` if no import has read records yet. */
  readonly endedAt: string | null;
  readonly rejects: readonly Reject[];
}

/** The first element of the stored list. */
export interface RejectsHeader {
  readonly total: number;
  readonly endedAt: string;
}

/** Rejects that are parsed in one turn of the event loop: at most 2 ms. */
const parsedAtOnce = 100;

/** Reads the rejects of the last import that read records. @throws DamagedKeyError */
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
