// How an import ends that publishes nothing: what it staged is dropped, and its report stays in the history.

import { plainReason } from '../shared/redis.ts';
import * as scripts from '../shared/scripts.ts';
import { readLiveVersion } from '../shared/versions.ts';
import { conclusionOf } from './import-history.ts';
import type { LockHolder } from './import-lock.ts';
import type { ImportOutcome, ImportReport } from './import-report.ts';
import { type ImportRun, stagingOf } from './import-run.ts';

/** How many rejects a dry run tells, since it keeps none. */
const shownRejects = 3;

/**
 * Ends an import that publishes nothing.
 * @param validators to store from now on: `null` for none, `'keep'` for those that are
 * @returns the report; of a publication, where that took place after all and only its reply was lost
 */
export async function conclude(
  run: ImportRun,
  outcome: ImportOutcome,
  facts: Partial<ImportReport>,
  validators: string | null,
): Promise<ImportReport> {
  const report = run.report.end(outcome, facts);
  const end = {
    name: run.staging?.name ?? ('' as const),
    checkedAt: outcome === 'unchanged' ? new Date().toISOString() : '',
    validators: validators ?? '',
  };
  const { redis } = run.context;
  const held = { keys: run.keys, token: run.lock.token };
  const dropped = await scripts.conclude(redis, held, end, conclusion(run, report)).catch((error) => {
    if (outcome !== 'failed' || !(error instanceof scripts.LockLostError)) throw error;
    return scripts.conclude(redis, { ...held, token: '' }, end, conclusion(run, report));
  });
  if (dropped === 'dropped') return report;
  return run.report.end('published', {
    ...run.staging?.writer.counts,
    version: stagingOf(run).name as number,
  });
}

/** Ends a dry run with its verdict: the reason for which the checks would refuse, or none. */
export async function endDryRun(run: ImportRun, reason: string | null): Promise<ImportReport> {
  const staging = stagingOf(run);
  for (const { position, path, reason: why } of staging.writer.rejects.slice(0, shownRejects)) {
    run.report.warn(`The record at position ${position} would be rejected: ${path} ${why}.`);
  }
  await scripts.discard(run.context.redis, staging, staging.name);
  return run.report.end('dry-run', { reason });
}

/** Ends an import that another one keeps from starting; the history says so, unless it was a dry run. */
export async function endLocked(
  { context: { redis, dryRun, force }, keys, report }: Pick<ImportRun, 'context' | 'keys' | 'report'>,
  { holder, since }: LockHolder,
): Promise<ImportReport> {
  const live = await readLiveVersion(redis, keys);
  const reason = `The lock is held by ${holder} since ${since}.`;
  const ended = report.end('locked', { previousVersion: live?.version ?? null, reason });
  if (dryRun) return ended;
  const facts = { startedAt: new Date(), forced: force, rejects: null, validators: null };
  const end = { name: '', checkedAt: '', validators: 'keep' };
  await scripts.conclude(redis, { keys, token: '' }, end, conclusionOf(ended, facts));
  return ended;
}

/** Ends an import that an error stopped; the reason is told even where Redis is not there to keep it. */
export async function fail(run: ImportRun, error: Error): Promise<ImportReport> {
  const { logger, dryRun, redis } = run.context;
  const collection = run.collection.name;
  logger.error({ collection, err: error }, 'The import failed.');
  // What was read and not yet written is judged and counted too; where Redis is the trouble, that cannot be.
  await run.staging?.writer.flush().catch(() => undefined);
  const counts = { ...run.staging?.writer.counts, added: 0, changed: 0, removed: 0 };
  const facts = { ...counts, reason: plainReason(error) };
  try {
    if (!dryRun) return await conclude(run, 'failed', facts, 'keep');
    if (run.staging) await scripts.discard(redis, run.staging, run.staging.name);
  } catch (second) {
    logger.error(
      { collection, err: second },
      'The failed import could not be cleared up in Redis; what it staged expires.',
    );
  }
  return run.report.end('failed', facts);
}

/** What an import leaves in the history; one that read nothing leaves the rejects of the import before. */
export function conclusion(run: ImportRun, report: ImportReport): scripts.Conclusion {
  const { startedAt, validators, staging } = run;
  const rejects = report.read === 0 ? null : (staging?.writer.rejects ?? []);
  return conclusionOf(report, { startedAt, forced: run.context.force, rejects, validators });
}
