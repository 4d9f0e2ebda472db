// How an import ends that publishes nothing: what it staged is dropped, and its report stays in the history.

import type { LockHolder } from '../../shared/lock-holder.ts';
import { plainReason } from '../../shared/redis/failures.ts';
import { readLiveVersion } from '../../shared/versions.ts';
import { conclude as concludeImport } from '../scripts/conclude.ts';
import type { Conclusion } from '../scripts/conclusion.ts';
import { discard } from '../scripts/discard.ts';
import { LockLostError } from '../scripts/held.ts';
import { conclusionOf } from './import-history.ts';
import { begunOf, type ImportJob } from './import-job.ts';
import type { ImportOutcome, ImportReport } from './import-report.ts';

/** How many rejects a dry run tells, since it keeps none. */
const shownRejects = 3;

/**
 * Ends an import that publishes nothing.
 * @param validators to store from now on: `null` for none, `'keep'` for those that are
 * @returns the report; of a publication, where that took place after all and only its reply was lost
 */
export async function conclude(
  job: ImportJob,
  outcome: ImportOutcome,
  facts: Partial<ImportReport>,
  validators: string | null,
): Promise<ImportReport> {
  const report = job.report.end(outcome, facts);
  const end = {
    name: job.begun?.name ?? ('' as const),
    checkedAt: outcome === 'unchanged' ? new Date().toISOString() : '',
    validators: validators ?? '',
  };
  const { redis } = job.context;
  const held = { keys: job.keys, token: job.lock.token };
  const dropped = await concludeImport(redis, held, end, conclusion(job, report)).catch((error) => {
    if (outcome !== 'failed' || !(error instanceof LockLostError)) throw error;
    return concludeImport(redis, { ...held, token: '' }, end, conclusion(job, report));
  });
  if (dropped === 'dropped') return report;
  return job.report.end('published', {
    ...job.begun?.writer.counts,
    version: begunOf(job).name as number,
  });
}

/** Ends a dry run with its verdict: the reason for which the checks would refuse, or none. */
export async function endDryRun(job: ImportJob, reason: string | null): Promise<ImportReport> {
  const begun = begunOf(job);
  for (const { position, path, reason: why } of begun.writer.rejects.slice(0, shownRejects)) {
    job.report.warn(`The record at position ${position} would be rejected: ${path} ${why}.`);
  }
  await discard(job.context.redis, begun, begun.name);
  return job.report.end('dry-run', { reason });
}

/**
 * Ends an import that another one keeps from starting; the history says so where it was by hand. The schedule asks again
 * until the lock is free, and a dry run leaves nothing behind.
 */
export async function endLocked(
  {
    context: { redis, dryRun, force, scheduled },
    keys,
    report,
  }: Pick<ImportJob, 'context' | 'keys' | 'report'>,
  { holder, since }: LockHolder,
): Promise<ImportReport> {
  const live = await readLiveVersion(redis, keys);
  const reason = `The lock is held by ${holder} since ${since}.`;
  const ended = report.end('locked', { previousVersion: live?.version ?? null, reason });
  if (dryRun || scheduled) return ended;
  const facts = { startedAt: new Date(), forced: force, rejects: null, validators: null };
  const end = { name: '', checkedAt: '', validators: 'keep' };
  await concludeImport(redis, { keys, token: '' }, end, conclusionOf(ended, facts));
  return ended;
}

/** Ends an import that an error stopped; the reason is told even where Redis is not there to keep it. */
export async function fail(job: ImportJob, error: Error): Promise<ImportReport> {
  const { logger, dryRun, redis } = job.context;
  const collection = job.collection.name;
  logger.error({ collection, err: error }, 'The import failed.');
  // What was read and not yet written is judged and counted too; where Redis is the trouble, that cannot be.
  await job.begun?.writer.flush().catch(() => undefined);
  const counts = { ...job.begun?.writer.counts, added: 0, changed: 0, removed: 0 };
  const facts = { ...counts, reason: plainReason(error) };
  try {
    if (!dryRun) return await conclude(job, 'failed', facts, 'keep');
    if (job.begun) await discard(redis, job.begun, job.begun.name);
  } catch (second) {
    logger.error(
      { collection, err: second },
      'The failed import could not be cleared up in Redis; what it staged expires.',
    );
  }
  return job.report.end('failed', facts);
}

/** What an import leaves in the history; one that read nothing leaves the rejects of the import before. */
export function conclusion(job: ImportJob, report: ImportReport): Conclusion {
  const { startedAt, validators, upstreamVersion, begun } = job;
  const rejects = report.read === 0 ? null : (begun?.writer.rejects ?? []);
  return conclusionOf(report, { startedAt, forced: job.context.force, rejects, validators, upstreamVersion });
}
