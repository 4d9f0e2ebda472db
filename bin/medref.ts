#!/usr/bin/env node
// The process of the command line: its streams, signals, priority and exit code.

import { Console } from 'node:console';
import { existsSync, fstatSync, readdirSync, statSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { Writable } from 'node:stream';
import { commandLine } from './command-line.ts';
import { exitCodes } from './context.ts';
import { eraseLine } from './output.ts';

let staysUp = false;
let mindsResults = false;

// Nothing of ours is written by console. What libraries would write there is reported by their errors, in our words.
const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
globalThis.console = new Console(nowhere);

// Certificates are always checked: those of upstream, the webhook and Redis. Node reads this for each connection.
delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (mindsResults) return; // The write of the command fails, too.
  if (error.code === 'EPIPE' && staysUp) return;
  if (error.code === 'EPIPE') process.exit(); // The reader has seen enough.
  process.stderr.write(`The result could not be written: ${error.message}.\n`);
  process.exit(exitCodes.failed);
});

// A log that nobody reads ends nothing.
process.stderr.on('error', () => undefined);

process.exitCode = await commandLine(process.argv.slice(2), {
  env: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
  // On a terminal, a line of the log replaces the progress, which is drawn again below it.
  log: (line) => process.stderr.write(process.stderr.isTTY ? eraseLine + line : line),
  stopSignal,
  lowerPriority,
  stayUp() {
    staysUp = true;
  },
  mindResults() {
    if (leadsNowhere(process.stdout.fd))
      throw new Error('The result would be lost: stdout is closed, or is /dev/null.');
    mindsResults = true;
  },
});

/** Returns a signal that is aborted when the process is asked to stop. A second request ends the process at once. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(name, () => controller.abort(new Error(`It was stopped by ${name}.`)));
  return controller.signal;
}

/** Lets other processes go first from now on: an import has time, and a reader notices each millisecond. */
function lowerPriority(): void {
  // Linux has a priority for each thread (setpriority(2)); the helper threads of V8 run already.
  const threads = existsSync('/proc/self/task') ? readdirSync('/proc/self/task').map(Number) : [0];
  const { PRIORITY_BELOW_NORMAL } = constants.priority;
  for (const thread of threads) {
    try {
      if (getPriority(thread) < PRIORITY_BELOW_NORMAL) setPriority(thread, PRIORITY_BELOW_NORMAL);
    } catch {
      // The thread has ended, or the system does not allow it.
    }
  }
}

/** Returns whether a file is /dev/null, which Node also opens in place of a stdout that is closed. */
function leadsNowhere(file: number): boolean {
  try {
    return fstatSync(file).rdev === statSync('/dev/null').rdev;
  } catch {
    return false; // There is no such device.
  }
}
