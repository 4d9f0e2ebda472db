// The context, exit codes and errors of commands. It imports nothing, so that commands start fast.

import type { Writable } from 'node:stream';
import type { Settings } from '../config/settings.ts';

/** The process that the command line runs in. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Results. Node detects colours by NO_COLOR and TERM. */
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number; hasColors?(): boolean };
  /** Progress and errors. */
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  /** Writes a line of the log. */
  log(line: string): void;
  /** Returns a signal that SIGINT, SIGTERM and SIGHUP abort. */
  stopSignal(): AbortSignal;
  /** Lowers the priority of this process. */
  lowerPriority(): void;
  /** Keeps the process running when its output is closed. */
  stayUp(): void;
  /** Reports write errors of stdout to the command. @throws Error if stdout is closed or /dev/null */
  mindResults(): void;
}

/** The context of a command. */
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
  /** Another process has the lock of the collection. */
  locked: 4,
  /** A signal stopped it. */
  interrupted: 130,
});

/** Wrong usage: {@link exitCodes.usage}. */
export class UsageError extends Error {}

/** Another process has the lock of the collection: {@link exitCodes.locked}. */
export class LockedError extends Error {}
