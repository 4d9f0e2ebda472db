// medref serve: the API, from the first answer to the last.

import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { AccessLog } from '../../api/admin/access-log.ts';
import { type AdminServer, createAdminServer, type DashboardSources } from '../../api/admin/admin-server.ts';
import { createMetrics, type Metrics } from '../../api/admin/metrics.ts';
import { TroubleLog } from '../../api/admin/trouble-log.ts';
import { VersionComparison } from '../../api/reads/compared-versions.ts';
import { ApiKeyring } from '../../api/reads/keyring.ts';
import { LiveVersions } from '../../api/reads/live-versions.ts';
import { Rates } from '../../api/reads/rates.ts';
import { ReadModel } from '../../api/reads/read-model.ts';
import { Replica } from '../../api/reads/replica.ts';
import { Standings } from '../../api/reads/standings.ts';
import { createServer } from '../../api/server.ts';
import { settingWarnings } from '../../config/setting-warnings.ts';
import type { Settings } from '../../config/settings.ts';
import { importedCollections, servedCollections } from '../../shared/collections/collections.ts';
import {
  connectForListening,
  connectForServing,
  connectToReplica,
  type Redis,
} from '../../shared/redis/connections.ts';
import { plainReason } from '../../shared/redis/failures.ts';
import { describeServer } from '../../shared/redis/server-url.ts';
import { exitCodes } from '../exit-codes.ts';
import { createLogger, type Logger } from '../logger.ts';
import { aborted } from '../stop-signal.ts';
import type { CommandContext } from '../surroundings.ts';
import { type OutputOptions, print } from './output.ts';

/** How long answers under way may take once the server is asked to stop, in ms. */
const drainMs = 10_000;

/** For how long a client of whom nothing comes may still send a request on its connection then, in ms. */
const quietMs = 1_000;

/** How long a first connection to Redis is waited for, in ms. */
const attemptMs = 2_000;

/** Serves until it is asked to stop; starts whether Redis is there or not. @returns the exit code */
export async function serveCommand(context: CommandContext, options: OutputOptions): Promise<number> {
  const { redisUrl, keyPrefix, apiHost: host, apiPort: port, baseUrl, accessLog } = context.settings;
  const { defaultRate, maxStreams, maxRequests } = context.settings;
  const metrics = createMetrics();
  const logger = createLogger(context);
  for (const warning of settingWarnings(context.settings)) logger.warn(warning);
  const troubles = new TroubleLog(logger);
  const requests = new AccessLog(logger, accessLog);
  const signal = context.stopSignal();
  const redis = connectForServing(redisUrl, { onRoundTrip: metrics.timeRedis });
  const listener = connectForListening(redisUrl);
  const replica = readsFromReplica(context.settings, { master: redis, metrics, logger });
  const whyAway = tellWhenItComesAndGoes(redis, describeServer(redisUrl), logger);
  const live = new LiveVersions({
    ...{ redis, listener, replica: replica?.reads, keyPrefix, sources: importedCollections },
  });
  try {
    const onDamage = (message: string) => {
      metrics.countDamage();
      troubles.meetDamage(message);
    };
    const readModel = new ReadModel({
      ...{ redis: replica?.reads.redis ?? redis, master: redis, live, keyPrefix, onDamage },
    });
    metrics.addWaiting(() => readModel.waits.count);
    const standings = new Standings({ redis, keyPrefix, sources: importedCollections });
    metrics.addCollections({ served: servedCollections, standings });
    const keyring = new ApiKeyring({ redis, keyPrefix, onDamage });
    const rates = new Rates({
      ...{ redis, keyPrefix, defaultRate },
      onUncounted: (message) => {
        metrics.countUncounted();
        troubles.meetDamage(message);
      },
    });
    const server = await createServer({
      collections: servedCollections,
      readModel,
      keyring,
      rates,
      maxStreams,
      maxRequests,
      quietMs,
      whyAway,
      host,
      port,
      baseUrl,
      logger,
      onAnswered: (request) => {
        metrics.countRequest(request);
        requests.write(request);
      },
      onTrouble: (trouble, requestId) => {
        metrics.countUnavailable(trouble.cause);
        troubles.meet(trouble, requestId);
      },
      onUnauthorized: metrics.countUnauthorized,
    });
    live.start();
    keyring.follow(listener);
    await firstAttempt(redis);
    await server.start().catch((error) => {
      throw new Error(
        `The API cannot listen on ${host}:${port}: ${error.message}. Set API_HOST or API_PORT.`,
      );
    });
    const address = addressOf(server.listener.address() as AddressInfo);
    logger.info({ address }, 'The API answers.');
    const admin = await startAdmin(
      { metrics, sources: dashboardSources(context.settings, { redis, readModel }) },
      context.settings,
      logger,
    );
    print(context, { address }, options, () => `The API answers at ${address}`);
    await aborted(signal);
    await Promise.all([server.stop({ timeout: drainMs }), admin?.stop({ timeout: drainMs })]);
    return exitCodes.done;
  } finally {
    live.stop();
    requests.endSecond();
    redis.removeAllListeners('close').disconnect();
    listener.disconnect();
    replica?.connection.removeAllListeners('close').disconnect();
  }
}

/** One replica to read from; `null` where that is not wanted, or REDIS_URL tells of none. */
function readsFromReplica(
  { redisUrl, readFrom }: Settings,
  { master, metrics, logger }: { master: Redis; metrics: Metrics; logger: Logger },
): { readonly connection: Redis; readonly reads: Replica } | null {
  const onLost = () => reads?.forget();
  const connection =
    readFrom === 'replica' ? connectToReplica(redisUrl, { onRoundTrip: metrics.timeRedis, onLost }) : null;
  const reads =
    connection &&
    new Replica({
      ...{ master, replica: connection },
      onTurn: (from) => logger.info({ from }, 'Contents are read from another server than before.'),
    });
  return connection && reads && { connection, reads };
}

/** Consumers are served all the same where the admin listener cannot be. @returns `null` then */
async function startAdmin(
  { metrics, sources }: { readonly metrics: Metrics; readonly sources: DashboardSources },
  { adminHost: host, adminPort: port, adminToken: token }: Settings,
  logger: Logger,
): Promise<AdminServer | null> {
  const admin = await createAdminServer({ metrics, dashboard: { sources, token }, host, port });
  try {
    await admin.start();
    logger.info(
      { address: addressOf(admin.listener.address() as AddressInfo) },
      'The admin listener answers.',
    );
    return admin;
  } catch (error) {
    const reason = (error as Error).message;
    logger.error(
      `There are no metrics and no dashboard: ${host}:${port} cannot be listened on: ${reason}. Set ADMIN_HOST or ADMIN_PORT.`,
    );
    return null;
  }
}

function dashboardSources(
  { keyPrefix, defaultRate, importCron: cron, importTimezone: timezone, upstreams }: Settings,
  { redis, readModel }: { readonly redis: Redis; readonly readModel: ReadModel },
): DashboardSources {
  return {
    ...{ redis, keyPrefix, defaultRate, readModel, served: servedCollections, schedule: { cron, timezone } },
    comparison: new VersionComparison(readModel),
    isImported: (collection) => upstreams.has(collection),
  };
}

/**
 * Logs when Redis comes and when it goes, not each attempt to reach it.
 * @returns what tells why it is away, without addresses, since anybody may ask; `null` while it is there
 */
function tellWhenItComesAndGoes(redis: Redis, server: string, logger: Logger): () => string | null {
  let isThere: boolean | undefined;
  let reason: string | undefined;
  let toldToAll = 'Redis has not answered yet.';
  redis.on('error', (error) => {
    const isRefusal = error.name === 'ReplyError';
    // That a connection was given up because of a refusal says less than the refusal.
    if (!isRefusal && !('syscall' in error) && reason !== undefined) return;
    reason = plainReason(error);
    toldToAll = isRefusal ? reason : 'Redis cannot be reached.';
  });
  redis.on('ready', () => {
    isThere = true;
    logger.info({ redis: server }, 'Redis is there.');
  });
  redis.on('close', () => {
    if (isThere !== false) logger.warn({ redis: server, reason }, 'Redis is away.');
    isThere = false;
  });
  return () => (isThere ? null : toldToAll);
}

/** Waits until Redis is there, or known to be away, so that the first request does not come too early for no reason. */
async function firstAttempt(redis: Redis): Promise<void> {
  const attempt = new Promise((resolve) => redis.once('ready', resolve).once('close', resolve));
  await Promise.race([attempt, sleep(attemptMs, null, { ref: false })]);
}

function addressOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
