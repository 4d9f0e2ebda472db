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
    const started = { startedAt: new Date(), staging: null, validators: null };
    const run: ImportRun = { collection, context, keys, lock, report, ...started };
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

/** The road: stage what upstream has, judge it beside what is live, publish it. */
async function cycle(run: ImportRun): Promise<ImportReport> {
  const { context, keys } = run;
  const hold = context.scheduled ? await versions.readHold(context.redis, keys) : null;
  if (hold) return run.report.end('held', { reason: heldBecause(hold) });
  const { live, whole } = await readLive(run);

  const { staged, validators } = await stageVersion(run, await knownValidators(run, whole));
  run.validators = validators;
  if (!staged) return conclude(run, 'unchanged', { version: live?.version ?? null }, 'keep');
  const { isLive, refusal } = await judge(run, staged, whole);

  const stored = storedValidators(run, validators);
  if (context.dryRun) return endDryRun(run, refusal);
  if (refusal) return conclude(run, 'refused', { reason: refusal }, null);
  if (isLive) return conclude(run, 'unchanged', { version: live?.version ?? null }, stored);
  return publish(run, staged, { live, comparable: whole !== null, validators: stored });
}

/** What is live, and whether it is whole: with what Redis has lost a part of nothing is compared, so any import mends it. */
async function readLive({ context, keys, report }: ImportRun): Promise<{
  live: versions.LiveVersion | null;
  whole: versions.LiveVersion | null;
}> {
  const live = await versions.readLiveVersion(context.redis, keys);
  report.note({ previousVersion: live?.version ?? null });
  if (!live || (await versions.isWhole(context.redis, keys, live))) return { live, whole: live };
  report.warn(`Version ${live.version} is not whole in Redis; it was not compared with.`);
  return { live, whole: null };
}

/** Compares what was staged with what is live, and runs the checks: why it would be refused, `null` when it passes. */
async function judge(
  run: ImportRun,
  staged: StagedVersion,
  live: versions.LiveVersion | null,
): Promise<{ isLive: boolean; refusal: string | null }> {
  const { context, keys, report } = run;
  report.note(run.staging?.writer.counts ?? {});
  const isLive = staged.checksum === live?.checksum;
  const diff = isLive ? nothing : await compare(run, staged, live);
  report.note(diff);
  const undone = !isLive && (await versions.isUndone(context.redis, keys, staged.checksum));
  const refusals = refusalsOf({ ...context, staged, live, diff, undone }, context);
  return { isLive, refusal: refusals.join(' ') || null };
}

const nothing: DiffCounts = { added: 0, changed: 0, removed: 0 };

function heldBecause({ since, version }: versions.Hold): string {
  return `Held since ${since}, after a rollback to version ${version}.`;
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
    logger.error(
      { collection, err: second },
      'The failed import could not be cleared up in Redis; what it staged expires.',
    );
  }
  return run.report.end('failed', facts);
}

function stagingOf(run: ImportRun): scripts.Staging {
  if (!run.staging) throw new Error('Nothing has been staged yet.');
  return run.staging;
}

function conclusion(run: ImportRun, report: ImportReport): scripts.Conclusion {
  const rejects = run.staging?.writer.rejects ?? [];
  const { startedAt, validators } = run;
  return conclusionOf(report, { startedAt, forced: run.context.force, rejects, validators });
}
