// Connections to Redis: one for serving, which fails fast, and one for commands and imports, which waits.
// Whoever opens a connection closes it.

import { Redis } from 'ioredis';

export type { Redis } from 'ioredis';

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

/** Redis could not be reached, or did not answer; the message says where and why. */
export class RedisUnavailableError extends Error {}

/**
 * A connection for serving: a command fails at once while Redis is away, and after 1.5 s without a reply;
 * it reconnects by itself, for ever.
 */
export function connectForServing(url: string): Redis {
  return gathered(
    new Redis(url, {
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      socketTimeout: silenceMs,
      connectTimeout: 2_000,
      retryStrategy: (times) => Math.min(50 * times, 500),
    }),
  );
}

/** A connection that listens to announcements; it subscribes again by itself after each reconnection. */
export function connectForListening(url: string): Redis {
  return quiet(
    new Redis(url, {
      maxRetriesPerRequest: null, // However long Redis is away, the subscription waits for it.
      connectTimeout: 2_000,
      retryStrategy: (times) => Math.min(50 * times, 500),
    }),
  );
}

/**
 * A connection for commands and imports, established; it outlives short absences of Redis.
 * @throws RedisUnavailableError when Redis cannot be reached now
 */
export async function connectForWriting(url: string): Promise<Redis> {
  const redis = quiet(
    new Redis(url, {
      lazyConnect: true,
      commandTimeout: writeTimeoutMs,
      socketTimeout: writeSilenceMs,
      maxRetriesPerRequest: null, // The timeout alone ends the wait for a Redis that has gone.
      connectTimeout: 5_000,
      retryStrategy: (times) => Math.min(50 * times, 1_000),
    }),
  );
  const failure = new Promise<never>((_, reject) => redis.once('error', reject));
  try {
    await Promise.race([redis.connect(), failure]);
  } catch (error) {
    redis.disconnect();
    throw new RedisUnavailableError(
      `Redis at ${describeServer(url)} cannot be used: ${(error as Error).message.replace(/\.$/, '')}. Start it, or set REDIS_URL.`,
    );
  }
  return redis;
}

/** The oldest Redis that knows every command we send. */
const oldestVersion = [6, 2] as const;

/**
 * What is wrong with how a server is set up, as sentences; what can be mended at once is mended.
 * @throws RedisUnavailableError when it is older than Redis 6.2
 */
export async function serverWarnings(redis: Redis): Promise<string[]> {
  const info = await redis.info('server', 'memory').catch((error: Error) => {
    if (error.message.startsWith('NOPERM')) return null;
    throw error;
  });
  if (info === null) return ['The Redis user may not run INFO, so version and eviction were not checked.'];
  const version = /^redis_version:(.+)$/m.exec(info)?.[1]?.trim() ?? 'unknown';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1])) {
    throw new RedisUnavailableError(
      `This Redis is version ${version}; medref needs 6.2 or newer, or Valkey.`,
    );
  }
  const warnings = await letExpiryRunAside(redis);
  const policy = /^maxmemory_policy:(.+)$/m.exec(info)?.[1]?.trim();
  if (policy === undefined || policy === 'noeviction') return warnings;
  return [
    ...warnings,
    `Redis may evict keys that are live (maxmemory-policy ${policy}); set it to noeviction.`,
  ];
}

/**
 * Turns `lazyfree-lazy-expire` on where the user may: a large content that expires would stop Redis for as long as it
 * takes to free it, some 0.3 s for a million records, and does so aside with this.
 * @returns what is wrong, as sentences, where it may not
 */
async function letExpiryRunAside(redis: Redis): Promise<string[]> {
  const name = 'lazyfree-lazy-expire';
  try {
    const [, value] = (await redis.config('GET', name)) as string[];
    if (value === 'no') await redis.config('SET', name, 'yes');
    return [];
  } catch (error) {
    if ((error as Error).name !== 'ReplyError') throw error;
    return [
      `The Redis user may not set ${name}; see that it is on, or large contents stop Redis as they expire.`,
    ];
  }
}

/** Whether an error of a command means that Redis is away or not able to answer, rather than that we asked wrongly. */
export function isRedisUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name === 'ReplyError') {
    return /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|MISCONF|NOAUTH|NOPERM|WRONGPASS)\b/.test(
      error.message,
    );
  }
  return (
    error.name === 'MaxRetriesPerRequestError' ||
    error.name === 'AbortError' ||
    'syscall' in error ||
    /^(Command timed out|Connection is closed|Stream isn't writeable|Connection not )/.test(error.message)
  );
}

/** A server's address without its credentials. */
export function describeServer(url: string): string {
  const { host } = new URL(url);
  return host;
}

/**
 * Lets what is asked in one step of the event loop go out in one write: each write wakes Redis, and costs more than the
 * writing of an answer.
 */
function gathered(redis: Redis): Redis {
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
  return quiet(redis);
}

/** A connection's errors reach the commands that fail by them; without a listener they would end the process. */
function quiet(redis: Redis): Redis {
  return redis.on('error', () => undefined);
}

/** Why Redis did not do what it was asked, by the first word of its reply. */
const refusals: Readonly<Record<string, string>> = {
  OOM: 'Redis has reached its maxmemory. Give it more, or lower KEEP_VERSIONS, and try again.',
  MISCONF: 'Redis cannot write to its disk. See its log, mend it, and try again.',
  READONLY: 'This Redis is a read-only replica. Set REDIS_URL to its primary.',
  LOADING: 'Redis is still loading its data. Try again shortly.',
  NOAUTH: 'Redis wants a password. Put it into REDIS_URL.',
  WRONGPASS: 'Redis does not accept the user or password of REDIS_URL.',
  NOPERM: 'The Redis user may not do what medref needs. See docs/OPERATIONS.md for its rights.',
};

/** What an error means, in a plain sentence; an error that is not of Redis says so itself. */
export function plainReason(error: Error): string {
  const refusal = refusals[error.message.split(' ', 1)[0] ?? ''];
  if (error.name === 'ReplyError' && refusal) return refusal;
  if (isRedisUnavailable(error))
    return `Redis did not answer in time or went away (${error.message}). Try again.`;
  return error.message;
}
