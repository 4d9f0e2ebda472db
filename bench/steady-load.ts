// Sends requests at a steady rate. Latency counts from when each request was due, not from when it was sent: a stalled server
// is charged for all requests that were due meanwhile (no coordinated omission).

import { Agent, get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadRequest } from './load.ts';

export interface SteadyLoad {
  readonly origin: string;
  readonly requests: readonly LoadRequest[];
  readonly perSecond: number;
}

/** Sends requests at a steady rate until a promise resolves. @returns the latencies in ms, sorted */
export async function steadyLoad(load: SteadyLoad, until: Promise<unknown>): Promise<Float64Array> {
  // Open loop: as many connections as necessary, without waiting for any.
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  const latencies: number[] = [];
  const failures: Error[] = [];
  const pending = new Set<Promise<unknown>>();
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  until.then(end, end);
  const startedAt = performance.now();
  const send = (nth: number): void => {
    const dueAt = startedAt + (nth * 1000) / load.perSecond;
    const request = load.requests[nth % load.requests.length] as LoadRequest;
    const answered = answer(load.origin, request, agent).then(
      () => latencies.push(performance.now() - dueAt),
      (error) => failures.push(error),
    );
    pending.add(answered);
    void answered.then(() => pending.delete(answered));
  };
  for (let sent = 0; !isOver && failures.length === 0; await sleep(1)) {
    for (const due = dueBy(performance.now() - startedAt, load.perSecond); sent < due; sent++) send(sent);
  }
  await Promise.all(pending);
  agent.destroy();
  await until;
  const [failure] = failures;
  if (failure !== undefined) throw failure;
  return Float64Array.from(latencies).sort();
}

/** Returns how many requests are due after some ms; the first one at once. */
export function dueBy(ms: number, perSecond: number): number {
  return Math.floor((ms * perSecond) / 1000) + 1;
}

async function answer(origin: string, { path, headers }: LoadRequest, agent: Agent): Promise<void> {
  const ask = () =>
    new Promise<IncomingMessage | 'closed'>((resolve, reject) => {
      const request = get(`${origin}${path}`, { headers, agent, timeout: 30_000 }, resolve);
      request.on('timeout', () => request.destroy(new Error(`${path} got no response within 30 s`)));
      request.on('error', (error: NodeJS.ErrnoException) =>
        // A server may close an idle connection while a request is on its way (RFC 9112, section 9.3.1).
        error.code === 'ECONNRESET' && request.reusedSocket ? resolve('closed') : reject(error),
      );
    });
  let response = await ask();
  while (response === 'closed') response = await ask();
  if (response.statusCode !== 200) throw new Error(`${path} got status ${response.statusCode}`);
  for await (const _chunk of response);
}
