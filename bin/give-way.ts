// An import can wait: it lets those who serve go first where a machine has too few cores, and takes little memory.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';

const { PRIORITY_BELOW_NORMAL } = constants.priority;

/** Makes this process one that can wait, for good. What the system does not allow is left as it is. */
export function giveWay(): void {
  // Nearly all that an import makes is garbage at once: room for more of it costs tens of MB and wins little, and threads
  // that help to collect it cost more CPU time than they save.
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=150');
  setFlagsFromString('--no-parallel-scavenge');
  for (const thread of ownThreads()) allowed(() => lower(thread));
  // Linux may weigh sessions and not processes (sched(7), "The autogroup feature"). A session that others began, such as
  // that of a shell, is theirs.
  allowed(() => {
    if (isSessionLeader()) writeFileSync('/proc/self/autogroup', String(PRIORITY_BELOW_NORMAL));
  });
}

/** Never raises it: who starts an import may have chosen a priority that is lower still. */
function lower(thread: number): void {
  if (getPriority(thread) < PRIORITY_BELOW_NORMAL) setPriority(thread, PRIORITY_BELOW_NORMAL);
}

/**
 * Linux has a priority for each thread (setpriority(2), "C library/kernel differences"), which those that it starts inherit;
 * the threads that compile, collect garbage and deflate have been started by now. Elsewhere: the process, which is 0.
 */
function ownThreads(): number[] {
  try {
    return readdirSync('/proc/self/task').map(Number);
  } catch {
    return [0];
  }
}

/** proc_pid_stat(5): the session is the fourth field after the name of the program, which ends with the last bracket. */
function isSessionLeader(): boolean {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]) === process.pid;
}

function allowed(act: () => void): void {
  try {
    act();
  } catch {
    // An import is none the worse for it.
  }
}
