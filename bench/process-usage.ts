// In: the id of a process. Out: the CPU time and the peak memory that Linux counts for it and what it started.

import { readdirSync, readFileSync } from 'node:fs';
import { setInterval as every } from 'node:timers/promises';

/** Linux counts CPU time for programs in hundredths of a second (USER_HZ), on every machine. */
const microsPerTick = 10_000;
const pollMs = 20;

/** CPU time so far of a process and of all that descend from it, also of those that have ended, in µs; `null` where there is no /proc. */
export function cpuMicros(pid: number): number | null {
  const processes = allProcesses();
  if (!processes.has(pid)) return null;
  const descends = ({ id, parent }: ProcessStat): boolean => {
    if (id === pid) return true;
    const above = processes.get(parent);
    return above !== undefined && descends(above);
  };
  const ticks = [...processes.values()].filter(descends).reduce((sum, it) => sum + it.ticks, 0);
  return ticks * microsPerTick;
}

/** The most memory that a process has held so far (resident set), in bytes; `null` where nothing tells. */
export function peakMemory(pid: number): number | null {
  const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(readProc(`${pid}/status`))?.[1];
  return kibibytes === undefined ? null : Number(kibibytes) * 1024;
}

/** The peak so far, asked again and again until the process has ended and cannot be asked any more. */
export async function peakMemoryUntil(pid: number, ended: Promise<unknown>): Promise<number | null> {
  const over = new AbortController();
  void ended.catch(() => undefined).finally(() => over.abort());
  let peak: number | null = null;
  try {
    for await (const _tick of every(pollMs, null, { signal: over.signal })) {
      peak = Math.max(peak ?? 0, peakMemory(pid) ?? 0) || null;
    }
  } catch {
    // The end of the import, or of the watch.
  }
  return peak;
}

interface ProcessStat {
  readonly id: number;
  readonly parent: number;
  readonly ticks: number;
}

function allProcesses(): Map<number, ProcessStat> {
  const stats = new Map<number, ProcessStat>();
  for (const name of namesIn('/proc').filter((it) => /^\d+$/.test(it))) {
    const text = readProc(`${name}/stat`);
    // The command's name, which may hold anything, is in brackets; the fields after it are numbered from 3.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const parent = Number(fields[1]);
    // Its own by program and by system, then the same of children that it has waited for.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    if (fields.length < 15) continue;
    stats.set(Number(name), { id: Number(name), parent, ticks });
  }
  return stats;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Nothing for a process that has gone. */
function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch {
    return '';
  }
}
