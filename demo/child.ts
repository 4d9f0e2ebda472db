// Starts child processes that end gracefully, ignore Ctrl-C of the terminal, and never outlive this process: a shell reads from
// a pipe of this process, and ends the children when the pipe closes.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';

/** A running child process. */
export interface Child {
  readonly process: ChildProcess;
  readonly pid: number;
  /** Resolves when the process has ended, after all its output, with its exit code or signal. */
  readonly ended: Promise<number | string>;
  /** Its output so far; very long output is cut at the start. */
  readonly output: { stdout: string; stderr: string };
  /** Sends SIGTERM, then SIGKILL after five seconds. Resolves when the process has ended. */
  stop(): Promise<void>;
}

const PATIENCE_MS = 5_000;
const REMEMBERED_CHARACTERS = 100_000;

/** Starts a command. @throws the system's error if it cannot start (ENOENT: no such command) */
export async function startChild(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Child> {
  // A separate process group: Ctrl-C reaches only this process, which then stops its children.
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
      child.kill('SIGCONT'); // a paused process would ignore it
      const insist = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
      await ended;
      clearTimeout(insist);
    },
  };
}

/** Reads lines of `start <pid>` and `end <pid>`. At the end of input, it ends the remaining processes. */
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

/** The pipe to the only shell of this process: starting a process is slow if this one uses much memory. */
let pipe: Socket | undefined;

/** Guards a child process. @returns a function to call when the child has ended */
function guard(pid: number): () => void {
  pipe ??= startShell();
  pipe.write(`start ${pid}\n`);
  return () => void pipe?.write(`end ${pid}\n`);
}

function startShell(): Socket {
  const shell = spawn('sh', ['-c', script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  shell.on('error', () => {}); // without a shell the children work unguarded
  shell.once('exit', () => {
    pipe = undefined;
  });
  shell.unref();
  const stdin = shell.stdin as Socket;
  stdin.on('error', () => {});
  stdin.unref();
  return stdin;
}
