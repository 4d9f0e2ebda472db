// The import of one collection, from upstream to the live version: who reads this file knows the importer.

import type { Collection } from '../shared/collections/collection.ts';
import { compareVersions, type VersionDiffCounts } from '../shared/content-diff.ts';
import { collectionKeys } from '../shared/keys.ts';
import { plainReason } from '../shared/redis.ts';
import { NotPublishedError } from '../shared/scripts.ts';
import * as versions from '../shared/versions.ts';
import { refusalsOf } from './checks/checks.ts';
import { conclude, conclusion, endDryRun, endLocked, fail } from './import-ending.ts';
import { takeLock } from './import-lock.ts';
import { type ImportReport, startReport } from './import-report.ts';
import { type ImportContext, type ImportRun, stagingOf } from './import-run.ts';
import { knownValidators, storedValidators } from './known-validators.ts';
import { UpstreamChangedError } from './reader/record-reader.ts';
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
  const keys = collectionKeys(context.keyPrefix, collection);
  const report = startReport(collection.name);
  try {
    const lock = await takeLock(context.redis, keys);
    if ('holder' in lock) {
      return await endLocked({ context, keys, report }, lock);
    }
    const started = { startedAt: new Date(), staging: null, validators: null };
    const run: ImportRun = { collection, context, keys, lock, report, ...started };
    try {
      return await untilItHolds(run);
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

/** How often an import starts again. */
const maxRestarts = 3;

/** The road, from its start again when upstream changed under it, or Redis lost a part of what it needs. */
async function untilItHolds(run: ImportRun): Promise<ImportReport> {
  for (let restarts = 0; ; restarts += 1) {
    try {
      return await cycle(run);
    } catch (error) {
      const mayHold = error instanceof UpstreamChangedError || error instanceof NotPublishedError;
      if (!mayHold || restarts === maxRestarts) throw error;
      const { logger } = run.context;
      logger.warn({ collection: run.collection.name, reason: error.message }, 'The import starts again.');
    }
  }
}

/** The road: stage what upstream has, judge it beside what is live, publish it. */
async function cycle(run: ImportRun): Promise<ImportReport> {
  const { context, keys } = run;
  const hold = context.scheduled ? await versions.readHold(context.redis, keys) : null;
  if (hold) return conclude(run, 'held', { reason: heldBecause(hold) }, 'keep');
  if (!context.dryRun)
    await versions.retainVersions(context.redis, { keys, token: run.lock.token }, context.keepVersions);
  const { live, whole } = await readLive(run);

  const { staged, validators } = await stageVersion(run, await knownValidators(run, whole));
  run.validators = validators;
  if (!staged) return conclude(run, 'unchanged', { version: live?.version ?? null }, 'keep');
  const { isLive, changeSets, refusal } = await judge(run, staged, { live, whole });

  const stored = storedValidators(run, validators);
  if (context.dryRun) return endDryRun(run, refusal);
  if (refusal) return conclude(run, 'refused', { reason: refusal }, null);
  if (isLive) return conclude(run, 'unchanged', { version: live?.version ?? null }, stored);
  return publish(run, staged, { live, changeSets, validators: stored });
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
  { live, whole }: { live: versions.LiveVersion | null; whole: versions.LiveVersion | null },
): Promise<{ isLive: boolean; changeSets: VersionDiffCounts['changeSets']; refusal: string | null }> {
  const { context, keys, report } = run;
  const { checksum } = staged.content;
  report.note(run.staging?.writer.counts ?? {});
  const isLive = checksum === whole?.checksum;
  const { changeSets, ...diff } = isLive ? unchanged : await compare(run, staged, { live, whole });
  report.note(diff);
  const undone = !isLive && (await versions.isUndone(context.redis, keys, checksum));
  const refusals = refusalsOf({ ...context, staged, live, diff, undone }, context);
  return { isLive, changeSets, refusal: refusals.join(' ') || null };
}

const unchanged: VersionDiffCounts = { added: 0, changed: 0, removed: 0, changeSets: [] };

/** What was staged against what is live; where that is not whole, by the counts alone, which is the least that differs. */
async function compare(
  run: ImportRun,
  staged: StagedVersion,
  { live, whole }: { live: versions.LiveVersion | null; whole: versions.LiveVersion | null },
): Promise<VersionDiffCounts> {
  const staging = stagingOf(run);
  const after = { content: staging.name, ...staged.content, derived: staged.derived };
  const counts = await compareVersions(run.context.redis, staging, { before: whole, after });
  if (!live || whole) return counts;
  const more = staged.written - live.totalCount;
  return { ...counts, added: Math.max(0, more), removed: Math.max(0, -more) };
}

function heldBecause({ since, version }: versions.Hold): string {
  return `Held since ${since}, after a rollback to version ${version}.`;
}

async function publish(
  run: ImportRun,
  staged: StagedVersion,
  next: Pick<versions.NextVersion, 'live' | 'changeSets' | 'validators'>,
): Promise<ImportReport> {
  const { context, keys, lock } = run;
  const number = stagingOf(run).name as number;
  const report = run.report.end('published', { version: number });
  const version: versions.NextVersion = {
    ...{ number, content: number, ...staged.content, derived: staged.derived, profile: staged.profile },
    ...{ forced: context.force, keepVersions: context.keepVersions, hold: null, undone: null, ...next },
  };
  await versions.publishVersion(context.redis, { keys, token: lock.token }, version, conclusion(run, report));
  return report;
}
