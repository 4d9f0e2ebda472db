// Connections to Redis: one for serving, which fails fast, and one for commands and imports, which waits.
// Whoever opens a connection closes it.

import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, type ClusterOptions, Redis as OneServer, type RedisOptions } from 'ioredis';
import { isRedisUnavailable, RedisUnavailableError, replyOf } from './failures.ts';
import { resilient, resilientCluster, resilientSentinels } from './resilient-client.ts';
import { describeServer, parseServers, type Servers } from './server-url.ts';

/**
 * A connection that is closed and does not end is given up after this long. ioredis waits for it also where it has ended before,
 * and keeps the process from ending meanwhile: where Redis is away, for 2 s.
 */
const closeMs = 100;

/** A connection to one server, be it found by Sentinels, or to the nodes of a Cluster. */
export type Redis = OneServer | Cluster;

/**
 * A serving connection that is silent for this long is made anew, and what was asked by it fails: since it is asked
 * something each half second, a reader waits no longer, however many replies it needs, and stays within the 2 s after
 * which it is 503. A timer for each command would cost more than a tenth of it.
 */
const silenceMs = 1_500;

/** An import waits this long for one reply; its lock is lost by then. */
const writeTimeoutMs = 30_000;

/** A writing connection that owes a reply and is silent for this long is made anew, and asks again: well within a lock's life. */
const writeSilenceMs = 10_000;

/** How long a writing connection may take until it can be used. */
const establishMs = 10_000;

/** How often an import asks again a Cluster that has no master for a slot, or is moving it. */
const retryEveryMs = 200;

/** A Sentinel that is silent for this long is passed over. */
const sentinelSilenceMs = 500;

/** How often a server that takes no writes is taken for another one than its address names. */
const lookUpEveryMs = 5_000;

/** How often a process that serves looks for nodes that have joined a Cluster, or come back to it. */
const lookForNodesMs = 2_000;

/**
 * A connection for serving: a command fails at once while Redis is away, and after 1.5 s without a reply;
 * it reconnects by itself, for ever.
 * @param onRoundTrip told how long Redis took to reply to a command, of one in eight, in ms
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
 * A connection for serving that reads from one replica; of a Cluster, from one of each master.
 * @param onLost told when it is away, or is another one from now on
 * @returns `null` where REDIS_URL names one server, which tells of no replica
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
 * Chooses one replica of each master, and another one only where that has gone; the master where none is there. While there
 * is no master, the replica stays.
 */
function oneReplicaEach(onLost: () => void): (nodes: (OneServer | undefined)[]) => OneServer | null {
  const chosen = new Map<OneServer, OneServer>();
  return ([master, ...replicas]) => {
    const there = replicas.filter((it) => it !== undefined && it.status !== 'end');
    const before = master ? chosen.get(master) : [...chosen.values()].find((it) => there.includes(it));
    if (before && there.includes(before)) return before;
    // Which one is by the process, so that those of one machine do not all choose the same.
    const now = there[process.pid % there.length];
    if (!master || !now) return master ?? null;
    for (const [of, { status }] of chosen) if (status === 'end') chosen.delete(of);
    chosen.set(master, now);
    onLost();
    return master; // What the replica has is not known yet.
  };
}

/** The same connection, whose commands go to another one where there is such. */
export function routed(redis: Redis, instead: () => Redis | null): Redis {
  const facade: Cluster = Object.create(redis);
  facade.sendCommand = (...sent) => ((instead() ?? redis) as Cluster).sendCommand(...sent);
  return facade;
}

const serving: Behaviour = {
  ofServer: {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0, // What was asked as the connection was lost fails, and is not asked again.
    socketTimeout: silenceMs,
    connectTimeout: 2_000,
    retryStrategy: (times) => Math.min(50 * times, 500),
  },
  // A slot that moves, or whose master is gone, is asked for a few times within half a second.
  ofCluster: {
    enableOfflineQueue: false,
    maxRedirections: 5,
    slotsRefreshInterval: lookForNodesMs,
    redisOptions: { socketTimeout: silenceMs, connectTimeout: 1_000 },
    clusterRetryStrategy: (times) => Math.min(50 * times, 500),
  },
};

/** A connection that listens to announcements; it subscribes again by itself after each reconnection. */
export function connectForListening(url: string): Redis {
  const servers = parseServers(url);
  const ofServer: ServerOptions = {
    maxRetriesPerRequest: null, // However long Redis is away, the subscription waits for it.
    connectTimeout: 2_000,
    retryStrategy: (times) => Math.min(50 * times, 500),
  };
  if (servers.kind !== 'cluster') return connect(servers, { ofServer, ofCluster: {} });
  // Every node of a Cluster hears all that is announced. The client's own way would look for another node without a pause.
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
 * A connection for commands and imports, established; it outlives short absences of Redis. Tests shorten the silence.
 * @param signal gives up before it is established
 * @throws RedisUnavailableError when Redis cannot be reached now, with the error of the connection as its cause
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
      maxRetriesPerRequest: null, // The timeout alone ends the wait for a Redis that has gone.
      retryStrategy,
    },
    // Likewise: as many tries as the timeout leaves time for.
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
    // A Cluster that is ready at its second try does not settle what the first one gave.
    redis.once('ready', resolve);
    redis.connect().catch((error) => redis instanceof Cluster || reject(error));
    // A Sentinel that asks for credentials is told them at the next try.
    const isToldNext = ({ message }: Error) =>
      message.includes('NOAUTH') && servers.kind === 'sentinel' && servers.password;
    redis.on('error', (error: Error) => isToldNext(error) || reject(error));
    giveUp = () => reject(signal?.reason);
    signal?.addEventListener('abort', giveUp, { once: true });
    // A Cluster without slots, or one that is down, is no error to its client: it tries again, for ever.
    timer = setTimeout(() => reject(new Error('It was not ready in time')), establishMs);
  });
  try {
    await established;
  } catch (error) {
    redis.disconnect();
    // Of a Cluster, the last node that was asked says more than that none could be.
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

/** The servers that have the data: one, or the masters of a Cluster. Their connections are the given one's, and borrowed. */
export function mastersOf(redis: Redis): OneServer[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/**
 * Executes a pipeline or a transaction of a writing connection. Makes and sends it again while Redis is unavailable: ioredis
 * sends single commands again after a reconnection, but gives up a pipeline of which it has some replies.
 * @param make must lead to the same outcome if it is executed twice
 * @param isTolerated whether an error counts as the reply `null`
 * @returns the replies. Throws whatever Redis replies
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
      // A transaction that Redis refused to queue fails with EXECABORT; the first refusal says why.
      const cause = (error as { previousErrors?: Error[] }).previousErrors?.[0] ?? error;
      failedAt ??= performance.now();
      if (!isRedisUnavailable(cause) || performance.now() - failedAt > writeTimeoutMs) throw cause;
      await sleep(retryEveryMs);
    }
  }
}

/**
 * Asks the server that has a key what no key is needed for.
 * @returns its reply. Throws whatever it answers with
 */
export async function beside(
  redis: Redis,
  key: string,
  [name, ...args]: [string, ...(string | number)[]],
): Promise<unknown> {
  // A Cluster sends what is asked together to where the keys of it are.
  const [, reply] = await execute(() =>
    redis
      .pipeline()
      .exists(key)
      .call(name, ...args),
  );
  return reply;
}

/**
 * How many replicas repeat what is written to a key: those that are connected; of a Cluster, those that ought to be; with
 * Sentinels, which watch nothing without a replica, one at least.
 */
export async function replicasOf(redis: Redis, key: string): Promise<number> {
  const info = String(await beside(redis, key, ['INFO', 'replication']));
  const connected = Number(/^connected_slaves:(\d+)/m.exec(info)?.[1] ?? 0);
  if (!(redis instanceof Cluster)) return redis.options.sentinels ? Math.max(connected, 1) : connected;
  const nodes = String(await beside(redis, key, ['CLUSTER', 'NODES']));
  const master = /^(\w+) \S+ myself,/m.exec(nodes)?.[1];
  return Math.max(connected, nodes.split('\n').filter((node) => node.includes(` ${master} `)).length);
}

/** How a connection behaves: to one server, also where Sentinels name it, and to a Cluster. */
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
      lazyConnect: true, // It is not to ask Sentinels before it lasts.
      sentinelCommandTimeout: sentinelSilenceMs,
      sentinelRetryStrategy: () => null, // They are asked again by us.
      failoverDetector: true, // A master that hangs, or is none any more, does not close its connections by itself.
      disconnectTimeout: sentinelSilenceMs,
      // What a master of before refuses is asked of the one that Sentinels name now.
      reconnectOnError: ({ message }) => isReadOnly(message) && (isResent ? 2 : 1),
    });
    resilientSentinels(resilient(redis));
    if (!ofServer.lazyConnect) redis.connect().catch(() => undefined);
    return redis;
  }
  return resilientCluster(
    new Cluster([...hosts], {
      ...ofCluster,
      // Hosts are looked up one by one as they are connected to, so one that has no address keeps nobody away; and TLS sees names.
      dnsLookup: (host: string, done) => done(null, host),
      redisOptions: { ...ofCluster.redisOptions, ...credentials, ...(hasTls && { tls: {} }) },
    }),
  );
}

/**
 * A server that takes no writes has been a master before, and another one may have its address now: it is looked up again, but
 * not for each write of who was told the address of a replica.
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

/**
 * Lets what is asked in one step of the event loop go out in one write: each write wakes Redis, and costs more than the
 * writing of an answer.
 */
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

/** One command of so many is timed: to time each would cost 2 % of a request. */
const timedOneIn = 8;

/** Times some commands; one without a reply is not timed. */
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
