// Connections to Redis: one kind for serving, which fails fast, and one for commands and imports, which waits.
// The caller that opens a connection closes it.

import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, type ClusterOptions, Redis as OneServer, type RedisOptions } from 'ioredis';
import { isRedisUnavailable, RedisUnavailableError, replyOf } from './failures.ts';
import { resilient, resilientCluster, resilientSentinels } from './resilient-client.ts';
import { describeServer, parseServers, type Servers } from './server-url.ts';

/**
 * A closed connection gets this long to end, in ms. ioredis may wait up to 2 s for a Redis that is unavailable, and keeps the
 * process alive meanwhile.
 */
const closeMs = 100;

/** A connection to one server, also through Sentinels, or to the nodes of a Cluster. */
export type Redis = OneServer | Cluster;

/**
 * A serving connection that is silent for this long, in ms, is reopened, and its commands fail. Since it sends a command every
 * half second, no reader waits longer, and each gets its 503 within 2 s. A timer for each command would cost over a tenth of it.
 */
const silenceMs = 1_500;

/** How long an import waits for one reply, in ms; its lock has expired by then. */
const writeTimeoutMs = 30_000;

/** A writing connection that waits for a reply and is silent for this long, in ms, is reopened and sends its commands again. */
const writeSilenceMs = 10_000;

/** How long a writing connection may take to become ready, in ms. */
const establishMs = 10_000;

/** How often an import retries on a Cluster that lacks a primary for a slot or moves it, in ms. */
const retryEveryMs = 200;

/** A Sentinel that is silent for this long, in ms, is skipped. */
const sentinelSilenceMs = 500;

/** How often the address of a server that refuses writes is resolved again, in ms. */
const lookUpEveryMs = 5_000;

/** How often an API process looks for nodes that join a Cluster, in ms. */
const lookForNodesMs = 2_000;

/**
 * Opens a connection for serving: commands fail at once while Redis is unavailable, and after 1.5 s without a reply. It
 * reconnects forever.
 * @param onRoundTrip called with the time from command to reply, in ms, for one command in eight
 */
export function connectForServing(
  url: string,
  { onRoundTrip }: { readonly onRoundTrip?: (ms: number) => void } = {},
): Redis {
  const redis = connect(parseServers(url), serving);
  gathered(redis);
  return onRoundTrip ? timed(redis, onRoundTrip) : redis;
}

/**
 * Opens a connection for serving that reads from one replica; on a Cluster, from one replica of each primary.
 * @param onLost called when the connection is lost, or leads to another replica from now on
 * @returns `null` if REDIS_URL names one server, whose replicas are unknown
 */
export function connectToReplica(
  url: string,
  { onRoundTrip, onLost }: { readonly onRoundTrip?: (ms: number) => void; readonly onLost: () => void },
): Redis | null {
  const servers = parseServers(url);
  if (servers.kind === 'one' || servers.kind === 'socket') return null;
  const { ofServer, ofCluster } = serving;
  const redis = connect(servers, {
    ofServer: { ...ofServer, role: 'slave' },
    ofCluster: { ...ofCluster, scaleReads: oneReplicaEach(onLost) },
  });
  redis.on('close', onLost);
  gathered(redis);
  return onRoundTrip ? timed(redis, onRoundTrip) : redis;
}

/**
 * Chooses one replica of each primary, and a different one only if the first is gone; the primary if there is none. Without a
 * primary, the replica stays.
 */
function oneReplicaEach(onLost: () => void): (nodes: (OneServer | undefined)[]) => OneServer | null {
  const chosen = new Map<OneServer, OneServer>();
  return ([master, ...replicas]) => {
    const there = replicas.filter((it) => it !== undefined && it.status !== 'end');
    const before = master ? chosen.get(master) : [...chosen.values()].find((it) => there.includes(it));
    if (before && there.includes(before)) return before;
    // The process id decides, so that the processes of one machine use different replicas.
    const now = there[process.pid % there.length];
    if (!master || !now) return master ?? null;
    for (const [of, { status }] of chosen) if (status === 'end') chosen.delete(of);
    chosen.set(master, now);
    onLost();
    return master; // The state of the replica is unknown so far.
  };
}

/** The same connection, whose commands go to another connection if there is one. */
export function routed(redis: Redis, instead: () => Redis | null): Redis {
  const facade: Cluster = Object.create(redis);
  facade.sendCommand = (...sent) => ((instead() ?? redis) as Cluster).sendCommand(...sent);
  return facade;
}

const serving: Behaviour = {
  ofServer: {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0, // Commands on a lost connection fail and are not repeated.
    socketTimeout: silenceMs,
    connectTimeout: 2_000,
    retryStrategy: (times) => Math.min(50 * times, 500),
  },
  // A slot that moves, or has lost its primary, gets a few retries within half a second.
  ofCluster: {
    enableOfflineQueue: false,
    maxRedirections: 5,
    slotsRefreshInterval: lookForNodesMs,
    redisOptions: { socketTimeout: silenceMs, connectTimeout: 1_000 },
    clusterRetryStrategy: (times) => Math.min(50 * times, 500),
  },
};

/** Opens a connection for announcements; it subscribes again after each reconnection. */
export function connectForListening(url: string): Redis {
  const servers = parseServers(url);
  const ofServer: ServerOptions = {
    maxRetriesPerRequest: null, // The subscription waits for Redis, however long that takes.
    connectTimeout: 2_000,
    retryStrategy: (times) => Math.min(50 * times, 500),
  };
  if (servers.kind !== 'cluster') return connect(servers, { ofServer, ofCluster: {} });
  // Every node of a Cluster receives all announcements. ioredis itself would try other nodes without a pause.
  const retryStrategy = (times: number) => {
    Object.assign(redis.options, servers.hosts[times % servers.hosts.length]);
    return Math.min(50 * times, 500);
  };
  const access = { ...credentialsOf(servers), ...(servers.hasTls && { tls: {} }) };
  const redis = resilient(
    new OneServer({
      ...ofServer,
      ...{ disconnectTimeout: closeMs, ...access, ...servers.hosts[0], retryStrategy },
    }),
  );
  return redis;
}

/**
 * Opens a connection for commands and imports, and waits until it is ready. It survives short outages of Redis. Tests shorten
 * the silence.
 * @param signal gives up before it is ready
 * @throws RedisUnavailableError if Redis is unavailable, with the connection's error as its cause
 */
export async function connectForWriting(
  url: string,
  {
    silenceMs: writeSilence = writeSilenceMs,
    signal,
  }: { readonly silenceMs?: number | undefined; readonly signal?: AbortSignal } = {},
): Promise<Redis> {
  const timeouts = { commandTimeout: writeTimeoutMs, socketTimeout: writeSilence, connectTimeout: 5_000 };
  const retryStrategy = (times: number) => Math.min(50 * times, 1_000);
  const servers = parseServers(url);
  const redis = connect(servers, {
    ofServer: {
      ...timeouts,
      lazyConnect: true,
      maxRetriesPerRequest: null, // Only the timeout ends the wait for an unavailable Redis.
      retryStrategy,
    },
    // As many attempts as the timeout allows.
    ofCluster: {
      lazyConnect: true,
      maxRedirections: writeTimeoutMs / retryEveryMs,
      retryDelayOnFailover: retryEveryMs,
      retryDelayOnClusterDown: retryEveryMs,
      retryDelayOnTryAgain: retryEveryMs,
      slotsRefreshInterval: lookForNodesMs,
      redisOptions: timeouts,
      clusterRetryStrategy: retryStrategy,
    },
  });
  let timer: NodeJS.Timeout | undefined;
  let giveUp: (() => void) | undefined;
  const established = new Promise<void>((resolve, reject) => {
    // If a Cluster is ready only at the second attempt, the first promise is already rejected.
    redis.once('ready', resolve);
    redis.connect().catch((error) => redis instanceof Cluster || reject(error));
    // A Sentinel that asks for credentials gets them at the next attempt.
    const isToldNext = ({ message }: Error) =>
      message.includes('NOAUTH') && servers.kind === 'sentinel' && servers.password;
    redis.on('error', (error: Error) => isToldNext(error) || reject(error));
    giveUp = () => reject(signal?.reason);
    signal?.addEventListener('abort', giveUp, { once: true });
    // ioredis retries a Cluster without slots, or one that is down, forever and without an error.
    timer = setTimeout(() => reject(new Error('It was not ready in time')), establishMs);
  });
  try {
    await established;
  } catch (error) {
    redis.disconnect();
    // On a Cluster, the error of the last node says more than the general one.
    const cause = ((error as { lastNodeError?: Error }).lastNodeError ?? error) as Error;
    throw new RedisUnavailableError(
      `Redis at ${describeServer(url)} cannot be used: ${cause.message.replace(/\.$/, '')}. Start it, or set REDIS_URL.`,
      { cause },
    );
  } finally {
    clearTimeout(timer);
    if (giveUp) signal?.removeEventListener('abort', giveUp);
  }
  return redis;
}

/** Returns the servers with the data: one, or the primaries of a Cluster. The connections belong to the caller's connection. */
export function mastersOf(redis: Redis): OneServer[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/**
 * Runs a pipeline or a transaction on a writing connection, and repeats it while Redis is unavailable: ioredis repeats single
 * commands after a reconnection, but not a pipeline with some replies.
 * @param make builds the pipeline, which must have the same effect if it runs twice
 * @param isTolerated whether an error counts as the reply `null`
 * @returns the replies. @throws errors of Redis
 */
export async function execute(
  make: () => ReturnType<OneServer['pipeline']>,
  isTolerated: (error: Error) => boolean = () => false,
): Promise<unknown[]> {
  for (let failedAt: number | null = null; ; ) {
    try {
      const results = (await make().exec()) ?? [];
      const failed = results.find(([error]) => error && !isTolerated(error));
      if (failed) throw failed[0];
      return results.map(([error, reply]) => (error ? null : reply));
    } catch (error) {
      // A transaction with a refused command fails with EXECABORT; the first refusal has the reason.
      const cause = (error as { previousErrors?: Error[] }).previousErrors?.[0] ?? error;
      failedAt ??= performance.now();
      if (!isRedisUnavailable(cause) || performance.now() - failedAt > writeTimeoutMs) throw cause;
      await sleep(retryEveryMs);
    }
  }
}

/**
 * Sends a command without a key to the server that has a key.
 * @returns its reply. @throws errors of Redis
 */
export async function sendToServerOf(
  redis: Redis,
  key: string,
  [name, ...args]: [string, ...(string | number)[]],
): Promise<unknown> {
  // A Cluster sends a pipeline to the node of its keys.
  const [, reply] = await execute(() =>
    redis
      .pipeline()
      .exists(key)
      .call(name, ...args),
  );
  return reply;
}

/**
 * Returns how many replicas copy the writes to a key: the connected ones; on a Cluster, the configured ones; with Sentinels,
 * which require replicas, at least one.
 */
export async function replicasOf(redis: Redis, key: string): Promise<number> {
  const info = String(await sendToServerOf(redis, key, ['INFO', 'replication']));
  const connected = Number(/^connected_slaves:(\d+)/m.exec(info)?.[1] ?? 0);
  if (!(redis instanceof Cluster)) return redis.options.sentinels ? Math.max(connected, 1) : connected;
  const nodes = String(await sendToServerOf(redis, key, ['CLUSTER', 'NODES']));
  const master = /^(\w+) \S+ myself,/m.exec(nodes)?.[1];
  return Math.max(connected, nodes.split('\n').filter((node) => node.includes(` ${master} `)).length);
}

/** How a connection behaves: to one server, also through Sentinels, and to a Cluster. */
interface Behaviour {
  readonly ofServer: ServerOptions;
  readonly ofCluster: Omit<ClusterOptions, 'redisOptions'> & { readonly redisOptions?: ServerOptions };
}

type ServerOptions = Omit<RedisOptions, 'replyMapping' | 'himportFieldsets'>;

function connect(servers: Servers, behaviour: Behaviour): Redis {
  const ofServer: ServerOptions = { disconnectTimeout: closeMs, ...behaviour.ofServer };
  const isResent = ofServer.enableOfflineQueue !== false;
  const ofCluster = {
    ...behaviour.ofCluster,
    redisOptions: { disconnectTimeout: closeMs, ...behaviour.ofCluster.redisOptions },
  };
  const ofOne: ServerOptions = { reconnectOnError: notToReplica(isResent), ...ofServer };
  if (servers.kind === 'one') return resilient(new OneServer(servers.url, ofOne));
  if (servers.kind === 'socket') {
    const { path, db } = servers;
    return resilient(new OneServer({ ...ofOne, ...credentialsOf(servers), path, db }));
  }
  const { hosts, hasTls } = servers;
  const credentials = credentialsOf(servers);
  if (servers.kind === 'sentinel') {
    const redis = new OneServer({
      ...ofServer,
      ...credentials,
      ...(hasTls && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
      sentinels: [...hosts],
      name: servers.master,
      lazyConnect: true, // The wrapper for Sentinels must be in place before it connects.
      sentinelCommandTimeout: sentinelSilenceMs,
      sentinelRetryStrategy: () => null, // Our wrapper retries Sentinels.
      failoverDetector: true, // A primary that hangs or was demoted does not close its connections.
      disconnectTimeout: sentinelSilenceMs,
      // Commands that a demoted primary refuses are repeated at the new one.
      reconnectOnError: ({ message }) => isReadOnly(message) && (isResent ? 2 : 1),
    });
    resilientSentinels(resilient(redis));
    if (!ofServer.lazyConnect) redis.connect().catch(() => undefined);
    return redis;
  }
  return resilientCluster(
    new Cluster([...hosts], {
      ...ofCluster,
      // Each host is resolved when it is connected to, so one unknown host blocks no other, and TLS sees host names.
      dnsLookup: (host: string, done) => done(null, host),
      redisOptions: { ...ofCluster.redisOptions, ...credentials, ...(hasTls && { tls: {} }) },
    }),
  );
}

/**
 * Reconnects after a refused write: the server may have been demoted, and its address may now lead to a new primary. Limited in
 * time, for operators who configured the address of a replica.
 */
function notToReplica(isResent: boolean): NonNullable<RedisOptions['reconnectOnError']> {
  let mayAt = 0;
  return ({ message }) => {
    if (!isReadOnly(message) || performance.now() < mayAt) return false;
    mayAt = performance.now() + lookUpEveryMs;
    return isResent ? 2 : 1;
  };
}

function isReadOnly(message: string): boolean {
  return replyOf({ message }).startsWith('READONLY');
}

function credentialsOf({ username, password }: Exclude<Servers, { kind: 'one' }>): ServerOptions {
  return { ...(username && { username }), ...(password && { password }) };
}

/** Sends the commands of one turn of the event loop in one write: each write wakes Redis and costs more than sending a response. */
function gathered(redis: Redis): void {
  if (redis instanceof Cluster) {
    redis.on('+node', gathered);
    return;
  }
  redis.on('connect', () => {
    const { stream } = redis;
    const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
    stream.write = (...args: unknown[]) => {
      if (stream.writableCorked === 0) {
        stream.cork();
        process.nextTick(() => stream.uncork());
      }
      return write(...args);
    };
  });
}

/** One command in so many is timed: timing each would cost 2 % of a request. */
const timedOneIn = 8;

/** Times some commands; a command without a reply is not timed. */
function timed(redis: Redis, onRoundTrip: (ms: number) => void): Redis {
  const send = (redis as Cluster).sendCommand.bind(redis);
  let sent = 0;
  (redis as Cluster).sendCommand = (command, stream, node) => {
    if (sent++ % timedOneIn === 0) {
      const askedAt = performance.now();
      const onReply = () => onRoundTrip(performance.now() - askedAt);
      command.promise.then(onReply, (error: Error) => error.name === 'ReplyError' && onReply());
    }
    return send(command, stream, node);
  };
  return redis;
}
