// A good client among a thousand slow ones, and among many that send keys which do not exist. Out: what it got, and how long it
// waited, with them and without.

import { cpuMicros } from '../../bench/process-usage.ts';
import { createApiKey } from '../../shared/api-keys.ts';
import { products as productCollection } from '../../shared/collections/product.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { importRecords } from '../support/importing.ts';
import { startMedref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { startTestRedis } from '../support/redis-server.ts';
import { type HostileClients, startHostileClients } from './hostile-process.ts';
import { type Finding, inDigits } from './reliability-page.ts';
import { askSteadily, type Got } from './steady-client.ts';

const records = 2_000;
const perSecond = 100;
const seconds = 20;

const slowClients = 1_000;
const addresses = 50;
const connections = 4;

/** What the p99 of the good client may be of that without the others, or how much more of ms, below which timers tell nothing. */
const maxFactor = 2;
const noiseMs = 2;

const text = `A good client asks one API process for a record ${perSecond} times a second, for ${seconds} s: alone; beside ${inDigits(slowClients)} slow clients with a
good key, of which half send their request a byte at a time, and half take their answers ${inDigits(1_024)} bytes at a time; and beside these and a flood of
random keys from ${addresses} addresses with ${connections} connections each, which ask again as soon as they are answered. None of its requests may fail, and
its p99 be at most ${maxFactor} times that alone, or ${noiseMs} ms more.`;

/** Proves it on one process. */
export async function proveCrowd(say: (progress: string) => void): Promise<Finding> {
  const server = await startTestRedis();
  const redis = await connectForWriting(server.url);
  const crowd: HostileClients[] = [];
  await importRecords(products(records), productCollection, { redisUrl: server.url });
  const makeKey = async (client: string) =>
    (await createApiKey(redis, 'medref', { client, expiresAt: null, rate: null })).key;
  const [key, slowKey] = [await makeKey('good'), await makeKey('slow')];
  const api = startMedref(['serve', '--json'], { REDIS_URL: server.url, API_PORT: '0', ACCESS_LOG: 'off' });
  try {
    const origin = (await api.line(/"address":"([^"]+)"/))[1] as string;
    const port = Number(new URL(origin).port);
    const ask = async (beside: string) => {
      say(`the good client ${beside}`);
      const load = { origins: [origin], key, perSecond, lastId: records };
      await askSteadily({ ...load, seconds: 3 });
      const cpuBefore = cpuMicros(api.process.pid as number) ?? 0;
      const got = await askSteadily({ ...load, seconds });
      const cpu = (cpuMicros(api.process.pid as number) ?? 0) - cpuBefore;
      return { beside, ...got, cpuPercent: cpu / seconds / 10_000 };
    };
    const begin = async (clients: HostileClients) => {
      crowd.push(clients);
      await clients.told();
      return clients;
    };
    const alone = await ask('alone');
    await begin(startHostileClients({ kind: 'slow', port, key: slowKey, clients: slowClients }));
    const slow = await ask('beside the slow ones');
    const flood = await begin(startHostileClients({ kind: 'flood', port, addresses, connections }));
    const before = await flood.ask<Record<string, number>>();
    const flooded = await ask('beside these and the flood');
    const statuses = await flood.ask<Record<string, number>>();
    const refused = Object.keys(statuses).map((status) => [
      status,
      ((statuses[status] ?? 0) - (before[status] ?? 0)) / (seconds + 3),
    ]) as [string, number][];
    return findingOf([alone, slow, flooded], refused);
  } finally {
    for (const clients of crowd) await clients.stop();
    api.process.kill('SIGTERM');
    await api.ended;
    redis.disconnect();
    await server.stop();
  }
}

type Asked = Got & { readonly beside: string; readonly cpuPercent: number };

function findingOf(found: readonly Asked[], refused: readonly (readonly [string, number])[]): Finding {
  const alone = (found[0] as Asked).p99;
  const faults = found.flatMap(({ beside, refused: tooMany, other, p99 }) => [
    ...(tooMany + other > 0 ? [`${tooMany + other} requests of the good client failed ${beside}.`] : []),
    ...(p99 > Math.max(alone * maxFactor, alone + noiseMs)
      ? [`The p99 of the good client was ${p99.toFixed(1)} ms ${beside}, and ${alone.toFixed(1)} ms alone.`]
      : []),
  ]);
  if (refused.some(([status]) => !['401', '429'].includes(status)))
    faults.push(`The flood was answered with ${refused.map(([status]) => status).join()}.`);
  return {
    text: `${text} The flood got ${refused.map(([status, rate]) => `${status} ${inDigits(rate)} times`).join(' and ')} a second.`,
    tables: [
      {
        head: ['The good client', 'Got', 'Not', 'p50, ms', 'p99, ms', 'CPU of the process, of a core'],
        rows: found.map((it) => [
          ...[it.beside, it.ok, it.refused + it.other],
          ...[inDigits(it.p50, 1), inDigits(it.p99, 1), `${inDigits(it.cpuPercent)} %`],
        ]),
      },
    ],
    faults,
  };
}
