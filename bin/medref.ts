#!/usr/bin/env -S node --single-threaded-gc
// The process of the command line: streams, signals, priority, and exit code.

import { Console } from 'node:console';
import { existsSync, fstatSync, readdirSync, statSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { Writable } from 'node:stream';
import { commandLine } from './command-line.ts';
import { exitCodes } from './context.ts';
import { eraseLine } from './output.ts';

let staysUp = false;
let mindsResults = false;

// Libraries that write to the console are silenced: medref reports their errors itself.
const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
globalThis.console = new Console(nowhere);

// Certificates of upstream, the webhook and Redis are always checked. Node reads this variable for each connection.
delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (mindsResults) return; // The command sees the same error.
  if (error.code === 'EPIPE' && staysUp) return;
  if (error.code === 'EPIPE') process.exit(); // The reader has closed the pipe.
  process.stderr.write(`The result could not be written: ${error.message}.\n`);
  process.exit(exitCodes.failed);
});

// Errors of the log never end the process.
process.stderr.on('error', () => undefined);

process.exitCode = await commandLine(process.argv.slice(2), {
  env: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
  // On a terminal, a log line replaces the progress, which is drawn again below it.
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

/** Returns a signal that is aborted when the process shall stop. A second signal ends the process at once. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(name, () => controller.abort(new Error(`Stopped by ${name}.`)));
  return controller.signal;
}

/** Lowers the priority of this process: an import can wait, but readers notice each millisecond. */
function lowerPriority(): void {
  // Linux sets priorities per thread (setpriority(2)), and V8's helper threads are already running.
  const threads = existsSync('/proc/self/task') ? readdirSync('/proc/self/task').map(Number) : [0];
  const { PRIORITY_BELOW_NORMAL } = constants.priority;
  for (const thread of threads) {
    try {
      if (getPriority(thread) < PRIORITY_BELOW_NORMAL) setPriority(thread, PRIORITY_BELOW_NORMAL);
    } catch {
      // The thread has ended, or the system refuses.
    }
  }
}

/** Returns whether a file is /dev/null, which Node also opens in place of a closed stdout. */
function leadsNowhere(file: number): boolean {
  try {
    return fstatSync(file).rdev === statSync('/dev/null').rdev;
  } catch {
    return false; // The system has no such device.
  }
}
