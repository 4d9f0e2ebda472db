// Starts a child process that ends gracefully, does not receive Ctrl-C from the terminal, and does not outlive this process:
// a shell reads from a pipe that only this process holds open, and ends the children when the pipe is closed.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';

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

/** Lines of `start <pid>` and `end <pid>`, and then no more: those that have not ended are asked to end, and made to. */
const script = `pids=
  while read -r change pid; do
    case $change in
      start) pids="$pids $pid" ;;
      end) left=; for it in $pids; do [ "$it" = "$pid" ] || left="$left $it"; done; pids=$left ;;
    esac
  done
  for it in $pids; do kill -TERM "$it" && kill -CONT "$it"; done
  for _ in 1 2 3 4 5; do
    left=; for it in $pids; do kill -0 "$it" && left="$left $it"; done; pids=$left
    [ -n "$pids" ] || exit 0
    sleep 1
  done
  for it in $pids; do kill -KILL "$it"; done`;

/** The pipe to the one shell of this process. To start a process takes longer the more memory this one has. */
let pipe: Socket | undefined;

/** Guards a child process. @returns what ends that: to be called when the child has ended */
function guard(pid: number): () => void {
  pipe ??= startShell();
  pipe.write(`start ${pid}\n`);
  return () => void pipe?.write(`end ${pid}\n`);
}

function startShell(): Socket {
  const shell = spawn('sh', ['-c', script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  shell.on('error', () => {}); // without a shell there is no guard, and the children work all the same
  shell.once('exit', () => {
    pipe = undefined;
  });
  shell.unref();
  const stdin = shell.stdin as Socket;
  stdin.on('error', () => {});
  stdin.unref();
  return stdin;
}
