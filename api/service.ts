// Builds the parts of an API process from its settings: connections to Redis, and the data listener.

import { readFileSync } from 'node:fs';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Settings } from '../config/settings.ts';
import { importedCollections, servedCollections } from '../shared/collections/collections.ts';
import {
  connectForListening,
  connectForServing,
  connectToReplica,
  type Redis,
} from '../shared/redis/connections.ts';
import type { ServiceErrorLog } from './admin/logs.ts';
import { AccessLog } from './admin/logs.ts';
import type { Metrics } from './admin/metrics.ts';
import { ApiKeys } from './auth.ts';
import { ClientVersions } from './client-versions.ts';
import { RateLimiter } from './rate-limit.ts';
import { LiveVersions } from './read/live-versions.ts';
import { ReadModel } from './read/read-model.ts';
import { Replica } from './read/replica.ts';
import { type RedisWatch, watchRedis } from './redis-watch.ts';
import { createServer } from './server.ts';

/** How long responses in progress may take during shutdown, in ms. */
export const drainMs = 10_000;

/** How long a silent client may still send a request on its connection during shutdown, in ms. */
const quietMs = 1_000;

/** Open files reserved for Redis, the admin listener and the process itself. */
const reservedFiles = 64;

/** Logs and metrics. */
export interface Watchers {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly serviceErrors: ServiceErrorLog;
}

/** The connections and state that a process reads from. */
export interface Reads {
  readonly redis: Redis;
  readonly readModel: ReadModel;
  /** Receives announcements. */
  readonly listener: Redis;
  readonly watch: RedisWatch;
  close(): void;
}

/** Opens the connections, even if Redis is unavailable, and follows the live versions. */
export function openReads(settings: Settings, watchers: Watchers): Reads {
  const { redisUrl, keyPrefix } = settings;
  const { logger, metrics } = watchers;
  const redis = connectForServing(redisUrl, { onRoundTrip: metrics.timeRedis });
  const listener = connectForListening(redisUrl);
  const watch = watchRedis(redis, { redisUrl, keyPrefix, logger });
  const replica = openReplica(settings, redis, watchers);
  const onDamage = damageTold(watchers);
  const live = new LiveVersions({
    redis,
    listener,
    replica: replica?.reads,
    keyPrefix,
    sources: importedCollections,
    onDamage,
  });
  const readModel = new ReadModel({ redis: replica?.reads.redis ?? redis, live, keyPrefix, onDamage });
  live.start();
  return {
    redis,
    readModel,
    listener,
    watch,
    close() {
      live.stop();
      watch.stop();
      replica?.close();
      for (const connection of [redis, listener]) connection.disconnect();
    },
  };
}

/** Opens a connection to a replica; `null` if the settings do not ask for it or REDIS_URL names no replica. */
function openReplica(
  { redisUrl, readFrom }: Settings,
  master: Redis,
  { logger, metrics }: Watchers,
): { readonly reads: Replica; close(): void } | null {
  if (readFrom === 'master') return null;
  let isClosed = false;
  const replica = connectToReplica(redisUrl, {
    onRoundTrip: metrics.timeRedis,
    onLost: () => isClosed || reads.forget(),
  });
  if (!replica) return null;
  const reads = new Replica({
    master,
    replica,
    onTurn: (from) => logger.info({ from }, 'Contents are now read from another server.'),
  });
  return {
    reads,
    close() {
      isClosed = true;
      replica.disconnect();
    },
  };
}

/** A data listener in service. */
export interface DataListener {
  /** `http://<address>:<port>` */
  readonly address: string;
  /** Stops it gracefully: responses in progress are finished. */
  stop(): Promise<void>;
}

/** Starts the data listener. @throws Error that says what to set if it cannot listen */
export async function startDataListener(
  settings: Settings,
  { redis, readModel, listener, watch }: Reads,
  { logger, metrics, serviceErrors }: Watchers,
): Promise<DataListener> {
  const { keyPrefix, apiHost: host, apiPort: port, baseUrl, accessLog } = settings;
  const { defaultRate, corsOrigins, trustedProxies } = settings;
  const requests = new AccessLog(logger, accessLog);
  metrics.addWaiting(() => readModel.waits.count);
  const apiKeys = new ApiKeys({ redis, keyPrefix, onDamage: damageTold({ metrics, serviceErrors }) });
  const clientVersions = new ClientVersions({
    ...{ redis, keyPrefix, served: servedCollections },
    isKnown: (id) => apiKeys.hasId(id),
  });
  const rateLimiter = new RateLimiter({
    ...{ redis, keyPrefix, defaultRate },
    onUncounted: (message) => {
      metrics.countUncounted();
      serviceErrors.recordDamage(message);
    },
  });
  const server = await createServer({
    collections: servedCollections,
    readModel,
    apiKeys,
    rateLimiter,
    clientVersions,
    quietMs,
    whyUnavailable: watch.whyUnavailable,
    setupWarnings: watch.setupWarnings,
    host,
    port,
    baseUrl,
    corsOrigins,
    trustedProxies,
    logger,
    onResponse: (request) => {
      metrics.countRequest(request);
      requests.write(request);
    },
    onServiceError: (serviceError, requestId) => {
      metrics.countUnavailable(serviceError.cause);
      serviceErrors.record(serviceError, requestId);
    },
    onUnauthorized: metrics.countUnauthorized,
  });
  limitConnections(server.listener, logger);
  await watch.firstConnection();
  await apiKeys.start(listener);
  await server.start().catch(async (error) => {
    apiKeys.stop();
    await server.stop(); // It stops hapi's load sampling.
    throw new Error(`The API cannot listen on ${host}:${port}: ${error.message}. Set API_HOST or API_PORT.`);
  });
  const address = addressOf(server.listener.address() as AddressInfo);
  logger.info({ address }, 'The API is ready.');
  return {
    address,
    async stop() {
      await server.stop({ timeout: drainMs });
      await clientVersions.stop();
      apiKeys.stop();
      requests.endSecond();
    },
  };
}

/**
 * Closes new connections while the process has few open files left, so that Redis stays reachable. Logs that once a minute.
 * Otherwise the system closes them silently.
 */
function limitConnections(listener: Server, logger: Logger): void {
  const limit = fileLimit();
  if (limit === null) return;
  const most = Math.max(1, limit - reservedFiles);
  let open = 0;
  let closed = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  // Not `maxConnections`: with it, Node 20 passes a connection between workers until one has room.
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

/** Returns how many files this process may open; `null` if unknown. */
function fileLimit(): number | null {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? null : Number(limit);
  } catch {
    return null; // Not Linux.
  }
}

function damageTold({ metrics, serviceErrors }: Pick<Watchers, 'metrics' | 'serviceErrors'>) {
  return (message: string) => {
    metrics.countDamage();
    serviceErrors.recordDamage(message);
  };
}

/** Returns the address of a listener. */
export function addressOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
