// Finds an unused loopback port for servers that need a fixed one, and waits until a server responds there.

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Child } from '../../demo/child.ts';

/** Below the range of outgoing connections, so that none takes the port before the server does. */
const range = { from: 20_000, to: 30_000 };
const patienceMs = 60_000;

/** Returns a port that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(range.from, range.to);
    const listener = createServer().listen(port, '127.0.0.1');
    try {
      await once(listener, 'listening');
      return port;
    } catch {
      // Taken: try another port.
    } finally {
      listener.close();
    }
  }
}

/** Waits until a server responds, with any status. */
export async function whenItAnswers(child: Child, address: string): Promise<void> {
  for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(50)) {
    if (child.process.exitCode !== null) break;
    const response = await fetch(address, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined);
    if (response !== undefined) return;
  }
  throw new Error(`A server did not answer on ${address}: ${child.output.stderr.trim()}`);
}
