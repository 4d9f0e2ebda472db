// The Redis connection, the logger, and the operator's name of a running command.

import { hostname, userInfo } from 'node:os';
import { type Logger, pino } from 'pino';
import type { Settings } from '../config/settings.ts';
import { connectForWriting, type Redis } from '../shared/redis/connections.ts';
import { escapeJson } from '../shared/text.ts';
import type { CommandContext } from './context.ts';

/** Runs a function with a connection, and closes it at the end. */
export async function withRedis<Result>(
  { redisUrl }: Settings,
  run: (redis: Redis) => Promise<Result>,
): Promise<Result> {
  const redis = await connectForWriting(redisUrl);
  try {
    return await run(redis);
  } finally {
    redis.disconnect();
  }
}

/** Returns the logger of one command: JSON lines. */
export function createLogger({ settings, log }: Pick<CommandContext, 'settings' | 'log'>): Logger {
  return pino(
    { level: settings.logLevel, base: { pid: process.pid }, serializers: { err: errorSummary } },
    { write: (line) => log(`${escapeJson(line.trimEnd())}\n`) },
  );
}

/** Logs when a connection is lost during a command, and when it is back. */
export function logOutages(redis: Redis, logger: Logger): void {
  let isAway = false;
  redis.on('reconnecting', () => {
    if (!isAway) logger.warn('Redis is unavailable; waiting.');
    isAway = true;
  });
  redis.on('ready', () => {
    if (isAway) logger.info('Redis is available again.');
    isAway = false;
  });
}

/** Drops other properties of an error: those of a Redis error contain all arguments of the command. */
function errorSummary({ name, message, stack }: Error): object {
  return { type: name, message, stack };
}

/** Returns the operator as logs and the history name it, user and host: `root@vm`. */
export function operatorName(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `${process.getuid?.()}@${hostname()}`; // The user of a container may have no name.
  }
}

/** Waits until a signal is aborted. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
