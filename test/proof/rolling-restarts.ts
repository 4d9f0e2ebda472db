// Processes that serve are replaced one after the other while clients read: by SIGUSR2, and two commands behind nginx. Out: how
// many requests were answered, and how many failed; how soon all workers answer from a new version.

import { Agent, get, type IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApiKey } from '../../shared/api-keys.ts';
import { products as productCollection } from '../../shared/collections/product.ts';
import { collectionKeys } from '../../shared/keys.ts';
import { connectForListening, connectForWriting } from '../../shared/redis/connections.ts';
import { importRecords } from '../support/importing.ts';
import { type RunningCommand, startMedref } from '../support/medref.ts';
import { freePort, startProxy, whyNoNginx } from '../support/nginx.ts';
import { products } from '../support/records.ts';
import { startTestRedis } from '../support/redis-server.ts';
import { type Finding, inDigits } from './reliability-page.ts';

/** How often all processes are replaced, how many clients read meanwhile, and how often something is published. */
const rounds = 3;
const clients = 16;
const publications = 20;

/** Within what all workers answer from a new version, counted from its announcement, in ms. */
const agreeWithinMs = 100;

const text = `${inDigits(clients)} clients read pages and records, most of them on connections that they keep, while all processes are replaced
${inDigits(rounds)} times: the workers of one \`medref serve\` by SIGUSR2; and two commands behind nginx, with its file, one after the other by
SIGTERM and a start. Then one of two workers stands still (SIGSTOP) as it is to be replaced, and nobody reads. Every request must be answered with 200.
All workers must answer from a new version within ${inDigits(agreeWithinMs)} ms of its announcement.`;

type Row = readonly [what: string, requests: number, failures: number, seconds: number];

/** Restarts while clients read. */
export async function proveRestarts(say: (progress: string) => void): Promise<Finding> {
  const server = await startTestRedis();
  const redis = await connectForWriting(server.url);
  const { key } = await createApiKey(redis, 'medref', { client: 'restarts', expiresAt: null, rate: null });
  redis.disconnect();
  await importRecords(products(2_000), productCollection, { redisUrl: server.url });
  const running: RunningCommand[] = [];
  const serve = async (settings: Record<string, string>) => {
    const api = startMedref(['serve'], { REDIS_URL: server.url, LOG_LEVEL: 'info', ...settings });
    running.push(api);
    const [, origin = ''] = await api.line(/(http:\S+)/);
    return { api, origin, log: logOf(api) };
  };
  const stop = async (api: RunningCommand) => {
    api.process.kill('SIGTERM');
    await api.ended;
  };
  const rows: Row[] = [];
  const faults: string[] = [];
  let agreed: number[] = [];
  try {
    const one = await serve({ API_PORT: '0', WORKERS: '2' });
    rows.push(
      await whileReading('workers of one command, by SIGUSR2', readBy(one.origin, key), async () => {
        for (let round = 1; round <= rounds; round += 1) await replaceAll(one);
      }),
    );
    say(JSON.stringify(rows));
    agreed = await timesToAgree(one.origin, key, server.url);
    say(`agreed after ms: ${agreed.map(Math.round).join(' ')}`);
    const from = performance.now();
    await replaceAll(one, 'stands still');
    rows.push(['a worker that stands still', 0, 0, (performance.now() - from) / 1_000]);
    await stop(one.api);

    if (whyNoNginx === null) {
      const ports = [await freePort(), await freePort()] as const;
      let apis = [await serve({ API_PORT: `${ports[0]}` }), await serve({ API_PORT: `${ports[1]}` })];
      const proxy = await startProxy({ port: await freePort(), apiPort: ports[0], further: [ports[1]] });
      const read = async (path: string) => {
        const answer = await proxy.open(path, { headers: { authorization: `Bearer ${key}` } });
        for await (const _ of answer);
        return answer.statusCode ?? 0;
      };
      rows.push(
        await whileReading('two commands behind nginx', read, async () => {
          for (let round = 1; round <= rounds; round += 1) {
            for (const n of [0, 1] as const) {
              await stop((apis[n] as (typeof apis)[number]).api);
              apis = Object.assign([...apis], { [n]: await serve({ API_PORT: `${ports[n]}` }) });
              await sleep(1_100); // nginx passes it over until then.
            }
          }
        }),
      );
      say(JSON.stringify(rows));
      await proxy.stop();
    } else faults.push(`Nothing was tried behind nginx: ${whyNoNginx}.`);
  } finally {
    for (const { process } of running) process.kill('SIGKILL');
    await Promise.all(running.map(({ ended }) => ended));
    await server.stop();
  }
  for (const [what, , failures] of rows)
    if (failures > 0) faults.push(`${what}: ${failures} requests failed.`);
  const latest = Math.max(...agreed);
  if (!(latest <= agreeWithinMs))
    faults.push(`A worker answered from a new version after ${Math.round(latest)} ms.`);
  const sorted = agreed.sort((a, b) => a - b);
  return {
    text,
    tables: [
      {
        head: ['Replaced', 'Requests', 'Failed', 'Seconds'],
        rows: rows.map(([what, ...figures]) => [what, ...figures.map((it) => inDigits(it))]),
      },
      {
        head: ['Publications', 'Median until both workers answer from it, ms', 'Longest, ms'],
        rows: [[publications, inDigits(sorted[publications >> 1] ?? Number.NaN), inDigits(latest)]],
      },
    ],
    faults,
  };
}

interface Serving {
  readonly api: RunningCommand;
  readonly log: { text: string };
}

function logOf({ process }: RunningCommand): { text: string } {
  const log = { text: '' };
  process.stderr?.on('data', (chunk) => {
    log.text += chunk;
  });
  return log;
}

/** Has all workers replaced, and waits for that. @param how one of them behaves meanwhile */
async function replaceAll({ api, log }: Serving, how?: 'stands still'): Promise<void> {
  if (how) {
    const pids = [...log.text.matchAll(/"pid":(\d+),"address":"[^"]*","msg":"The API answers\."/g)];
    process.kill(Number(pids.at(-1)?.[1]), 'SIGSTOP');
  }
  log.text = '';
  api.process.kill('SIGUSR2');
  while (!log.text.includes('"Each process that serves was replaced."')) await sleep(20);
  if (how && !log.text.includes('so it is killed'))
    throw new Error('A worker that stood still was not killed.');
}

/** Sends one request, and reads the answer to its end. @returns its status */
type Read = (path: string) => Promise<number>;

/** Reads on kept connections, and each eighth time on one of its own. */
function readBy(origin: string, key: string): Read {
  const kept = new Agent({ keepAlive: true, maxSockets: clients });
  let asked = 0;
  return async (path) => {
    asked += 1;
    return (await ask(origin + path, key, asked % 8 === 0 ? false : kept)).status;
  };
}

function ask(url: string, key: string, agent: Agent | false) {
  return new Promise<{ status: number; headers: IncomingHttpHeaders }>((resolve, reject) => {
    const asked = get(url, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
      response
        .on('error', reject)
        .on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers }));
      response.resume();
    });
    asked.on('error', reject);
  });
}

async function whileReading(what: string, read: Read, act: () => Promise<void>): Promise<Row> {
  let [requests, failures, isOver] = [0, 0, false];
  const client = async (n: number) => {
    for (let i = n; !isOver; i += 1) {
      const status = await read(i % 3 === 0 ? '/products?page=2' : `/products/${1 + (i % 2_000)}`).catch(
        () => 0,
      );
      requests += 1;
      if (status !== 200) failures += 1;
      await sleep(1);
    }
  };
  const from = performance.now();
  const reading = Promise.all(Array.from({ length: clients }, (_, n) => client(n)));
  await act();
  isOver = true;
  await reading;
  return [what, requests, failures, (performance.now() - from) / 1_000];
}

/** How long after each announcement the last of two workers answers from the new version, in ms. */
async function timesToAgree(origin: string, key: string, redisUrl: string): Promise<number[]> {
  const listener = connectForListening(redisUrl);
  await listener.subscribe(collectionKeys('medref', productCollection).announcements);
  let announcedAt = 0;
  listener.on('message', () => {
    announcedAt = performance.now();
  });
  // Connections are dealt out in turn, so two of them lead to both workers.
  const agents = [1, 2].map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
  const workers = new Set<string>();
  const times: number[] = [];
  for (let n = 1; n <= publications; n += 1) {
    const { headers } = await ask(`${origin}/products/1`, key, agents[0] as Agent);
    const before = Number(headers['medref-version']);
    const firstAt = agents.map(async (agent) => {
      for (;;) {
        const { headers } = await ask(`${origin}/products/1`, key, agent);
        workers.add(String(headers['x-request-id']).slice(0, 12));
        if (Number(headers['medref-version']) > before) return performance.now();
        await sleep(1);
      }
    });
    await importRecords(products(2_000 + n), productCollection, { redisUrl });
    times.push(Math.max(...(await Promise.all(firstAt))) - announcedAt);
  }
  for (const agent of agents) agent.destroy();
  listener.disconnect();
  if (workers.size !== 2) throw new Error(`${workers.size} workers were asked, and not 2.`);
  return times;
}
