// The import of one collection, from upstream to the live version: who reads this file knows the importer.

import { randomUUID } from 'node:crypto';
import type { Collection } from '../shared/collections/collection.ts';
import { collectionKeys } from '../shared/keys.ts';
import { plainReason } from '../shared/redis/failures.ts';
import { type Hold, readHold } from '../shared/schedule-hold.ts';
import { judge } from './checks/judge.ts';
import { conclude, conclusion, endDryRun, endLocked, fail } from './job/import-ending.ts';
import { amendHistory } from './job/import-history.ts';
import { begunOf, type ImportContext, type ImportJob, stagedContent } from './job/import-job.ts';
import { takeLock } from './job/import-lock.ts';
import { type ImportReport, startReport } from './job/import-report.ts';
import { knownValidators, storedValidators } from './job/known-validators.ts';
import { requireAtRest } from './job/list-at-rest.ts';
import { untilItHolds } from './job/restarts.ts';
import { readRecords } from './parse/pages.ts';
import { awaitAcknowledgement } from './publishing/acknowledgement.ts';
import { findLive } from './publishing/live-content.ts';
import { mendKeys } from './publishing/mended-keys.ts';
import { type NextVersion, publishVersion } from './publishing/publish-version.ts';
import { retainVersions } from './publishing/retention.ts';
import { sweepStaged } from './publishing/sweep.ts';
import { maxNumberWaitMs } from './publishing/version-number.ts';
import { requireWhole } from './publishing/wholeness.ts';
import { medrefVersion, type Validators } from './upstream/body.ts';
import { createUpstream } from './upstream/upstream.ts';
import { type StagedVersion, unknownMembersWarning, VersionWriter } from './writing/version-writer.ts';

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
    const lock = await takeLock(context.redis, keys, context.lifetimes);
    if ('holder' in lock) return await endLocked({ context, keys, report }, lock);
    const nothing = { begun: null, validators: null, upstreamVersion: undefined, foundMoving: null };
    const job: ImportJob = { collection, context, keys, lock, report, startedAt: new Date(), ...nothing };
    try {
      return await untilItHolds(job, cycle);
    } catch (error) {
      return await fail(job, error as Error);
    } finally {
      await lock.release().catch((err) => context.logger.warn({ err }, 'The lock could not be given back.'));
    }
  } catch (error) {
    context.logger.error({ collection: collection.name, err: error }, 'The import failed outside its cycle.');
    return report.end('failed', { reason: plainReason(error as Error) });
  }
}

/** The road: stage what upstream has, judge it beside what is live, publish it. */
async function cycle(job: ImportJob): Promise<ImportReport> {
  const { context, keys, lock, report } = job;
  const { redis, keepVersions } = context;
  const held = { keys, token: lock.token };
  if (!context.dryRun) report.warnOfMended(...(await mendKeys(redis, held)));
  const hold = context.scheduled ? await readHold(redis, keys) : null;
  if (hold) return conclude(job, 'held', { reason: heldBecause(hold) }, 'keep');
  if (!context.dryRun) await retainVersions(redis, held, keepVersions);
  const found = await findLive(redis, keys);
  const { live } = found;
  report.note({ previousVersion: live?.version ?? null });
  report.warn(...found.warnings);
  for (const warning of found.warnings) context.logger.warn({ collection: job.collection.name }, warning);

  await sweepStaged(redis, held);
  const { staged, validators } = await stage(job, await knownValidators(job, found.current));
  job.validators = validators;
  if (!staged) return conclude(job, 'unchanged', { version: live?.version ?? null }, 'keep');
  const { isLive, changeSets, refusal } = await judge(job, staged, found);

  const stored = storedValidators(job, validators);
  if (context.dryRun) return endDryRun(job, refusal);
  if (refusal) return conclude(job, 'refused', { reason: refusal }, null);
  if (isLive) return conclude(job, 'unchanged', { version: live?.version ?? null }, stored);
  return publish(job, staged, { live, changeSets, validators: stored });
}

/** What upstream had. */
interface FromUpstream {
  /** `null` where upstream says that nothing has changed since the validators it was sent. */
  readonly staged: StagedVersion | null;
  /** Of a list that is a single document. */
  readonly validators: Validators | null;
}

/**
 * Upstream → reader → version writer, until upstream has no more.
 * @param known validators of the live version, if upstream may be asked whether anything has changed
 * @throws UpstreamChangedError when upstream changed under the walk; StagedLostError
 */
async function stage(job: ImportJob, known: Validators | null): Promise<FromUpstream> {
  const { collection, context, keys, lock, report } = job;
  const { redis, upstream: source } = context;
  const signal = AbortSignal.any([lock.signal, ...(context.signal ? [context.signal] : [])]);
  const upstream = createUpstream({ token: source.token, signal, limits: context.upstreamLimits });
  try {
    const begun = await lock.begin(context.dryRun ? `dry-run-${randomUUID()}` : '');
    const writer = new VersionWriter(redis, begun, collection);
    job.begun = { ...begun, writer };
    const walk = readRecords({
      ...{ url: source.url, upstream, validators: known, limits: context.readerLimits },
    });
    for (;;) {
      const { done, value } = await walk.next();
      signal.throwIfAborted();
      if (!done) {
        await writer.write(value);
        const arrival = value.page === 1 ? value.arrival : null;
        context.onProgress?.({ read: writer.counts.read, arrival });
        continue;
      }
      report.warn(...value.warnings);
      job.upstreamVersion = medrefVersion(value.version);
      if (value.notModified) return { staged: null, validators: known };
      const staged = await writer.finish();
      report.warn(...requireAtRest(job, staged));
      await requireWhole(redis, keys, stagedContent(job, staged));
      report.warn(...unknownMembersWarning(staged), ...staged.warnings);
      return { staged, validators: value.validators };
    }
  } finally {
    await upstream.close();
  }
}

function heldBecause({ since, version }: Hold): string {
  return `Held since ${since}, after a rollback to version ${version}.`;
}

async function publish(
  job: ImportJob,
  staged: StagedVersion,
  next: Pick<NextVersion, 'live' | 'changeSets' | 'validators'>,
): Promise<ImportReport> {
  const { context, keys, lock } = job;
  const number = begunOf(job).name as number;
  const report = job.report.end('published', { version: number });
  const version: NextVersion = {
    ...{ number, content: number, ...stagedContent(job, staged), profile: staged.profile },
    ...{ forced: context.force, keepVersions: context.keepVersions, hold: null, undone: null, ...next },
    maxNumberWaitMs: context.maxNumberWaitMs ?? maxNumberWaitMs,
  };
  const held = { keys, token: lock.token };
  const concluded = conclusion(job, report);
  await publishVersion(context.redis, held, version, concluded);
  const { waitReplicas: replicas, redis, logger } = context;
  const warnings = await awaitAcknowledgement(redis, { keys, version: number, replicas, logger });
  if (warnings.length === 0) return report;
  job.report.warn(...warnings, ...(await amendHistory(redis, held, concluded, warnings)));
  return job.report.end('published', { version: number });
}
