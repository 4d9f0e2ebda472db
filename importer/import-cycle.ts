// The import of one collection, from upstream to the live version: who reads this file knows the importer.

import type { Collection } from '../shared/collections/collection.ts';
import { collectionKeys } from '../shared/keys.ts';
import * as scripts from '../shared/scripts.ts';
import * as versions from '../shared/versions.ts';
import { refusalsOf } from './checks/checks.ts';
import { conclusionOf } from './import-history.ts';
import { takeLock } from './import-lock.ts';
import { type ImportOutcome, type ImportReport, startReport } from './import-report.ts';
import type { ImportContext, ImportRun } from './import-run.ts';
import { stageVersion } from './staging.ts';
import type { StagedVersion } from './version-writer.ts';

/** How long a version that is not kept any more can still be read, in ms: longer than the longest request. */
const graceMs = 60_000;

/**
 * Imports one collection: publishes a new version, or says why not; unless it publishes, what is live stays live.
 * @returns the report; a failure is an outcome in it and never thrown
 */
export async function importCollection(
  collection: Collection,
  context: ImportContext,
): Promise<ImportReport> {
  const keys = collectionKeys(context.keyPrefix, collection.name);
  const report = startReport(collection.name);
  try {
    const lock = await takeLock(context.redis, keys);
    if ('holder' in lock) {
      return report.end('locked', { reason: `The lock is held by ${lock.holder} since ${lock.since}.` });
    }
    const run: ImportRun = { collection, context, keys, lock, report, startedAt: new Date(), staging: null };
    try {
      return await cycle(run);
    } catch (error) {
      return await fail(run, error as Error);
    } finally {
      await lock.release().catch((err) => context.logger.warn({ err }, 'The lock could not be given back.'));
    }
  } catch (error) {
    context.logger.error({ collection: collection.name, err: error }, 'The import failed outside its cycle.');
    return report.end('failed', { reason: (error as Error).message });
  }
}

/** The road: stage what upstream has, check it, publish it. */
async function cycle(run: ImportRun): Promise<ImportReport> {
  const { context, keys, report } = run;
  const live = await versions.readLiveVersion(context.redis, keys);
  report.note({ previousVersion: live?.version ?? null });

  const staged = await stageVersion(run, live);
  const { read, written, rejected, added, changed, removed } = staged;
  report.note({ read, written, rejected, added, changed, removed });

  const refusals = refusalsOf({ ...context, staged, live }, context);
  if (refusals.length > 0) return conclude(run, 'refused', { reason: refusals.join(' ') });
  if (staged.checksum === live?.checksum) return conclude(run, 'unchanged', { version: live.version });
  return publish(run, staged, live);
}

async function publish(
  run: ImportRun,
  staged: StagedVersion,
  live: versions.LiveVersion | null,
): Promise<ImportReport> {
  const { context, keys, lock } = run;
  const number = stagedNumber(run);
  const version: versions.Version = {
    version: number,
    content: number,
    publishedAt: versions.publicationTime(new Date(), live).toISOString(),
    totalCount: staged.written,
    checksum: staged.checksum,
    forced: context.force,
  };
  const kept = await versions.readKeptVersions(context.redis, keys);
  const report = run.report.end('published', { version: number });
  await scripts.publish(context.redis, {
    keys,
    token: lock.token,
    publication: {
      number,
      document: JSON.stringify(version),
      expectedLive: live?.document ?? '',
      totalCount: staged.written,
      leaving: versions.leavingVersions(kept, context.keepVersions),
      graceMs,
    },
    conclusion: conclusion(run, report),
  });
  return report;
}

/** Ends an import that publishes nothing. */
async function conclude(
  run: ImportRun,
  outcome: ImportOutcome,
  facts: Partial<ImportReport>,
): Promise<ImportReport> {
  const { context, keys, lock } = run;
  const report = run.report.end(outcome, facts);
  const number = stagedNumber(run);
  await scripts.conclude(context.redis, {
    keys,
    token: lock.token,
    number,
    conclusion: conclusion(run, report),
  });
  return report;
}

/** Ends an import that an error stopped; the reason is told even where Redis is not there to keep it. */
async function fail(run: ImportRun, error: Error): Promise<ImportReport> {
  const { logger } = run.context;
  const collection = run.collection.name;
  logger.error({ collection, err: error }, 'The import failed.');
  const facts = { ...run.staging?.writer.counts, added: 0, changed: 0, removed: 0, reason: error.message };
  try {
    return await conclude(run, 'failed', facts);
  } catch (second) {
    logger.error({ collection, err: second }, 'That the import failed could not be recorded.');
    return run.report.end('failed', facts);
  }
}

function stagedNumber(run: ImportRun): number {
  return run.staging?.number ?? 0;
}

function conclusion(run: ImportRun, report: ImportReport) {
  const rejects = run.staging?.writer.rejects ?? [];
  return conclusionOf(report, { startedAt: run.startedAt, forced: run.context.force, rejects });
}
