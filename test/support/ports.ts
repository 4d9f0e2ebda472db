// In: nothing. Out: a loopback port that nobody listens on, for servers that must be told one, and when they answer there.

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Child } from '../../demo/child.ts';

/** Below the range of outgoing connections, so that none takes it before the server does. */
const range = { from: 20_000, to: 30_000 };
const patienceMs = 60_000;

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(range.from, range.to);
    const listener = createServer().listen(port, '127.0.0.1');
    try {
      await once(listener, 'listening');
      return port;
    } catch {
      // Taken: another one.
    } finally {
      listener.close();
    }
  }
}

/** Waits until a server answers, whatever it answers. */
export async function whenItAnswers(child: Child, address: string): Promise<void> {
  for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(50)) {
    if (child.process.exitCode !== null) break;
    const answer = await fetch(address, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined);
    if (answer !== undefined) return;
  }
  throw new Error(`A server did not answer on ${address}: ${child.output.stderr.trim()}`);
}
