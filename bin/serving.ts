// In: settings. Out: what answers are read from, and the data listener that gives them; whoever opens them closes them.

import { readFileSync } from 'node:fs';
import type { AddressInfo, Server, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { AccessLog } from '../api/admin/access-log.ts';
import type { Metrics } from '../api/admin/metrics.ts';
import type { TroubleLog } from '../api/admin/trouble-log.ts';
import { ApiKeys } from '../api/auth.ts';
import { RateLimiter } from '../api/rate-limit.ts';
import { LiveVersions } from '../api/read/live-versions.ts';
import { ReadModel } from '../api/read/read-model.ts';
import { Replica } from '../api/read/replica.ts';
import { createServer } from '../api/server.ts';
import type { Settings } from '../config/settings.ts';
import { importedCollections, servedCollections } from '../shared/collections/collections.ts';
import {
  connectForListening,
  connectForServing,
  connectToReplica,
  type Redis,
} from '../shared/redis/connections.ts';
import { plainReason } from '../shared/redis/failures.ts';
import { setupWarnings } from '../shared/redis/server-setup.ts';
import { describeServer } from '../shared/redis/server-url.ts';

/** How long answers under way may take once the server is asked to stop, in ms. */
export const drainMs = 10_000;

/** For how long a client of whom nothing comes may still send a request on its connection then, in ms. */
const quietMs = 1_000;

/** How often the set-up of Redis is checked, in ms. */
const lookAtSetupEveryMs = 30_000;

/** How long a first connection to Redis is waited for, in ms. */
const attemptMs = 2_000;

/** Open files that are kept for Redis, the admin listener and the process itself. */
const reservedFiles = 64;

/** Who is told what. */
export interface Watchers {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly troubles: TroubleLog;
}

/** What a process reads from. */
export interface Reads {
  readonly redis: Redis;
  readonly readModel: ReadModel;
  /** Hears what is announced. */
  readonly listener: Redis;
  /** Why Redis is away, as a sentence without addresses, since anybody may ask; `null` while it is there. */
  readonly whyAway: () => string | null;
  /** What is wrong with how Redis is set up, as sentences; looked at when Redis comes up, and then twice a minute. */
  readonly setupWarnings: () => readonly string[];
  close(): void;
}

/** Opens what is read from, whether Redis is there or not, and begins to hear what is live. */
export function openReads(settings: Settings, { logger, metrics, troubles }: Watchers): Reads {
  const { redisUrl, keyPrefix } = settings;
  const redis = connectForServing(redisUrl, { onRoundTrip: metrics.timeRedis });
  const listener = connectForListening(redisUrl);
  let isOver = false;
  const unlessOver = (tell: () => void) => () => isOver || tell();
  const replica = readsFromReplica(settings, { master: redis, metrics, logger, unlessOver });
  const whyAway = tellWhenItComesAndGoes(redis, { server: describeServer(redisUrl), logger, unlessOver });
  const setup = watchSetup(redis, { keyPrefix, logger });
  const live = new LiveVersions({
    ...{ redis, listener, replica: replica?.reads, keyPrefix, sources: importedCollections },
    onDamage: damageTold({ metrics, troubles }),
  });
  const readModel = new ReadModel({
    ...{ redis: replica?.reads.redis ?? redis, live, keyPrefix },
    onDamage: damageTold({ metrics, troubles }),
  });
  live.start();
  return {
    ...{ redis, readModel, listener, whyAway, setupWarnings: setup.warnings },
    close() {
      live.stop();
      setup.stop();
      isOver = true; // That connections are closed from here is no news.
      for (const connection of [redis, listener, replica?.connection]) connection?.disconnect();
    },
  };
}

/** A data listener that answers. */
export interface DataListener {
  /** `http://<address>:<port>` */
  readonly address: string;
  /** Ends it in order: answers under way come to their end. */
  stop(): Promise<void>;
}

/** Starts the data listener. @throws Error that says what to set where it cannot listen */
export async function startDataListener(
  settings: Settings,
  { redis, readModel, listener, whyAway, setupWarnings }: Reads,
  { logger, metrics, troubles }: Watchers,
): Promise<DataListener> {
  const { keyPrefix, apiHost: host, apiPort: port, baseUrl, accessLog } = settings;
  const { defaultRate, corsOrigins, trustedProxies } = settings;
  const requests = new AccessLog(logger, accessLog);
  metrics.addWaiting(() => readModel.waits.count);
  const apiKeys = new ApiKeys({ redis, keyPrefix, onDamage: damageTold({ metrics, troubles }) });
  const rateLimiter = new RateLimiter({
    ...{ redis, keyPrefix, defaultRate },
    onUncounted: (message) => {
      metrics.countUncounted();
      troubles.meetDamage(message);
    },
  });
  const server = await createServer({
    collections: servedCollections,
    readModel,
    apiKeys,
    rateLimiter,
    quietMs,
    whyAway,
    setupWarnings,
    host,
    port,
    baseUrl,
    corsOrigins,
    trustedProxies,
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
  limitConnections(server.listener, logger);
  await firstAttempt(redis);
  await apiKeys.start(listener);
  await server.start().catch((error) => {
    throw new Error(`The API cannot listen on ${host}:${port}: ${error.message}. Set API_HOST or API_PORT.`);
  });
  const address = addressOf(server.listener.address() as AddressInfo);
  logger.info({ address }, 'The API answers.');
  return {
    address,
    async stop() {
      await server.stop({ timeout: drainMs });
      apiKeys.stop();
      requests.endSecond();
    },
  };
}

/**
 * Closes new connections while the process has few files left, so that it can still reach Redis, and logs that once a minute.
 * Without this, the system closes them and reports it to nobody.
 */
function limitConnections(listener: Server, logger: Logger): void {
  const limit = fileLimit();
  if (limit === null) return;
  const most = Math.max(1, limit - reservedFiles);
  let open = 0;
  let closed = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  // Not maxConnections: with it, Node 20 hands a connection from worker to worker until one has room.
  listener.on('connection', (socket: Socket) => {
    if (open < most) {
      open += 1;
      socket.once('close', () => {
        open -= 1;
      });
      return;
    }
    socket.destroy();
    closed += 1;
    if (performance.now() - loggedAt < 60_000) return;
    logger.error(
      { connections: most, fileLimit: limit, closed },
      'New connections are closed: this process is near its limit of open files (EMFILE). Raise it with "ulimit -n", or LimitNOFILE= of its systemd unit.',
    );
    loggedAt = performance.now();
    closed = 0;
  });
}

/** Returns how many files this process may have open, or `null` if that is not known. */
function fileLimit(): number | null {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? null : Number(limit);
  } catch {
    return null; // Not Linux.
  }
}

function damageTold({ metrics, troubles }: Pick<Watchers, 'metrics' | 'troubles'>) {
  return (message: string) => {
    metrics.countDamage();
    troubles.meetDamage(message);
  };
}

/** How it is told what becomes of connections. */
interface Telling {
  readonly logger: Logger;
  /** What is told while they are not closed from here. */
  readonly unlessOver: (tell: () => void) => () => void;
}

/** One replica to read from; `null` where that is not wanted, or REDIS_URL tells of none. */
function readsFromReplica(
  { redisUrl, readFrom }: Settings,
  { master, metrics, logger, unlessOver }: Telling & { master: Redis; metrics: Metrics },
): { readonly connection: Redis; readonly reads: Replica } | null {
  const onLost = unlessOver(() => reads?.forget());
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

/**
 * Logs when Redis comes and when it goes, not each attempt to reach it.
 * @returns what tells why it is away, without addresses, since anybody may ask; `null` while it is there
 */
function tellWhenItComesAndGoes(
  redis: Redis,
  { server, logger, unlessOver }: Telling & { readonly server: string },
): () => string | null {
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
  redis.on(
    'close',
    unlessOver(() => {
      if (isThere !== false) logger.warn({ redis: server, reason }, 'Redis is away.');
      isThere = false;
    }),
  );
  return () => (isThere ? null : toldToAll);
}

/** Checks how Redis is set up while the process serves, and logs each new warning. */
function watchSetup(redis: Redis, { keyPrefix, logger }: { keyPrefix: string; logger: Logger }) {
  let found: readonly string[] = [];
  const look = async () => {
    const before = found;
    found = await setupWarnings(redis, keyPrefix).catch(() => before); // Redis is unavailable: that is logged elsewhere.
    for (const warning of found) if (!before.includes(warning)) logger.warn(warning);
  };
  redis.on('ready', look);
  const timer = setInterval(look, lookAtSetupEveryMs).unref();
  return { warnings: () => found, stop: () => clearInterval(timer) };
}

/** Waits until Redis is there, or known to be away, so that the first request does not come too early for no reason. */
async function firstAttempt(redis: Redis): Promise<void> {
  const attempt = new Promise((resolve) => redis.once('ready', resolve).once('close', resolve));
  await Promise.race([attempt, sleep(attemptMs, null, { ref: false })]);
}

/** The address of a listener. */
export function addressOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
