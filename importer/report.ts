// The report of one import: how it is built, stored in the import history, and read again.

import type { Reject, RejectsHeader } from '../shared/import-history.ts';
import {
  type HistoryEntry,
  historyCap,
  type ImportOutcome,
  type ImportReport,
  type ImportResult,
  readHistory,
} from '../shared/import-history.ts';
import type { Redis } from '../shared/redis/connections.ts';
import { isWrongType } from '../shared/redis/failures.ts';
import type { CollectionKeys } from '../shared/store/keys.ts';
import type { Conclusion } from '../shared/store/scripts.ts';
import { truncate } from '../shared/text.ts';
import { knownTime } from '../shared/time.ts';
import type { Validators } from './upstream/body.ts';

export type { ImportOutcome, ImportReport, ImportResult } from '../shared/import-history.ts';

/** Limits on stored texts: characters of a reason or warning, and number of warnings. The history has a hundred reports. */
const maxSentenceLength = 2_000;
const maxWarnings = 100;

/** A report in progress: facts are added when they become known, and `end` completes it. */
export interface ReportDraft {
  note(facts: Partial<ImportResult>): void;
  /** Adds warnings about oddities that are no reason to fail; a repeated sentence is added once. */
  warn(...warnings: string[]): void;
  end(outcome: ImportOutcome, facts?: Partial<ImportResult>): ImportResult;
}

/** Starts the report of an import. @param startedAt by `performance.now()` */
export function startReport(collection: string, startedAt: number = performance.now()): ReportDraft {
  let known: Partial<ImportResult> = {};
  const odd = new Set<string>();
  let leftOut = 0;
  return {
    note: (facts) => {
      known = { ...known, ...facts };
    },
    warn: (...warnings) => {
      for (const warning of warnings) {
        const sentence = truncate(warning, maxSentenceLength);
        if (odd.size < maxWarnings || odd.has(sentence)) odd.add(sentence);
        else leftOut += 1;
      }
    },
    end: (outcome, facts) => {
      const report: ImportResult = {
        collection,
        outcome,
        version: null,
        previousVersion: null,
        read: 0,
        written: 0,
        rejected: 0,
        added: 0,
        changed: 0,
        removed: 0,
        durationMs: Math.round(performance.now() - startedAt),
        reason: null,
        warnings: leftOut === 0 ? [...odd] : [...odd, `${leftOut} further warnings were left out.`],
        causes: [],
        despite: [],
        by: null,
        why: null,
        candidate: null,
        isLiveDamaged: false,
        ...known,
        ...facts,
      };
      return { ...report, reason: report.reason && truncate(report.reason, maxSentenceLength) };
    },
  };
}

/** Returns the members of a result that programs get, by `--json` and the webhook. */
export function reportOf({
  causes,
  despite,
  by,
  why,
  candidate,
  isLiveDamaged,
  ...report
}: ImportReport & Partial<ImportResult>): ImportReport {
  return report;
}

/** Facts of an import that its report does not contain. */
export interface ConclusionFacts {
  readonly startedAt: Date;
  readonly forced: boolean;
  /** `null`: nothing was read, so the earlier rejects stay. */
  readonly rejects: readonly Reject[] | null;
  readonly validators: Validators | null;
  /** See {@link HistoryEntry}. */
  readonly upstreamVersion?: string | null | undefined;
}

/** Returns the history entry of an import: its report, and its rejects after a header with their total. */
export function conclusionOf(
  { isLiveDamaged, ...report }: ImportResult,
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
  const header: RejectsHeader = { total: report.rejected, endedAt: entry.endedAt, causes: report.causes };
  return {
    report: JSON.stringify(entry),
    historyCap,
    rejects: rejects ? [header, ...rejects].map((it) => JSON.stringify(it)) : [],
  };
}

/**
 * Returns the last import of a collection that started at this time or later and read upstream; `null` without
 * one. Imports that failed or found the lock taken, rollbacks and discarded candidates do not count.
 */
export async function readLastImportSince(
  redis: Redis,
  keys: CollectionKeys,
  since: Date,
): Promise<HistoryEntry | null> {
  const history = await readHistory(redis, keys, historyCap).catch(noneOfWrongType);
  const began = history.filter(({ startedAt }) => (knownTime(startedAt) ?? '') >= since.toISOString());
  return began.find(({ outcome }) => !unread.has(outcome)) ?? null;
}

/** Outcomes of imports that did not read all of upstream. */
const unread: ReadonlySet<ImportOutcome> = new Set([
  'failed',
  'interrupted',
  'locked',
  'rolled-back',
  'discarded',
] as const);

/** The version of a medref upstream that an import has read. */
export interface SeenVersion {
  /** `null`: the upstream is no medref. */
  readonly version: string | null;
  /** When that import began. */
  readonly startedAt: string;
}

/** Returns the last version of upstream that an import read; `null` if the history has none. */
export async function readSeenVersion(redis: Redis, keys: CollectionKeys): Promise<SeenVersion | null> {
  const history = await readHistory(redis, keys, historyCap).catch(noneOfWrongType);
  for (const { upstreamVersion, startedAt } of history)
    if (upstreamVersion !== undefined) return { version: upstreamVersion, startedAt };
  return null;
}

/** A key of another type holds no history; the import reports how to repair it. */
function noneOfWrongType(error: unknown): HistoryEntry[] {
  if (isWrongType(error)) return [];
  throw error;
}
