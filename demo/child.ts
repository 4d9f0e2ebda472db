// In: a command line. Out: a running child process that is stopped in order, hears no Ctrl-C of the
// terminal, and does not outlive this process, however this process ends.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { guard } from './guard.ts';

/** A running child process. */
export interface Child {
  readonly process: ChildProcess;
  readonly pid: number;
  /** Resolves when the process has ended and all its output is here, with its exit code or the name of the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** What it wrote so far; of very much, the end. */
  readonly output: { stdout: string; stderr: string };
  /** Asks it to end (SIGTERM), insists after five seconds (SIGKILL), and resolves when it is gone. */
  stop(): Promise<void>;
}

const PATIENCE_MS = 5_000;
const REMEMBERED_CHARACTERS = 100_000;

/** Starts a command; rejects with the system's error when it can't be started (ENOENT: no such command). */
export async function startChild(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Child> {
  // A process group of its own: Ctrl-C reaches this process alone, which then stops its children in order.
  const child = spawn(command, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] = (output[stream] + text).slice(-REMEMBERED_CHARACTERS);
    });
  }
  await once(child, 'spawn');
  const pid = child.pid as number;
  const dismissGuard = guard(pid);
  ended.then(dismissGuard);

  return {
    process: child,
    pid,
    ended,
    output,
    async stop() {
      child.kill('SIGTERM');
      child.kill('SIGCONT'); // a paused process would hear nothing
      const insist = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
      await ended;
      clearTimeout(insist);
    },
  };
}
