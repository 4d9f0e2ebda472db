// A thread that only sleeps, a millisecond at a time. Out: for how long the machine kept it from going on, second by
// second: what befalls a thread that wants nothing befalls Redis too, and is not Redis' doing.

import { Worker } from 'node:worker_threads';

export interface MachineWitness {
  /** The longest hold-up, in ms, around a second or from it to another one; both in Unix time. */
  heldUpMs(from: number, to?: number): number;
  stop(): Promise<void>;
}

const thread = `
  const { parentPort } = require('node:worker_threads');
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  for (let second = 0, longest = 0; ; ) {
    const start = performance.now();
    Atomics.wait(nothing, 0, 0, 1);
    longest = Math.max(longest, performance.now() - start - 1);
    const now = Math.floor(Date.now() / 1000);
    if (now === second) continue;
    parentPort.postMessage([second, longest]);
    second = now;
    longest = 0;
  }`;

/** Starts the witness; whoever calls this calls `stop`. */
export function startWitness(): MachineWitness {
  const longest = new Map<number, number>();
  const worker = new Worker(thread, { eval: true });
  worker.on('message', ([second, ms]: [number, number]) => longest.set(second, ms));
  return {
    heldUpMs(from, to = from) {
      let found = 0;
      for (let second = from - 1; second <= to + 1; second++) {
        found = Math.max(found, longest.get(second) ?? 0);
      }
      return found;
    },
    async stop() {
      await worker.terminate();
    },
  };
}
