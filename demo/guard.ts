// In: child processes. Out: their end when this process is gone, however it ends: a shell reads from a pipe that only this
// process holds open, and at its end does what stopping them would have done.

import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

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
export function guard(pid: number): () => void {
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
