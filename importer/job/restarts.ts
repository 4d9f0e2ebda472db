// An import that starts again: when upstream changed under it, or Redis lost a part of what it needs.

import { UpstreamChangedError } from '../parse/pages.ts';
import { NotPublishedError } from '../scripts/publish.ts';
import type { ImportJob } from './import-job.ts';
import type { ImportReport } from './import-report.ts';

/** How often an import starts again. */
const maxRestarts = 3;

/** Runs the cycle of an import until it comes to an end that another start would not better. @throws what the last one threw */
export async function untilItHolds(
  job: ImportJob,
  cycle: (job: ImportJob) => Promise<ImportReport>,
): Promise<ImportReport> {
  for (let restarts = 0; ; restarts += 1) {
    try {
      return await cycle(job);
    } catch (error) {
      const mayHold = error instanceof UpstreamChangedError || error instanceof NotPublishedError;
      if (!mayHold || restarts === maxRestarts) throw error;
      const { logger } = job.context;
      logger.warn({ collection: job.collection.name, reason: error.message }, 'The import starts again.');
      await forgetTry(job);
    }
  }
}

/**
 * Forgets what the last try has found out, since the next one finds it anew, or finds that nothing has changed. Writes that
 * are under way come to their end first: the next try sweeps what was staged, and nothing may be staged after that.
 */
async function forgetTry(job: ImportJob): Promise<void> {
  await job.begun?.writer.settle();
  job.begun = null;
  job.validators = null;
  job.upstreamVersion = undefined;
  job.report.startAgain();
}
