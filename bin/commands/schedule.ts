// medref schedule: imports on the schedule, at start if a collection has no live version, and when a followed upstream publishes.

import { mkdir, rmdir, utimes } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Settings, UpstreamSettings } from '../../config/settings.ts';
import { Follower, type Pauses } from '../../importer/follow.ts';
import { readLastImportSince, readSeenVersion, startReport } from '../../importer/report.ts';
import { type RunEnd, type Schedule, startSchedule, type Waits } from '../../importer/schedule.ts';
import { serverWarnings } from '../../importer/server-warnings.ts';
import { createWebhook, type Webhook } from '../../importer/webhook.ts';
import { importedCollections } from '../../shared/collections/collections.ts';
import type { Collection } from '../../shared/collections/define.ts';
import { beatEveryMs, forgetOldImporters, writeHeartbeat } from '../../shared/importer-heartbeats.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { damageIn, plainReason, RedisUnavailableError } from '../../shared/redis/failures.ts';
import { readLockHolder } from '../../shared/store/import-locks.ts';
import { type CollectionKeys, collectionKeys } from '../../shared/store/keys.ts';
import { readLiveVersion } from '../../shared/store/versions.ts';
import { shortTime } from '../../shared/text.ts';
import { type CommandContext, exitCodes, UsageError } from '../context.ts';
import { type OutputOptions, print } from '../output.ts';
import { aborted, createLogger } from '../session.ts';
import { importOne } from './import.ts';

/** How often an unavailable Redis is tried, in ms. */
const tryRedisEveryMs = 1_000;

/**
 * Runs until SIGTERM, and finishes an import in progress. Starts even if Redis is unavailable.
 * @param waits, pauses shorter in tests
 * @returns the exit code
 */
export async function scheduleCommand(
  context: CommandContext,
  options: OutputOptions,
  { waits, pauses }: { readonly waits?: Waits; readonly pauses?: Pauses } = {},
): Promise<number> {
  const { settings } = context;
  const { importCron: cron, importTimezone: timezone, keyPrefix, redisUrl } = settings;
  const collections = importedCollections.filter(({ name }) => settings.upstreams.has(name));
  if (collections.length === 0)
    throw new UsageError('Nothing to schedule: set the URL of a collection, such as PRODUCTS_URL.');
  const logger = createLogger(context);
  const signal = context.stopSignal();
  const folder = join(tmpdir(), `medref-schedule-${keyPrefix}`);
  const heartbeat = startHeartbeat(() => touch(folder), logger);
  let inRedis: BeatingHeart | undefined;
  const connecting = connectWhenAvailable(redisUrl, logger, signal);
  const webhook = createWebhook(settings, logger);
  const imports = new DueImports(context, { connecting, logger, signal, webhook });
  const followers = new Map<string, Follower>();
  const schedules = new Map<Collection, Schedule>();
  for (const collection of collections) {
    const { name } = collection;
    const schedule = startSchedule({
      cron,
      timezone,
      waits,
      run: async (due) => {
        followers.get(name)?.importBegins();
        const end = await imports.run(collection, due);
        followers.get(name)?.importEnds(end);
        return end;
      },
      onLate: (due) =>
        logger.warn(
          { collection: name, due },
          'A scheduled import starts late: this process or its machine was suspended when it was due.',
        ),
      onSkipped: () =>
        logger.warn(
          { collection: name },
          'Skipped a scheduled import: the previous one is still in progress.',
        ),
      onRetry: (at, tryNumber) =>
        logger.warn({ collection: name, at, tryNumber }, 'A scheduled import failed; it will be retried.'),
    });
    schedules.set(collection, schedule);
  }
  let following: Promise<unknown> = Promise.resolve();
  try {
    const redis = await connecting;
    if (!redis) return exitCodes.done;
    for (const warning of [...settings.misspelt, ...(await serverWarnings(redis, keyPrefix))])
      logger.warn(warning);
    const scheduled = collections.map(({ name }) => name);
    const nextRun = [...schedules.values()][0]?.nextRun().toISOString();
    inRedis = await beatInRedis(redis, [...schedules.values()], { settings, collections: scheduled, logger });
    logger.info({ collections: scheduled, cron, timezone, nextRun }, 'Scheduled.');
    print(
      context,
      { scheduled, nextRun },
      options,
      () =>
        `Scheduled: ${scheduled.join(' and ')}. Next import: ${nextRun === undefined ? 'never' : shortTime(nextRun)}.`,
    );
    for (const [collection, { runNow }] of settings.follow ? schedules : []) {
      const { url, token } = settings.upstreams.get(collection.name) as UpstreamSettings;
      const keys = collectionKeys(keyPrefix, collection);
      const options = { redis, keys, logger, signal, pauses, importNow: runNow };
      const follower = followerOf(collection.name, { url, token }, options);
      if (follower) followers.set(collection.name, follower);
    }
    for (const [collection, { runNow }] of schedules)
      if (!(await hasLive(redis, collectionKeys(keyPrefix, collection)))) runNow();
    following = Promise.all([...followers.values()].map((it) => it.run()));
    await aborted(signal);
    return exitCodes.done;
  } finally {
    await following;
    await Promise.all([...schedules.values()].map((it) => it.stop()));
    await heartbeat.stop();
    await rmdir(folder).catch(() => undefined);
    await inRedis?.stop();
    (await connecting.catch(() => null))?.disconnect();
    await webhook.finish();
  }
}

/** What scheduled imports need. */
interface DueImportsOptions {
  readonly connecting: Promise<Redis | null>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly webhook: Webhook;
}

/** Imports due collections one at a time, unless another process imports them. */
class DueImports {
  readonly #context: CommandContext;
  readonly #options: DueImportsOptions;
  #last: Promise<unknown> = Promise.resolve();
  /** The time since when another process holds a collection's lock, as already logged. */
  readonly #lockedSince = new Map<string, string>();

  constructor(context: CommandContext, options: DueImportsOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Imports a collection that has been due since a time. Never rejects. */
  run(collection: Collection, due: Date): Promise<RunEnd> {
    const run = this.#last.then(async (): Promise<RunEnd> => {
      try {
        return await this.#run(collection, due);
      } catch (error) {
        const reason = plainReason(error as Error);
        this.#options.logger.error(
          { collection: collection.name, err: error, reason },
          'A scheduled import could not start.',
        );
        this.#options.webhook.notify(startReport(collection.name).end('failed', { reason }));
        return 'failed';
      }
    });
    this.#last = run;
    return run;
  }

  async #run(collection: Collection, due: Date): Promise<RunEnd> {
    const { connecting, logger, signal, webhook } = this.#options;
    const redis = await connecting;
    if (!redis || signal.aborted) return 'ended';
    const { name } = collection;
    const keys = collectionKeys(this.#context.settings.keyPrefix, collection);
    // Reads the lock before the history: an import stores its report before it releases the lock.
    const lock = await readLockHolder(redis, keys);
    if (lock) {
      const { holder, since } = lock;
      if (this.#lockedSince.get(name) !== since)
        logger.info(
          { collection: name, holder, since },
          'An import is due; waiting for the current one to end.',
        );
      this.#lockedSince.set(name, since);
      return 'locked';
    }
    const ended = await readLastImportSince(redis, keys, due);
    if (ended) {
      const { outcome, endedAt } = ended;
      logger.info(
        { collection: name, due, outcome, endedAt },
        'Already imported since the due time; skipped.',
      );
      return 'ended';
    }
    const report = await importOne(this.#context, collection, { redis, logger, signal, scheduled: true });
    webhook.notify(report);
    return report.outcome === 'failed' || report.outcome === 'locked' ? report.outcome : 'ended';
  }
}

/** Returns the follower of an upstream; `null` for a file, which has no announcements. */
function followerOf(
  collection: string,
  upstream: UpstreamSettings,
  {
    redis,
    keys,
    logger,
    ...options
  }: {
    readonly redis: Redis;
    readonly keys: CollectionKeys;
    readonly logger: Logger;
    readonly signal: AbortSignal;
    readonly pauses: Pauses | undefined;
    readonly importNow: () => void;
  },
): Follower | null {
  if (upstream.url.protocol === 'file:') {
    logger.warn({ collection }, 'Upstream is a file and cannot be followed; only the schedule imports it.');
    return null;
  }
  return new Follower({
    ...options,
    upstream,
    history: {
      seen: () => readSeenVersion(redis, keys),
      isImportedSince: async (time) => (await readLastImportSince(redis, keys, time)) !== null,
    },
    onPublished: (upstreamVersion) =>
      logger.info(
        { collection, upstreamVersion },
        upstreamVersion === null
          ? 'Upstream does not know the last imported version; importing.'
          : 'Upstream has published; importing.',
      ),
    onServiceError: (reason, isLeftToSchedule) =>
      logger.warn(
        { collection, reason },
        isLeftToSchedule
          ? 'Upstream cannot be followed; only the schedule imports it.'
          : 'Cannot follow upstream; retrying.',
      ),
  });
}

/** Returns whether a collection has a live version. A damaged pointer counts: the import reports or repairs it. */
async function hasLive(redis: Redis, keys: CollectionKeys): Promise<boolean> {
  try {
    return (await readLiveVersion(redis, keys)) !== null;
  } catch (error) {
    if (await damageIn(redis, error)) return false;
    throw error;
  }
}

/**
 * Connects as soon as Redis is available: both may start at the same time.
 * @returns `null` if a signal stopped the wait
 * @throws RedisUnavailableError if Redis refuses the connection
 */
async function connectWhenAvailable(url: string, logger: Logger, signal: AbortSignal): Promise<Redis | null> {
  for (let logged: string | undefined; !signal.aborted; ) {
    try {
      return await connectForWriting(url, { signal });
    } catch (error) {
      if (signal.aborted) break;
      if (!(error instanceof RedisUnavailableError) || isRefusal(error.cause)) throw error;
      if (error.message !== logged) logger.warn({ reason: error.message }, 'Redis is unavailable; waiting.');
      logged = error.message;
      await sleep(tryRedisEveryMs, null, { signal }).catch(() => undefined);
    }
  }
  return null;
}

function isRefusal(cause: unknown): boolean {
  return cause instanceof Error && cause.name === 'ReplyError';
}

/** A heartbeat that is repeated. */
interface BeatingHeart {
  /** Waits for a beat in progress. */
  stop(): Promise<void>;
}

/** Repeats a function while the event loop runs. Logs the first failure. */
function startHeartbeat(beat: () => Promise<unknown>, logger: Logger): BeatingHeart {
  let hasFailed = false;
  const beatSafely = async () => {
    try {
      await beat();
    } catch (error) {
      if (!hasFailed)
        logger.warn({ reason: plainReason(error as Error) }, 'The heartbeat could not be written.');
      hasFailed = true;
    }
  };
  let beating = beatSafely();
  const timer = setInterval(() => {
    beating = beatSafely();
  }, beatEveryMs).unref();
  return {
    async stop() {
      clearInterval(timer);
      await beating;
    },
  };
}

/** Touches a folder, so that a container's health check notices a hanging process: the schedule listens on no port. */
async function touch(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await utimes(folder, new Date(), new Date());
}

/** Writes heartbeats to Redis, for `status`, the dashboard and alerts. The last one says that it stopped. */
async function beatInRedis(
  redis: Redis,
  schedules: readonly Schedule[],
  { settings, collections, logger }: { settings: Settings; collections: readonly string[]; logger: Logger },
): Promise<BeatingHeart> {
  const { keyPrefix, importCron: cron, importTimezone: timezone } = settings;
  const importer = `process ${process.pid} on ${hostname()}`;
  const facts = { importer, startedAt: new Date().toISOString(), cron, timezone, collections };
  const beat = (stopped: boolean) => {
    const nextRun = new Date(Math.min(...schedules.map((it) => it.nextRun().getTime()))).toISOString();
    return writeHeartbeat(redis, keyPrefix, { ...facts, seenAt: new Date().toISOString(), stopped, nextRun });
  };
  await forgetOldImporters(redis, keyPrefix).catch(() => undefined); // The first beat logs the reason.
  const heart = startHeartbeat(() => beat(false), logger);
  return {
    async stop() {
      await heart.stop();
      await beat(true).catch(() => undefined); // Redis may be unavailable.
    },
  };
}
