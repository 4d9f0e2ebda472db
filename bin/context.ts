// What commands share: their context, exit codes, errors, a Redis connection and the logger.

import { hostname, userInfo } from 'node:os';
import type { Writable } from 'node:stream';
import { type Logger, pino } from 'pino';
import type { Settings } from '../config/settings.ts';
import { connectForWriting, type Redis } from '../shared/redis/connections.ts';
import { escapeJson } from '../shared/text.ts';

/** The process that the command line runs in. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Results. Node knows whether a terminal has colours, by NO_COLOR and TERM. */
  readonly stdout: Writable & { readonly isTTY?: boolean; hasColors?(): boolean };
  /** Progress and errors. */
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  /** Writes a line of the log. */
  log(line: string): void;
  /** Returns a signal that is aborted by SIGINT, SIGTERM and SIGHUP. */
  stopSignal(): AbortSignal;
  /** Lets other processes go first from now on. */
  lowerPriority(): void;
  /** Lets the process run on if nobody reads its results any more. */
  stayUp(): void;
  /** Reports results that cannot be written to the command. @throws Error if stdout is closed or /dev/null */
  mindResults(): void;
}

/** What a command works with. */
export interface CommandContext extends Omit<CliContext, 'env'> {
  readonly settings: Settings;
}

/** Exit codes of `medref`. */
export const exitCodes = Object.freeze({
  /** Done, or nothing had changed. */
  done: 0,
  failed: 1,
  /** Wrong usage or settings. */
  usage: 2,
  /** Refused by a check; the live version stays. */
  refused: 3,
  /** Another import has the lock of the collection. */
  locked: 4,
});

/** Wrong usage; ends with {@link exitCodes.usage}. */
export class UsageError extends Error {}

/** Another import has the lock of the collection; ends with {@link exitCodes.locked}. */
export class LockedError extends Error {}

/** Runs a function with a connection, and closes that at its end. */
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

/** Leaves out what an error carries: the error of a Redis command holds all of its arguments. */
function errorSummary({ name, message, stack }: Error): object {
  return { type: name, message, stack };
}

/** Returns the user and host of this process, as the log names who ran a command. */
export function operator(): { readonly user: string; readonly host: string } {
  try {
    return { user: userInfo().username, host: hostname() };
  } catch {
    return { user: String(process.getuid?.()), host: hostname() }; // A container's user may have no name there.
  }
}

/** Waits until a signal is aborted. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
