// In: a process. Out: when it was ready to run and kept waiting for a processor, which is the machine's doing and not its own:
// by the kernel's account of its main thread, or, where there is none, by a thread that only sleeps and wakes too late.

import { Worker } from 'node:worker_threads';

export interface MachineWitness {
  /** The most it was kept waiting within so many ms that end in a second, in ms; the second in Unix time. */
  heldUpMs(moment: { second: number; ms: number }): number;
  /** The longest it was kept waiting in one go between two times, by `Date.now()`, in ms. */
  longestMs(from: number, to: number): number;
  stop(): Promise<void>;
}

/** How often it is looked at, in ms; a wait that is told of ended within so long before. */
const interval = 2;

/** Tells twice a second of waits: when each was seen to have ended, and how long it was. */
const thread = `
  const { openSync, readSync } = require('node:fs');
  const { parentPort, workerData } = require('node:worker_threads');
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  const text = Buffer.alloc(100);
  const waitedSoFar = (() => {
    try {
      const file = openSync('/proc/' + workerData.pid + '/task/' + workerData.pid + '/schedstat');
      return () => Number(text.toString('latin1', 0, readSync(file, text, 0, 100, 0)).split(' ')[1]) / 1e6;
    } catch {
      let total = 0;
      let last = performance.now();
      return () => {
        const now = performance.now();
        total += Math.max(0, now - last - workerData.interval);
        last = now;
        return total;
      };
    }
  })();
  let waits = [];
  for (let before = waitedSoFar(), told = Date.now(); ; ) {
    Atomics.wait(nothing, 0, 0, workerData.interval);
    const waited = waitedSoFar();
    const now = Date.now();
    if (waited > before) waits.push(now, waited - before);
    before = waited;
    if (now - told < 500) continue;
    parentPort.postMessage(waits);
    waits = [];
    told = now;
  }`;

/** Starts the witness of a process; whoever calls this calls `stop`. */
export function startWitness(pid: number): MachineWitness {
  const ends: number[] = [];
  const lengths: number[] = [];
  const worker = new Worker(thread, { eval: true, workerData: { pid, interval } });
  worker.on('error', () => undefined); // The process has ended; what was told before stays.
  worker.on('message', (waits: number[]) => {
    for (let i = 0; i < waits.length; i += 2) {
      ends.push(waits[i] as number);
      lengths.push(waits[i + 1] as number);
    }
  });

  /** The first wait that ended at a time or later. */
  function firstSince(time: number): number {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] as number) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  return {
    heldUpMs({ second, ms }) {
      const from = second * 1000 - ms;
      const to = (second + 1) * 1000 + interval;
      let most = 0;
      let sum = 0;
      for (let i = firstSince(from), first = i; i < ends.length && (ends[i] as number) <= to; i++) {
        sum += lengths[i] as number;
        for (; (ends[first] as number) < (ends[i] as number) - ms - interval; first++)
          sum -= lengths[first] as number;
        most = Math.max(most, sum);
      }
      return most;
    },
    longestMs(from, to) {
      let longest = 0;
      for (let i = firstSince(from); i < ends.length && (ends[i] as number) <= to; i++)
        longest = Math.max(longest, lengths[i] as number);
      return longest;
    },
    async stop() {
      await worker.terminate();
    },
  };
}
