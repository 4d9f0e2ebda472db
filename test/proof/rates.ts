// A key that asks for ten times its rate, of two and of four API processes, beside a key within its own. Out: what each got,
// and how long the second one waited, with the first one and without.

import { Agent, get, type RequestOptions } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApiKey } from '../../shared/api-keys.ts';
import { products as productCollection } from '../../shared/collections/product.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { importRecords } from '../support/importing.ts';
import { type RunningCommand, startMedref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { startTestRedis } from '../support/redis-server.ts';
import type { Finding } from './reliability-page.ts';

const rate = 20;
const seconds = 60;

/** What a key may get too much or too little of its rate, in percent. */
const maxOff = 2;

/** What the p99 of the second key may be of that without the first, and what is lost in the noise of a busy machine, in ms. */
const maxFactor = 2;
const noiseMs = 10;

const text = `A key with a rate of ${rate}/s asks ${10 * rate} times a second for ${seconds} s, of each API process by turns. Beside it, a key with the
same rate asks ${rate / 2} times a second. The first has to get its rate ± ${maxOff} %, after the second's worth that it may ask for at once;
the second has to get all that it asks for, with a p99 of at most ${maxFactor} times that without the first, or ${noiseMs} ms more.`;

/** What a key got. */
interface Got {
  readonly ok: number;
  readonly refused: number;
  readonly other: number;
  readonly p99: number;
}

/** Proves it with two and with four processes. */
export async function proveRates(say: (progress: string) => void): Promise<Finding> {
  const server = await startTestRedis();
  const redis = await connectForWriting(server.url);
  const rows: (string | number)[][] = [];
  const faults: string[] = [];
  try {
    await importRecords(products(300), productCollection, { redisUrl: server.url });
    for (const processes of [2, 4]) {
      const { greedy, modest, alone } = await ask(redis, server.url, { processes, say });
      const perSecond = greedy.ok / seconds;
      rows.push([processes, perSecond.toFixed(2), greedy.refused, modest.ok, modest.refused + modest.other]);
      rows[rows.length - 1]?.push(alone.p99.toFixed(1), modest.p99.toFixed(1));
      if (Math.abs(perSecond / rate - 1) > maxOff / 100)
        faults.push(`With ${processes} processes, a key of ${rate}/s got ${perSecond.toFixed(2)}/s.`);
      if (greedy.other + modest.other + modest.refused + alone.refused + alone.other > 0)
        faults.push(`With ${processes} processes, requests were refused or failed that had to be answered.`);
      if (modest.p99 > Math.max(alone.p99 * maxFactor, alone.p99 + noiseMs))
        faults.push(
          `With ${processes} processes, the p99 of the second key was ${modest.p99.toFixed(1)} ms.`,
        );
    }
  } finally {
    redis.disconnect();
    await server.stop();
  }
  const head = [
    'Processes',
    'Got a second',
    'Refused',
    'Second key: got',
    'Not',
    'p99 alone, ms',
    'p99 beside it, ms',
  ];
  return { text, tables: [{ head, rows }], faults };
}

async function ask(
  redis: Redis,
  redisUrl: string,
  { processes, say }: { readonly processes: number; readonly say: (progress: string) => void },
): Promise<{ greedy: Got; modest: Got; alone: Got }> {
  const running: RunningCommand[] = [];
  try {
    for (let n = 0; n < processes; n += 1)
      running.push(startMedref(['serve', '--json'], { REDIS_URL: redisUrl, API_PORT: '0' }));
    const origins = await Promise.all(
      running.map(async (it) => (await it.line(/"address":"([^"]+)"/))[1] as string),
    );
    const makeKey = async () =>
      (await createApiKey(redis, 'medref', { client: 'proof', expiresAt: null, rate: `${rate}/s` })).key;
    const [first, second] = [await makeKey(), await makeKey()];
    say(`${processes} processes, the second key alone`);
    await load(origins, second, { perSecond: rate / 2, seconds: 2 });
    const alone = await load(origins, second, { perSecond: rate / 2, seconds: seconds / 4 });
    say(`${processes} processes, both keys`);
    await load(origins, first, { perSecond: 10 * rate, seconds: 2 }); // Its second's worth at once is gone after that.
    const [greedy, modest] = await Promise.all([
      load(origins, first, { perSecond: 10 * rate, seconds }),
      load(origins, second, { perSecond: rate / 2, seconds }),
    ]);
    return { greedy, modest, alone };
  } finally {
    for (const it of running) it.process.kill('SIGTERM');
    await Promise.all(running.map((it) => it.ended));
  }
}

/** Asks at a steady rate, of each process by turns. */
async function load(
  origins: readonly string[],
  key: string,
  { perSecond, seconds: lasts }: { readonly perSecond: number; readonly seconds: number },
): Promise<Got> {
  const headers = { authorization: `Bearer ${key}` };
  const agent = new Agent({ keepAlive: true });
  const [statuses, times]: [number[], number[]] = [[], []];
  const asked: Promise<void>[] = [];
  const from = performance.now();
  for (let n = 0; n < perSecond * lasts; n += 1) {
    const due = from + (n * 1_000) / perSecond;
    if (due > performance.now()) await sleep(due - performance.now());
    const sentAt = performance.now();
    const status = statusOf(`${origins[n % origins.length]}/products/${1 + (n % 300)}`, { headers, agent });
    asked.push(
      status.then((it) => {
        statuses.push(it);
        times.push(performance.now() - sentAt);
      }),
    );
  }
  await Promise.all(asked);
  agent.destroy();
  const count = (status: number) => statuses.filter((it) => it === status).length;
  const [ok, refused] = [count(200), count(429)];
  times.sort((a, b) => a - b);
  return {
    ok,
    refused,
    other: statuses.length - ok - refused,
    p99: times[Math.floor(times.length * 0.99)] ?? 0,
  };
}

/** The status of an answer, read to its end; 0 where there is none. */
function statusOf(url: string, options: RequestOptions): Promise<number> {
  return new Promise((resolve) => {
    get(url, options, (answer) => answer.resume().once('end', () => resolve(answer.statusCode ?? 0))).once(
      'error',
      () => resolve(0),
    );
  });
}
