// The context, exit codes and errors of commands. Loads nothing, so that every command starts fast.

import type { Writable } from 'node:stream';
import type { Settings } from '../config/settings.ts';

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
