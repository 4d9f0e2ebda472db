// The history of a collection's imports with what each is named by, read in parts: a hundred reports may be long.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type HistoryEntry, historyCap } from '../../shared/ended-imports.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { parseStored } from '../../shared/redis/damage.ts';
import type { CollectionKeys } from '../../shared/store/keys.ts';

/** An import of the history. */
export interface PastImport {
  /** What Redis names it by, such as `1795316405123-0`. */
  readonly id: string;
  readonly report: HistoryEntry;
}

/** What names a past import. */
export const pastImportId = /^[0-9]{1,16}-[0-9]{1,16}$/;

/** How many are read and parsed in one turn of the event loop. */
const readAtOnce = 10;

/** All imports of the history, the latest first. @throws DamagedKeyError */
export async function readPastImports(redis: Redis, keys: CollectionKeys): Promise<PastImport[]> {
  const found: PastImport[] = [];
  let end = '+';
  while (found.length < historyCap) {
    const entries = await redis.xrevrange(keys.imports, end, '-', 'COUNT', readAtOnce);
    for (const entry of entries) found.push(pastImport(keys, entry));
    const last = entries.at(-1);
    if (!last || entries.length < readAtOnce) break;
    end = `(${last[0]}`;
    await nextTurn();
  }
  return found;
}

/** One import of the history; `null` where it is not kept. @throws DamagedKeyError */
export async function readPastImport(
  redis: Redis,
  keys: CollectionKeys,
  id: string,
): Promise<PastImport | null> {
  const [entry] = await redis.xrange(keys.imports, id, id);
  return entry ? pastImport(keys, entry) : null;
}

function pastImport(
  keys: CollectionKeys,
  [id, fields]: readonly [id: string, fields: readonly string[]],
): PastImport {
  return { id, report: parseStored<HistoryEntry>(keys.imports, fields[1] as string) };
}
