// A key that asks for ten times its rate, of two and of four API processes, beside a key within its own. Out: what each got,
// and how long the second one waited, with the first one and without.

import { createApiKey } from '../../shared/api-keys.ts';
import { products as productCollection } from '../../shared/collections/product.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { importRecords } from '../support/importing.ts';
import { type RunningCommand, startMedref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { startTestRedis } from '../support/redis-server.ts';
import { startHostileClients } from './hostile-process.ts';
import { type Finding, inDigits } from './reliability-page.ts';
import { askSteadily, type Got, type SteadyLoad } from './steady-client.ts';

const rate = 50;
const records = 300;

/** How often each asks, a second. */
const greedyAsks = 10 * rate;
const modestAsks = rate / 2;

/** For how long, in s: first the second one alone, then both. */
const aloneFor = 30;
const bothFor = 60;

/** What a key may get too much or too little of its rate, in percent. */
const maxOff = 2;

/** What the p99 of the second key may be of that without the first, or how much more of ms, below which timers tell nothing. */
const maxFactor = 2;
const noiseMs = 2;

const text = `A key with a rate of ${rate}/s asks ${greedyAsks} times a second for ${bothFor} s, of each API process by turns. Beside it, a key with the
same rate asks ${modestAsks} times a second, from another process. The first has to get its rate ± ${maxOff} %, after the second's worth that it
may ask for at once; the second has to get all that it asks for, with a p99 of at most ${maxFactor} times that without the first, or ${noiseMs} ms more.`;

/** Proves it with two and with four processes. */
export async function proveRates(say: (progress: string) => void): Promise<Finding> {
  const server = await startTestRedis();
  const redis = await connectForWriting(server.url);
  const rows: (string | number)[][] = [];
  const faults: string[] = [];
  try {
    await importRecords(products(records), productCollection, { redisUrl: server.url });
    for (const processes of [2, 4]) {
      const { greedy, modest, alone } = await ask(redis, server.url, { processes, say });
      const perSecond = greedy.ok / bothFor;
      rows.push([
        ...[processes, inDigits(perSecond, 2), greedy.refused, modest.ok, modest.refused + modest.other],
        ...[alone, modest].map(({ p50, p99 }) => `${inDigits(p50, 1)}, ${inDigits(p99, 1)}`),
      ]);
      if (Math.abs(perSecond / rate - 1) > maxOff / 100)
        faults.push(`With ${processes} processes, a key of ${rate}/s got ${perSecond.toFixed(2)}/s.`);
      if (greedy.other + modest.other + modest.refused + alone.refused + alone.other > 0)
        faults.push(`With ${processes} processes, requests were refused or failed that had to be answered.`);
      if (modest.p99 > Math.max(alone.p99 * maxFactor, alone.p99 + noiseMs))
        faults.push(
          `With ${processes} processes, the p99 of the second key was ${modest.p99.toFixed(1)} ms, and ${alone.p99.toFixed(1)} ms alone.`,
        );
    }
  } finally {
    redis.disconnect();
    await server.stop();
  }
  const head = [
    ...['API processes', 'First key: got a second', 'Refused', 'Second key: got', 'Not'],
    ...['p50, p99 alone, ms', 'p50, p99 beside it, ms'],
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
    const of = (key: string, perSecond: number, seconds: number): SteadyLoad => ({
      ...{ origins, key, perSecond, seconds, lastId: records },
    });
    const [first, second] = [await makeKey(), await makeKey()];
    say(`${processes} processes, the second key alone`);
    await askSteadily(of(second, modestAsks, 4));
    const alone = await askSteadily(of(second, modestAsks, aloneFor));
    say(`${processes} processes, both keys`);
    await askSteadily(of(first, greedyAsks, 2)); // Its second's worth at once is gone after that.
    const clients = startHostileClients({ kind: 'greedy', ...of(first, greedyAsks, bothFor) });
    try {
      const [greedy, modest] = await Promise.all([
        clients.told<Got>(),
        askSteadily(of(second, modestAsks, bothFor)),
      ]);
      return { greedy, modest, alone };
    } finally {
      await clients.stop();
    }
  } finally {
    for (const it of running) it.process.kill('SIGTERM');
    await Promise.all(running.map((it) => it.ended));
  }
}
