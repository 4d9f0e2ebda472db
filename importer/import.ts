// The import of one collection: reads upstream, stages a version, checks it against the live one and publishes it.

import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { type Candidate, candidateLifetimeMs, readCandidate } from '../shared/candidates.ts';
import type { Collection } from '../shared/collections/define.ts';
import type { Redis } from '../shared/redis/connections.ts';
import { plainReason } from '../shared/redis/failures.ts';
import { countDamage } from '../shared/store/completeness.ts';
import { type LockHolder, readPause } from '../shared/store/import-locks.ts';
import { type CollectionKeys, collectionKeys } from '../shared/store/keys.ts';
import {
  type CandidateEnd,
  type Conclusion,
  conclude,
  discard,
  discardAll,
  type KeptValidators,
  LockLostError,
  NotPublishedError,
  type StagingSession,
} from '../shared/store/scripts.ts';
import { currentFormat, readLiveVersion, type StoredContent } from '../shared/store/versions.ts';
import { requireIntactKeys } from './bookkeeping.ts';
import { runChecks } from './checks.ts';
import { compareVersions, emptyChangeSets, isSame, type VersionDiffCounts } from './diff.ts';
import { awaitDurability } from './durability.ts';
import { type FoundLive, findLive, requireComplete } from './integrity.ts';
import { Lease, type Lifetimes } from './lease.ts';
import { type ReaderLimits, readRecords, UpstreamChangedError } from './parse/pages.ts';
import { maxNumberWaitMs, publishVersion, retainVersions } from './publish.ts';
import { conclusionOf, type ImportOutcome, type ImportResult, startReport } from './report.ts';
import { type StagedVersion, VersionWriter } from './stage.ts';
import type { UpstreamLimits } from './upstream/access.ts';
import { type Arrival, medrefVersion, type Validators } from './upstream/body.ts';
import { createUpstream, readValidators, storedValidators } from './upstream/upstream.ts';

/** The options of an import. */
export interface ImportOptions {
  readonly redis: Redis;
  readonly keyPrefix: string;
  readonly upstream: { readonly url: URL; readonly token: string | undefined };
  readonly maxShrinkPercent: number;
  readonly maxRejectPercent: number;
  readonly maxChangePercent: number;
  readonly keepVersions: number;
  /** `manual`: a version that passes the checks becomes a candidate, unless it only rebuilds the live one. */
  readonly publish: 'auto' | 'manual';
  /** Skips the checks and ignores a rollback. A version without a valid record is still refused. */
  readonly force: boolean;
  /** Does everything except publishing, and stores nothing. */
  readonly dryRun: boolean;
  /** Whether the schedule started it. Scheduled imports skip a paused collection. */
  readonly scheduled: boolean;
  /** Who started it, for the history: user and host, or `schedule`. */
  readonly by?: string | undefined;
  readonly logger: Logger;
  /** Ends the import early, as failed. */
  readonly signal?: AbortSignal | undefined;
  /** Called after each batch of records. */
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
  /** Lifetimes of the lock and of staged keys; tests shorten them. */
  readonly lifetimes?: Lifetimes | undefined;
  /** How long a publication waits for the second of its number to end; 0 in tests. */
  readonly maxNumberWaitMs?: number | undefined;
  /** Limits on waiting and size; tests shorten them. */
  readonly upstreamLimits?: Partial<UpstreamLimits> | undefined;
  /** Limits on the list; tests shorten them. */
  readonly readerLimits?: Partial<ReaderLimits> | undefined;
}

/** How far an import has come. */
export interface ImportProgress {
  /** Records. */
  readonly read: number;
  /** How much of the document has arrived; `null` for a paged list, whose length is unknown. */
  readonly arrival: Arrival | null;
}

/** How often an import restarts if upstream changed during the read or Redis lost staged keys. */
const maxRestarts = 3;

/** How many rejects a dry run shows, since it stores none. */
const shownRejects = 3;

/**
 * Imports one collection: publishes a new version or reports why not. The live version stays unless it publishes.
 * @returns the result; a failure is an outcome in it and never thrown
 */
export async function importCollection(
  collection: Collection,
  options: ImportOptions,
): Promise<ImportResult> {
  const keys = collectionKeys(options.keyPrefix, collection);
  const start = { date: new Date(), time: performance.now() };
  const { redis, logger } = options;
  try {
    const lease = await Lease.take(redis, keys, options.lifetimes);
    if (!(lease instanceof Lease)) return await reportLocked(collection, options, { keys, lease });
    try {
      for (let restarts = 0; ; restarts += 1) {
        const attempt = new Attempt(collection, options, { lease, start });
        try {
          return await attempt.run();
        } catch (error) {
          const mayPass = error instanceof UpstreamChangedError || error instanceof NotPublishedError;
          if (!mayPass || restarts === maxRestarts) return await attempt.fail(error as Error);
          logger.warn({ collection: collection.name, reason: error.message }, 'The import starts again.');
          await attempt.settle();
        }
      }
    } finally {
      await lease
        .release()
        .catch((err) => logger.warn({ err }, 'The lock could not be released; it expires.'));
    }
  } catch (error) {
    logger.error({ collection: collection.name, err: error }, 'The import failed.');
    return startReport(collection.name, start.time).end('failed', { reason: plainReason(error as Error) });
  }
}

function percentOf(arrival: Arrival | null): number | null {
  return arrival?.of ? Math.floor((arrival.bytes / arrival.of) * 100) : null;
}

/** The differences of a staged version to the live one, and what the checks say. */
interface Evaluation extends Pick<VersionDiffCounts, 'changeSets'> {
  /** The reasons to refuse the version; `null` if it may be published. */
  readonly refusal: string | null;
  /** The checks that an operator overrules, with their figures. */
  readonly despite: readonly string[];
}

/** What a publication or a candidate needs besides the staged version. */
type NextVersion = Pick<FoundLive, 'live' | 'intact'> &
  Pick<Evaluation, 'changeSets' | 'despite'> & { readonly validators: string | null };

/** One attempt of an import, from upstream to the live version, under a lease. A restart is a new attempt. */
class Attempt {
  readonly #collection: Collection;
  readonly #options: ImportOptions;
  readonly #lease: Lease;
  readonly #startedAt: Date;
  readonly #report;
  #begun: StagingSession | null = null;
  #writer: VersionWriter | null = null;
  #validators: Validators | null = null;
  /** The medref version of upstream, `null` for other upstreams; `undefined` before it is known. */
  #upstreamVersion: string | null | undefined;

  constructor(
    collection: Collection,
    options: ImportOptions,
    { lease, start }: { lease: Lease; start: { date: Date; time: number } },
  ) {
    this.#collection = collection;
    this.#options = options;
    this.#lease = lease;
    this.#startedAt = start.date;
    this.#report = startReport(collection.name, start.time);
    this.#report.note({ by: options.by ?? null });
  }

  /** Stages the records of upstream, checks them against the live version, and publishes. */
  async run(): Promise<ImportResult> {
    const { redis, keepVersions, dryRun, publish, scheduled, upstream, logger } = this.#options;
    const { keys } = this.#lease;
    await requireIntactKeys(redis, this.#collection.name, keys);
    const pause = scheduled ? await readPause(redis, keys) : null;
    if (pause) {
      const reason = `Paused since ${pause.since}, after a rollback to version ${pause.version}.`;
      return this.#conclude('paused', { reason }, { kind: 'keep' });
    }
    if (!dryRun) await retainVersions(redis, this.#lease, keepVersions);
    const found = await findLive(redis, keys);
    const version = found.live?.version ?? null;
    this.#report.note({
      previousVersion: version,
      isLiveDamaged: found.live !== null && found.intact === null,
    });
    this.#report.warn(...found.warnings);
    for (const warning of found.warnings) logger.warn({ collection: this.#collection.name }, warning);

    await discardAll(redis, this.#lease);
    const staged = await this.#stage(found);
    if (!staged) return this.#conclude('unchanged', { version }, { kind: 'keep' });
    const { changeSets, refusal, despite } = await this.#evaluate(staged, found);
    if (dryRun) return this.#endDryRun(refusal);
    if (staged.written === 0) return this.#conclude('refused', { reason: refusal }, { kind: 'delete' });
    const validators = storedValidators(this.#validators, {
      url: upstream.url,
      collection: this.#collection,
    });
    const next = { ...found, changeSets, validators, despite };
    if (refusal) return this.#leaveCandidate('refused', staged, { ...next, reason: refusal });
    const isLive = found.live !== null && isSame(found.live, this.#contentOf(staged));
    if (isLive && found.intact) {
      const kept: KeptValidators = validators ? { kind: 'set', text: validators } : { kind: 'delete' };
      return this.#conclude('unchanged', { version }, kept);
    }
    if (publish === 'manual' && !isLive)
      return this.#leaveCandidate('candidate', staged, { ...next, reason: null });
    this.#report.note({ despite });
    return this.#publish(staged, next);
  }

  /** Stages all records of upstream. @returns `null` if upstream reports that its list is unchanged */
  async #stage({ intact }: FoundLive): Promise<StagedVersion | null> {
    const {
      redis,
      upstream: source,
      dryRun,
      force,
      upstreamLimits,
      readerLimits,
      onProgress,
    } = this.#options;
    const [collection, lease] = [this.#collection, this.#lease];
    const isAskable = intact !== null && !force && !dryRun;
    const known = isAskable ? await readValidators(redis, lease.keys, { url: source.url, collection }) : null;
    const signal = AbortSignal.any([lease.signal, ...(this.#options.signal ? [this.#options.signal] : [])]);
    const upstream = createUpstream({ token: source.token, signal, limits: upstreamLimits });
    try {
      this.#begun = await lease.begin(dryRun ? `dry-run-${randomUUID()}` : '');
      const writer = new VersionWriter(redis, this.#begun, collection);
      this.#writer = writer;
      const walk = readRecords({ url: source.url, upstream, validators: known, limits: readerLimits });
      for (;;) {
        const { done, value } = await walk.next();
        signal.throwIfAborted();
        if (!done) {
          await writer.write(value.records);
          const progress = { read: writer.counts.read, arrival: value.page === 1 ? value.arrival : null };
          onProgress?.(progress);
          if (!dryRun) lease.report({ read: progress.read, percent: percentOf(progress.arrival) });
          continue;
        }
        this.#report.warn(...value.warnings);
        this.#upstreamVersion = medrefVersion(value.version);
        this.#validators = value.notModified ? known : value.validators;
        if (value.notModified) return null;
        const staged = await writer.finish();
        await requireComplete(redis, lease.keys, this.#contentOf(staged));
        this.#report.warn(...staged.warnings);
        return staged;
      }
    } finally {
      await upstream.close();
    }
  }

  /** Compares the staged version with the live one, and runs the checks. */
  async #evaluate(staged: StagedVersion, { live, intact }: FoundLive): Promise<Evaluation> {
    const { redis } = this.#options;
    const { read, written, rejected } = staged;
    const after = this.#contentOf(staged);
    this.#report.note({ read, written, rejected, causes: this.#causes });
    const { changeSets, ...diff } = await this.#compare(after, { live, intact });
    this.#report.note(diff);
    const { checksum } = after;
    const wasRolledBack =
      checksum !== live?.checksum && (await redis.sismember(this.#lease.keys.rolledBack, checksum)) === 1;
    const checked = { ...this.#options, staged, live, diff, wasRolledBack };
    const { refusals, despite } = runChecks(checked, this.#options);
    return { changeSets, refusal: refusals.join(' ') || null, despite };
  }

  /**
   * Compares the staged version with the live one. If part of the live content is lost or damaged, records cannot be compared.
   * Then the difference of both lengths counts as added or removed, unless both are known to be equal.
   */
  async #compare(
    after: StoredContent,
    { live, intact }: Pick<FoundLive, 'live' | 'intact'>,
  ): Promise<VersionDiffCounts> {
    if (live && isSame(live, after))
      return { added: 0, changed: 0, removed: 0, changeSets: emptyChangeSets(live, after) };
    const counts = await compareVersions(this.#options.redis, this.#staging, { before: intact, after });
    if (!live || intact) return counts;
    const more = after.totalCount - live.totalCount;
    return { ...counts, added: Math.max(0, more), removed: Math.max(0, -more) };
  }

  /**
   * Ends an import whose version waits for an operator. A candidate with the same records, live version and reasons stays: its
   * number may be known to an operator who inspects it.
   */
  async #leaveCandidate(
    outcome: 'refused' | 'candidate',
    staged: StagedVersion,
    { live, changeSets, despite, validators, reason }: NextVersion & { readonly reason: string | null },
  ): Promise<ImportResult> {
    const { redis, force } = this.#options;
    const { keys } = this.#lease;
    const number = Number(this.#staging.name);
    const before = await readCandidate(redis, keys);
    const comparedWith = live?.document ?? '';
    const stays =
      before?.comparedWith === comparedWith &&
      before.entry.reason === reason &&
      isSame(before.version, this.#contentOf(staged)) &&
      (await countDamage(redis, keys, before.version)).length === 0;
    const its = stays ? before.version.version : number;
    const version = outcome === 'refused' ? null : its;
    const content = { ...this.#contentOf(staged), profile: staged.profile };
    const candidate = {
      version: {
        version: number,
        ...content,
        publishedAt: new Date().toISOString(),
        forced: force || !!reason,
      },
      ...{ comparedWith, changeSets, despite, validators },
    };
    const replaced = before && String(before.version.version);
    const left = stays ? undefined : { candidate, replaced };
    return this.#conclude(outcome, { version, candidate: its, reason }, { kind: 'delete' }, left);
  }

  async #publish(
    staged: StagedVersion,
    { live, intact, despite: _, ...next }: NextVersion,
  ): Promise<ImportResult> {
    const { redis, logger, force, keepVersions } = this.#options;
    const { keys } = this.#lease;
    const number = Number(this.#staging.name);
    if (live && !intact)
      this.#report.warn(`Version ${live.version} is no longer kept: its data in Redis was damaged.`);
    const report = this.#report.end('published', { version: number });
    const version = {
      ...this.#contentOf(staged),
      ...next,
      live,
      damaged: intact ? undefined : live?.content,
      number,
      profile: staged.profile,
      forced: force,
      keepVersions,
      pause: null,
      rolledBack: null,
      maxNumberWaitMs: this.#options.maxNumberWaitMs ?? maxNumberWaitMs,
    };
    await publishVersion(redis, this.#lease, version, this.#conclusion(report));
    this.#report.warn(...(await awaitDurability(redis, { keys, version: number, logger })));
    return this.#report.end('published', { version: number });
  }

  /** Ends a dry run with the reason for a refusal, if the checks have one. */
  async #endDryRun(reason: string | null): Promise<ImportResult> {
    for (const { position, path, reason: why } of (this.#writer?.rejects ?? []).slice(0, shownRejects))
      this.#report.warn(`The record at position ${position} would be rejected: ${path} ${why}.`);
    await discard(this.#options.redis, this.#lease, this.#staging.name);
    return this.#report.end('dry-run', { reason });
  }

  /**
   * Ends an import that publishes nothing: deletes staged keys and stores its report in the history.
   * @returns the report; the report of a publication, if that succeeded and only its reply was lost
   */
  async #conclude(
    outcome: ImportOutcome,
    facts: Partial<ImportResult>,
    validators: KeptValidators,
    left?: { readonly candidate: Omit<Candidate, 'entry'>; readonly replaced: string | null },
  ): Promise<ImportResult> {
    const report = this.#report.end(outcome, facts);
    const name = this.#begun?.name ?? '';
    const checkedAt = outcome === 'unchanged' ? new Date().toISOString() : '';
    const entry = this.#conclusion(report);
    const candidate: CandidateEnd | undefined = left && {
      ...{ kind: 'set', replaced: left.replaced, lifetimeMs: candidateLifetimeMs },
      text: JSON.stringify({ ...left.candidate, entry: JSON.parse(entry.report) }),
    };
    const end = { name, checkedAt, validators, candidate };
    const { redis } = this.#options;
    const ended = await conclude(redis, this.#lease, end, entry).catch((error) => {
      const hasFailed = outcome === 'failed' || outcome === 'interrupted';
      if (!hasFailed || !(error instanceof LockLostError)) throw error;
      return conclude(redis, { keys: this.#lease.keys, token: '' }, end, entry);
    });
    if (ended === 'dropped') return report;
    return this.#report.end('published', { ...this.#writer?.counts, version: Number(name) });
  }

  /** Ends an import after an error; the reason is reported even if Redis cannot store it. */
  async fail(error: Error): Promise<ImportResult> {
    const { logger, dryRun, redis, signal } = this.#options;
    const collection = this.#collection.name;
    const outcome = signal?.aborted ? 'interrupted' : 'failed';
    if (outcome === 'failed') logger.error({ collection, err: error }, 'The import failed.');
    await this.settle();
    const counts = { ...this.#writer?.counts, added: 0, changed: 0, removed: 0, causes: this.#causes };
    const facts = {
      ...counts,
      reason: plainReason(outcome === 'failed' ? error : (signal?.reason as Error)),
    };
    try {
      if (!dryRun) return await this.#conclude(outcome, facts, { kind: 'keep' });
      if (this.#begun) await discard(redis, this.#lease, this.#begun.name);
    } catch (err) {
      logger.error(
        { collection, err },
        'The keys that the failed import staged could not be deleted; they expire.',
      );
    }
    return this.#report.end(outcome, facts);
  }

  /** Returns why records were rejected so far. */
  get #causes() {
    return this.#writer?.causes ?? [];
  }

  /** Waits for writes in progress, so that nothing is staged while the next attempt deletes these keys. */
  async settle(): Promise<void> {
    await this.#writer?.settle();
  }

  /** Returns the history entry of an import. An import that read nothing keeps the earlier rejects. */
  #conclusion(report: ImportResult): Conclusion {
    return conclusionOf(report, {
      startedAt: this.#startedAt,
      forced: this.#options.force,
      rejects: report.read === 0 ? null : (this.#writer?.rejects ?? []),
      validators: this.#validators,
      upstreamVersion: this.#upstreamVersion,
    });
  }

  get #staging(): StagingSession {
    if (!this.#begun) throw new Error('Nothing has been staged yet.');
    return this.#begun;
  }

  #contentOf({ content, derived }: StagedVersion): StoredContent {
    return { content: String(this.#staging.name), format: currentFormat, ...content, derived };
  }
}

/**
 * Ends an import because another process holds the lock. Manual imports enter the history. The schedule tries again until the
 * lock is free, and a dry run stores nothing.
 */
async function reportLocked(
  collection: Collection,
  { redis, dryRun, force, scheduled, by }: ImportOptions,
  { keys, lease: { holder, since } }: { keys: CollectionKeys; lease: LockHolder },
): Promise<ImportResult> {
  const live = await readLiveVersion(redis, keys);
  const reason = `The lock is held by ${holder} since ${since}.`;
  const report = startReport(collection.name).end('locked', {
    by: by ?? null,
    previousVersion: live?.version ?? null,
    reason,
  });
  if (dryRun || scheduled) return report;
  const facts = { startedAt: new Date(), forced: force, rejects: null, validators: null };
  const end = { name: '', checkedAt: '', validators: { kind: 'keep' } } as const;
  await conclude(redis, { keys, token: '' }, end, conclusionOf(report, facts));
  return report;
}
