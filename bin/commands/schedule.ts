// medref schedule: imports on the schedule, and at start the collections that have no live version, or a damaged one.

import { mkdir, rmdir, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UpstreamSettings } from '../../config/settings.ts';
import type { Follower, Pauses } from '../../importer/follow.ts';
import { startSchedule, type Waits } from '../../importer/schedule.ts';
import { serverWarnings } from '../../importer/server-warnings.ts';
import { createWebhook } from '../../importer/webhook.ts';
import { importedCollections } from '../../shared/collections/collections.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { damageIn } from '../../shared/redis/damage.ts';
import { RedisUnavailableError } from '../../shared/redis/failures.ts';
import { type CollectionKeys, collectionKeys } from '../../shared/store/keys.ts';
import { readLiveVersion } from '../../shared/store/versions.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { followerOf } from '../following.ts';
import { createLogger, type Logger } from '../logger.ts';
import { scheduledImports } from '../scheduled-imports.ts';
import { aborted } from '../stop-signal.ts';
import type { CommandContext } from '../surroundings.ts';
import { type OutputOptions, print } from './output.ts';

/** How often the folder of the heartbeat gets a new time, in ms. */
const beatEveryMs = 10_000;

/** How often a Redis that is away is looked for, in ms. */
const lookForRedisEveryMs = 1_000;

/**
 * Runs until it is asked to stop; an import under way is ended first. Starts whether Redis is there or not. Tests shorten
 * the waits. @returns the exit code
 */
export async function scheduleCommand(
  context: CommandContext,
  options: OutputOptions,
  { waits, pauses }: { readonly waits?: Waits; readonly pauses?: Pauses } = {},
): Promise<number> {
  const { settings } = context;
  const { importCron: cron, importTimezone: timezone } = settings;
  const collections = importedCollections.filter(({ name }) => settings.upstreams.has(name));
  if (collections.length === 0)
    throw new UsageError('There is nothing to schedule: set the URL of a collection, such as PRODUCTS_URL.');
  const logger = createLogger(context);
  const signal = context.stopSignal();
  const heartbeat = startHeartbeat(join(tmpdir(), `medref-schedule-${settings.keyPrefix}`), logger);
  const connecting = connectOnceThere(settings.redisUrl, { logger, signal });
  const webhook = createWebhook(settings, logger);
  const importDue = scheduledImports(context, connecting, { logger, webhook, signal });
  const followers = new Map<string, Follower>();
  const scheduled = collections.map((collection) => {
    const { name } = collection;
    const schedule = startSchedule({
      ...{ cron, timezone, waits },
      run: async (due) => {
        followers.get(name)?.importBegins();
        const end = await importDue(collection, due);
        followers.get(name)?.importEnds(end);
        return end;
      },
      onLate: (due) =>
        logger.warn(
          { collection: name, due },
          'A scheduled import begins late: this process or its machine stood still when it was due.',
        ),
      onSkipped: () =>
        logger.warn({ collection: name }, 'A scheduled import is skipped: the one before still runs.'),
      onRetry: (at, tryNumber) =>
        logger.warn({ collection: name, at, tryNumber }, 'A scheduled import failed and is tried again.'),
    });
    return { collection, schedule };
  });
  const following: Promise<void>[] = [];
  try {
    const redis = await connecting;
    if (!redis) return exitCodes.done;
    for (const warning of await serverWarnings(redis, settings.keyPrefix)) logger.warn(warning);
    const names = collections.map(({ name }) => name);
    const nextRun = scheduled[0]?.schedule.nextRun().toISOString();
    logger.info({ collections: names, cron, timezone, nextRun }, 'Scheduled.');
    print(
      context,
      { scheduled: names, nextRun },
      options,
      () => `Importing ${names.join(' and ')}; next at ${nextRun}.`,
    );
    for (const { collection, schedule } of settings.follow ? scheduled : []) {
      const { name } = collection;
      const follower = followerOf({
        ...{ collection: name, upstream: settings.upstreams.get(name) as UpstreamSettings, redis, logger },
        ...{ keys: collectionKeys(settings.keyPrefix, collection), signal, pauses },
        importNow: schedule.runNow,
      });
      if (follower) followers.set(name, follower);
    }
    for (const { collection, schedule } of scheduled) {
      if (!(await hasLive(redis, collectionKeys(settings.keyPrefix, collection)))) schedule.runNow();
    }
    following.push(...[...followers.values()].map((it) => it.run()));
    await aborted(signal);
    return exitCodes.done;
  } finally {
    await Promise.all(following);
    await Promise.all(scheduled.map(({ schedule }) => schedule.stop()));
    await heartbeat.stop();
    (await connecting.catch(() => null))?.disconnect();
    await webhook.finish();
  }
}

/** Returns whether a collection has a live version; if its pointer is damaged, the next import reports that. */
async function hasLive(redis: Redis, keys: CollectionKeys): Promise<boolean> {
  try {
    return (await readLiveVersion(redis, keys)) !== null;
  } catch (error) {
    if (await damageIn(redis, error)) return false;
    throw error;
  }
}

/**
 * A connection, as soon as Redis is there: a machine may start both at once. A Redis that refuses is not waited for.
 * @returns `null` where it was asked to stop before. @throws RedisUnavailableError
 */
async function connectOnceThere(
  url: string,
  { logger, signal }: { logger: Logger; signal: AbortSignal },
): Promise<Redis | null> {
  for (let told: string | undefined; !signal.aborted; ) {
    try {
      return await connectForWriting(url, { signal });
    } catch (error) {
      if (signal.aborted) break;
      if (!(error instanceof RedisUnavailableError) || isRefusal(error.cause)) throw error;
      if (error.message !== told) logger.warn({ reason: error.message }, 'Redis is away; it is waited for.');
      told = error.message;
      await sleep(lookForRedisEveryMs, null, { signal }).catch(() => undefined);
    }
  }
  return null;
}

function isRefusal(cause: unknown): boolean {
  return cause instanceof Error && cause.name === 'ReplyError';
}

/**
 * Renews the time of a folder while the event loop runs, so that the health check of a container notices a process that
 * hangs: the schedule listens on no port.
 */
function startHeartbeat(folder: string, logger: Logger): { stop(): Promise<void> } {
  let hasFailed = false;
  const beat = async () => {
    try {
      await mkdir(folder, { recursive: true });
      await utimes(folder, new Date(), new Date());
    } catch (error) {
      if (!hasFailed)
        logger.warn(`Health checks will fail: cannot write ${folder}: ${(error as Error).message}.`);
      hasFailed = true;
    }
  };
  let beating = beat();
  const timer = setInterval(() => {
    beating = beat();
  }, beatEveryMs).unref();
  return {
    async stop() {
      clearInterval(timer);
      await beating;
      await rmdir(folder).catch(() => undefined);
    },
  };
}
