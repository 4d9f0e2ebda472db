// The history of a collection's imports and the rejects of the last one: written as an import ends, read by operators.

import { type HistoryEntry, historyCap, readHistory } from '../../shared/ended-imports.ts';
import type { CollectionKeys } from '../../shared/keys.ts';
import type { Reject, RejectsHeader } from '../../shared/last-rejects.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { isWrongType } from '../../shared/redis/damage.ts';
import type { Conclusion } from '../scripts/conclusion.ts';
import type { Validators } from '../upstream/document.ts';
import type { ImportReport } from './import-report.ts';

/** What a report does not say of its import. */
export interface ConclusionFacts {
  readonly startedAt: Date;
  readonly forced: boolean;
  /** `null`: nothing was read, so those of the import before stay. */
  readonly rejects: readonly Reject[] | null;
  readonly validators: Validators | null;
}

/** What an import leaves in the history: its report, and its rejects behind a header with their true total. */
export function conclusionOf(
  report: ImportReport,
  { startedAt, forced, rejects, validators }: ConclusionFacts,
): Conclusion {
  const entry: HistoryEntry = {
    ...report,
    startedAt: startedAt.toISOString(),
    endedAt: new Date().toISOString(),
    forced,
    validators,
  };
  const header: RejectsHeader = { total: report.rejected, endedAt: entry.endedAt };
  return {
    report: JSON.stringify(entry),
    historyCap,
    rejects: rejects ? [header, ...rejects].map((it) => JSON.stringify(it)) : [],
  };
}

/**
 * The last import of a collection that began at a time or later and came to a good end, be it a refusal; `null` where there
 * is none. What failed, found the lock held or was a rollback has not told what upstream has.
 */
export async function readLastImportSince(
  redis: Redis,
  keys: CollectionKeys,
  since: Date,
): Promise<HistoryEntry | null> {
  const history = await readHistory(redis, keys, historyCap).catch(noneOfWrongType);
  const began = history.filter(({ startedAt }) => startedAt >= since.toISOString());
  return began.find(({ outcome }) => !['failed', 'locked', 'rolled-back'].includes(outcome)) ?? null;
}

/** A key of another type holds no history; the next import mends it. */
function noneOfWrongType(error: unknown): HistoryEntry[] {
  if (isWrongType(error)) return [];
  throw error;
}
