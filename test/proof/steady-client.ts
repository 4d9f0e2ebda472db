// A client that asks at a steady rate, whatever becomes of it. In: where, with which key, how often. Out: what it got, and after
// how long.

import { Agent, get, type RequestOptions } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../../bench/statistics.ts';

/** What a client asks. */
export interface SteadyLoad {
  /** Each of them is asked in turn. */
  readonly origins: readonly string[];
  readonly key: string;
  readonly perSecond: number;
  readonly seconds: number;
  /** The records that it asks for, one after the other, have ids from 1 to this. */
  readonly lastId: number;
}

/** What it got. */
export interface Got {
  readonly ok: number;
  readonly refused: number;
  readonly other: number;
  /** From when a request was due to the end of its answer, in ms. */
  readonly p50: number;
  readonly p99: number;
}

/** Asks for one record after the other; no request waits for the answer to another one. */
export async function askSteadily({ origins, key, perSecond, seconds, lastId }: SteadyLoad): Promise<Got> {
  const headers = { authorization: `Bearer ${key}` };
  const agent = new Agent({ keepAlive: true });
  const [statuses, times]: [number[], number[]] = [[], []];
  const asked: Promise<void>[] = [];
  const from = performance.now();
  for (let n = 0; n < perSecond * seconds; n += 1) {
    const due = from + (n * 1_000) / perSecond;
    if (due > performance.now()) await sleep(due - performance.now());
    // A timer is up to a millisecond late, which is not the service's doing; a busy process of the service's is.
    const sentAt = performance.now();
    const url = `${origins[n % origins.length]}/products/${1 + (n % lastId)}`;
    asked.push(
      statusOf(url, { headers, agent }).then((status) => {
        statuses.push(status);
        times.push(performance.now() - sentAt);
      }),
    );
  }
  await Promise.all(asked);
  agent.destroy();
  const count = (status: number) => statuses.filter((it) => it === status).length;
  const [ok, refused] = [count(200), count(429)];
  const sorted = Float64Array.from(times).sort();
  return {
    ...{ ok, refused, other: statuses.length - ok - refused },
    ...{ p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) },
  };
}

/** The status of an answer, read to its end; 0 where there is none. */
function statusOf(url: string, options: RequestOptions): Promise<number> {
  return new Promise((resolve) => {
    const asked = get(url, options, (answer) => {
      answer.once('end', () => resolve(answer.statusCode ?? 0)).once('error', () => resolve(0));
      answer.resume();
    });
    asked.once('error', () => resolve(0));
  });
}
