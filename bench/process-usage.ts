// Reads CPU time and peak memory of a process and its children from Linux.

import { readdirSync, readFileSync } from 'node:fs';
import { setInterval as every } from 'node:timers/promises';

/** Linux counts CPU time in hundredths of a second (USER_HZ) on every machine. */
const microsPerTick = 10_000;
const pollMs = 20;

/** Returns the CPU time so far of a process and all its descendants, including ended ones, in µs; `null` without /proc. */
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

/** Returns the peak memory of a process so far (resident set), in bytes; `null` if unknown. */
export function peakMemory(pid: number): number | null {
  const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(readProc(`${pid}/status`))?.[1];
  return kibibytes === undefined ? null : Number(kibibytes) * 1024;
}

/** Polls the peak memory until the process has ended. */
export async function peakMemoryUntil(pid: number, ended: Promise<unknown>): Promise<number | null> {
  const over = new AbortController();
  void ended.catch(() => undefined).finally(() => over.abort());
  let peak: number | null = null;
  try {
    for await (const _tick of every(pollMs, null, { signal: over.signal })) {
      peak = Math.max(peak ?? 0, peakMemory(pid) ?? 0) || null;
    }
  } catch {
    // The import or the watch has ended.
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
    // The command's name, which may contain anything, is in parentheses; the fields after it start at number 3.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const parent = Number(fields[1]);
    // User and system time of the process, then of its ended children.
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

/** Returns an empty text if the process has ended. */
function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch {
    return '';
  }
}
