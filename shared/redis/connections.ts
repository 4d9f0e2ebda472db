// Connections to Redis: one for serving, which fails fast, and one for commands and imports, which waits.
// Whoever opens a connection closes it.

import { Redis } from 'ioredis';
import { RedisUnavailableError } from './failures.ts';

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

/**
 * A connection for serving: a command fails at once while Redis is away, and after 1.5 s without a reply;
 * it reconnects by itself, for ever.
 * @param onRoundTrip told how long Redis took to reply to a command, of one in eight, in ms
 */
export function connectForServing(
  url: string,
  { onRoundTrip }: { readonly onRoundTrip?: (ms: number) => void } = {},
): Redis {
  const redis = gathered(
    new Redis(url, {
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      socketTimeout: silenceMs,
      connectTimeout: 2_000,
      retryStrategy: (times) => Math.min(50 * times, 500),
    }),
  );
  return onRoundTrip ? timed(redis, onRoundTrip) : redis;
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
  const redis = quiet(
    new Redis(url, {
      lazyConnect: true,
      commandTimeout: writeTimeoutMs,
      socketTimeout: writeSilence,
      maxRetriesPerRequest: null, // The timeout alone ends the wait for a Redis that has gone.
      connectTimeout: 5_000,
      retryStrategy: (times) => Math.min(50 * times, 1_000),
    }),
  );
  const failure = new Promise<never>((_, reject) => {
    redis.once('error', reject);
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  try {
    await Promise.race([redis.connect(), failure]);
  } catch (error) {
    redis.disconnect();
    throw new RedisUnavailableError(
      `Redis at ${describeServer(url)} cannot be used: ${(error as Error).message.replace(/\.$/, '')}. Start it, or set REDIS_URL.`,
      { cause: error },
    );
  }
  return redis;
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

/** One command of so many is timed: to time each would cost 2 % of a request. */
const timedOneIn = 8;

/** Times some commands; one without a reply is not timed. */
function timed(redis: Redis, onRoundTrip: (ms: number) => void): Redis {
  const send = redis.sendCommand.bind(redis);
  let sent = 0;
  redis.sendCommand = (command, stream) => {
    if (sent++ % timedOneIn === 0) {
      const askedAt = performance.now();
      const onReply = () => onRoundTrip(performance.now() - askedAt);
      command.promise.then(onReply, (error: Error) => error.name === 'ReplyError' && onReply());
    }
    return send(command, stream);
  };
  return redis;
}

/**
 * A connection's errors reach the commands that fail by them; without a listener they would end the process. One whose
 * handshake Redis refused, such as to a database that it does not have, is made anew: ioredis would go on with database 0.
 */
function quiet(redis: Redis): Redis {
  return redis.on('error', ({ name }) => {
    if (name === 'ReplyError' && redis.status === 'connect') redis.disconnect(true);
  });
}
