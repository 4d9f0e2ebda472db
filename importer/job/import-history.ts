// The history of a collection's imports and the rejects of the last one: written as an import ends, read by operators.

import { knownTime } from '../../shared/dated-ahead.ts';
import { type HistoryEntry, historyCap, readHistory } from '../../shared/ended-imports.ts';
import type { CollectionKeys } from '../../shared/keys.ts';
import type { Reject, RejectsHeader } from '../../shared/last-rejects.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { isWrongType } from '../../shared/redis/damage.ts';
import { plainReason } from '../../shared/redis/failures.ts';
import { amend } from '../scripts/amend.ts';
import type { Conclusion } from '../scripts/conclusion.ts';
import type { Held } from '../scripts/held.ts';
import type { Validators } from '../upstream/body.ts';
import type { ImportReport } from './import-report.ts';

/** What a report does not say of its import. */
export interface ConclusionFacts {
  readonly startedAt: Date;
  readonly forced: boolean;
  /** `null`: nothing was read, so those of the import before stay. */
  readonly rejects: readonly Reject[] | null;
  readonly validators: Validators | null;
  /** See {@link HistoryEntry}. */
  readonly upstreamVersion?: string | null | undefined;
}

/** What an import leaves in the history: its report, and its rejects behind a header with their true total. */
export function conclusionOf(
  report: ImportReport,
  { startedAt, forced, rejects, validators, upstreamVersion }: ConclusionFacts,
): Conclusion {
  const entry: HistoryEntry = {
    ...report,
    startedAt: startedAt.toISOString(),
    endedAt: new Date().toISOString(),
    forced,
    validators,
    ...(upstreamVersion !== undefined && { upstreamVersion }),
  };
  const header: RejectsHeader = { total: report.rejected, endedAt: entry.endedAt };
  return {
    report: JSON.stringify(entry),
    historyCap,
    rejects: rejects ? [header, ...rejects].map((it) => JSON.stringify(it)) : [],
  };
}

/**
 * Puts warnings that came after a publication into its report in the history, which was written in the same step.
 * @returns a further warning where that could not be
 */
export async function amendHistory(
  redis: Redis,
  held: Held,
  { report: from }: Conclusion,
  warnings: readonly string[],
): Promise<string[]> {
  if (warnings.length === 0) return [];
  const entry: HistoryEntry = JSON.parse(from);
  const to = JSON.stringify({ ...entry, warnings: [...entry.warnings, ...warnings] });
  try {
    await amend(redis, held, { from, to });
    return [];
  } catch (error) {
    return [`The history does not have these warnings: ${plainReason(error as Error)}`];
  }
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
  const began = history.filter(({ startedAt }) => (knownTime(startedAt) ?? '') >= since.toISOString());
  return began.find(({ outcome }) => !['failed', 'locked', 'rolled-back'].includes(outcome)) ?? null;
}

/** The version of a medref that an import has read. */
export interface SeenVersion {
  /** `null`: the upstream is no medref. */
  readonly version: string | null;
  /** When that import began. */
  readonly startedAt: string;
}

/** The version of upstream that was read last; `null` where no import of the history has come so far. */
export async function readSeenVersion(redis: Redis, keys: CollectionKeys): Promise<SeenVersion | null> {
  const history = await readHistory(redis, keys, historyCap).catch(noneOfWrongType);
  for (const { upstreamVersion, startedAt } of history)
    if (upstreamVersion !== undefined) return { version: upstreamVersion, startedAt };
  return null;
}

/** A key of another type holds no history; the next import mends it. */
function noneOfWrongType(error: unknown): HistoryEntry[] {
  if (isWrongType(error)) return [];
  throw error;
}
