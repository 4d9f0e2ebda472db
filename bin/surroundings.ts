// What the command line is given by the process that it runs in, and what each command gets of it.

import type { Writable } from 'node:stream';
import type { Settings } from '../config/settings.ts';
import type { Terminal } from './colours.ts';

/** The process around the command line. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Results. */
  readonly stdout: Writable & Terminal;
  /** Progress, and what went wrong; with its width where it is a terminal. */
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  /** Takes the lines of the log. */
  log(line: string): void;
  /** Asks to be told of SIGINT, SIGTERM and SIGHUP, by a signal that is aborted then. */
  stopSignal(): AbortSignal;
  /** Lets other processes go first from now on. */
  lowerPriority(): void;
  /** Says that the command runs until it is asked to stop, whoever reads its results. */
  stayUp(): void;
  /** Says that the command sees to results that cannot be written itself. @throws Error where stdout leads nowhere */
  mindResults(): void;
}

/** What a command works with. */
export interface CommandContext extends Omit<Surroundings, 'env'> {
  readonly settings: Settings;
}
