// The import of one collection, from upstream to the live version: who reads this file knows the importer.

import type { Collection } from '../shared/collections/collection.ts';
import { compareContents, type DiffCounts } from '../shared/content-diff.ts';
import { collectionKeys } from '../shared/keys.ts';
import { plainReason } from '../shared/redis.ts';
import * as scripts from '../shared/scripts.ts';
import * as versions from '../shared/versions.ts';
import { refusalsOf } from './checks/checks.ts';
import { conclusionOf } from './import-history.ts';
import { takeLock } from './import-lock.ts';
import { type ImportOutcome, type ImportReport, startReport } from './import-report.ts';
import type { ImportContext, ImportRun } from './import-run.ts';
import { knownValidators, storedValidators } from './known-validators.ts';
import { stageVersion } from './staging.ts';
import type { StagedVersion } from './version-writer.ts';

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
    return report.end('failed', { reason: plainReason(error as Error) });
  }
}

/** The road: stage what upstream has, compare it with what is live, check it, publish it. */
async function cycle(run: ImportRun): Promise<ImportReport> {
  const { context, keys, report } = run;
  const { redis } = context;
  const hold = context.scheduled ? await versions.readHold(redis, keys) : null;
  if (hold)
    return report.end('held', {
      reason: `Held since ${hold.since}, after a rollback to version ${hold.version}.`,
    });
  const live = await versions.readLiveVersion(redis, keys);
  report.note({ previousVersion: live?.version ?? null });
  // Of a live version that Redis has lost a part of, nothing is left to compare with, and any import mends it.
  const whole = live && (await versions.isWhole(redis, keys, live)) ? live : null;

  const { staged, validators, warnings } = await stageVersion(run, await knownValidators(run, whole));
  const damage =
    live && !whole ? [`Version ${live.version} is not whole in Redis; it was not compared with.`] : [];
  report.note({ ...run.staging?.writer.counts, warnings: [...damage, ...warnings] });
  const stored = storedValidators(run, validators);
  if (!staged) return conclude(run, 'unchanged', { version: live?.version ?? null }, 'keep');

  const isLive = staged.checksum === whole?.checksum;
  const diff = isLive ? { added: 0, changed: 0, removed: 0 } : await compare(run, staged, whole);
  report.note(diff);
  const undone = !isLive && (await versions.isUndone(redis, keys, staged.checksum));
  const refusals = refusalsOf({ ...context, staged, live: whole, diff, undone }, context);
  const reason = refusals.length > 0 ? refusals.join(' ') : null;

  if (context.dryRun) return endDryRun(run, reason);
  if (reason) return conclude(run, 'refused', { reason }, null);
  if (isLive) return conclude(run, 'unchanged', { version: whole.version }, stored);
  return publish(run, staged, { live, comparable: whole !== null, validators: stored });
}

async function compare(
  run: ImportRun,
  staged: StagedVersion,
  live: versions.LiveVersion | null,
): Promise<DiffCounts> {
  const staging = stagingOf(run);
  const after = { content: staging.name, totalCount: staged.written };
  return compareContents(run.context.redis, staging, { before: live, after });
}

async function publish(
  run: ImportRun,
  staged: StagedVersion,
  next: Pick<versions.NextVersion, 'live' | 'comparable' | 'validators'>,
): Promise<ImportReport> {
  const { context, keys, lock } = run;
  const number = stagingOf(run).name as number;
  const report = run.report.end('published', { version: number });
  const version: versions.NextVersion = {
    ...{ number, content: number, totalCount: staged.written, checksum: staged.checksum },
    ...{ profile: staged.profile, forced: context.force, keepVersions: context.keepVersions },
    ...{ hold: null, undone: null, ...next },
  };
  await versions.publishVersion(context.redis, { keys, token: lock.token }, version, conclusion(run, report));
  return report;
}

/** Ends a dry run with its verdict: the reason for which the checks would refuse, or none. */
async function endDryRun(run: ImportRun, reason: string | null): Promise<ImportReport> {
  await scripts.discard(run.context.redis, stagingOf(run));
  return run.report.end('dry-run', { reason });
}

/** Ends an import that publishes nothing. @param validators to store from now on; `null` for none */
async function conclude(
  run: ImportRun,
  outcome: ImportOutcome,
  facts: Partial<ImportReport>,
  validators: string | null,
): Promise<ImportReport> {
  const report = run.report.end(outcome, facts);
  const { redis } = run.context;
  const held = { keys: run.keys, token: run.lock.token };
  const end = {
    name: run.staging?.name ?? ('' as const),
    checkedAt: outcome === 'unchanged' ? new Date().toISOString() : '',
    validators: validators ?? '',
  };
  const dropped = await scripts.conclude(redis, held, end, conclusion(run, report));
  if (dropped === 'dropped') return report;
  return run.report.end('published', {
    ...run.staging?.writer.counts,
    version: stagingOf(run).name as number,
  });
}

/** Ends an import that an error stopped; the reason is told even where Redis is not there to keep it. */
async function fail(run: ImportRun, error: Error): Promise<ImportReport> {
  const { logger, dryRun, redis } = run.context;
  const collection = run.collection.name;
  logger.error({ collection, err: error }, 'The import failed.');
  // What was read and not yet written is judged and counted too; where Redis is the trouble, that cannot be.
  await run.staging?.writer.finish().catch(() => undefined);
  const counts = { ...run.staging?.writer.counts, added: 0, changed: 0, removed: 0 };
  const facts = { ...counts, reason: plainReason(error) };
  try {
    if (!dryRun) return await conclude(run, 'failed', facts, 'keep');
    if (run.staging) await scripts.discard(redis, run.staging);
  } catch (second) {
    logger.error({ collection, err: second }, 'That the import failed could not be recorded.');
  }
  return run.report.end('failed', facts);
}

function stagingOf(run: ImportRun): scripts.Staging {
  if (!run.staging) throw new Error('Nothing has been staged yet.');
  return run.staging;
}

function conclusion(run: ImportRun, report: ImportReport): scripts.Conclusion {
  const rejects = run.staging?.writer.rejects ?? [];
  return conclusionOf(report, { startedAt: run.startedAt, forced: run.context.force, rejects });
}
