// One and ten thousand clients that wait for a publication on one process. Out: how long after it each has its answer,
// what waiting costs, and how long other readers wait meanwhile.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cpuMicros } from '../../bench/process-usage.ts';
import { percentile } from '../../bench/statistics.ts';
import { createClient } from '../../client/client.ts';
import { createApiKey } from '../../shared/api-keys.ts';
import { type Product, products as productCollection } from '../../shared/collections/product.ts';
import { connectForListening, connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { importRecords } from '../support/importing.ts';
import { productKeys } from '../support/keys.ts';
import { startMedref } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { startTestRedis } from '../support/redis-server.ts';
import { closedPort } from '../support/upstream-server.ts';
import { send } from '../support/wire.ts';
import { type Finding, inDigits } from './reliability-page.ts';
import type { FollowOrder, Told } from './waiting-clients.ts';

/** A list, and how many of its records are others with each publication. */
const size = 5_000;
const changedEach = 250;

/** How many wait, and how often something is published for them. */
const crowds = [
  { clients: 1, rounds: 100 },
  { clients: 10_000, rounds: 10 },
];

/** For how long waiting is watched, in ms. */
const watchMs = 10_000;

/** All are answered within a second of a publication, and other readers wait no longer than this for a turn, in ms. */
const allowed = { answerMs: 1_000, readerMs: 250 };

const text = `Clients wait for a publication on one API process, each on a connection of its own, in another process on the same machine, and asks again at once. ${inDigits(changedEach)} of
${inDigits(size)} products are others each time; each client takes the first page of the changes as gzip. The time is counted from
the announcement of the publication by Redis to the last byte of an answer, and includes what the clients take of the two
cores. All must be answered within ${inDigits(allowed.answerMs)} ms. A reader asks for one record every 5 ms meanwhile. Beside them a
mirror of the client library waits, in a third process: it has a step when all changes have come, and their digest was proven.`;

/** Publishes while clients wait. */
export async function proveWaiting(say: (progress: string) => void): Promise<Finding> {
  const server = await startTestRedis();
  const redis = await connectForWriting(server.url);
  const { key } = await createApiKey(redis, 'medref', { client: 'waiting', expiresAt: null, rate: null });
  const [port, adminPort] = [await closedPort(), await closedPort()];
  const list = new ChangingList(server.url);
  await list.publish();
  const settings = {
    REDIS_URL: server.url,
    API_PORT: `${port}`,
    ADMIN_PORT: `${adminPort}`,
    NODE_OPTIONS: process.env['PROF'] ?? '',
  };
  const api = startMedref(['serve'], settings);
  await api.line(/answers/);
  const clients = startClients([String(port), key, server.url]);
  const mirror = await Mirror.start({ baseUrl: `http://127.0.0.1:${port}`, key }, server.url);
  try {
    const service = { redis, list, clients, mirror, adminPort, pid: api.process.pid as number };
    const asked = { origin: `http://127.0.0.1:${port}`, port, key };
    const found = [];
    for (const crowd of crowds) {
      found.push(await measure(crowd, { ...service, asked }, say));
      say(`${crowd.clients} waiting: ${JSON.stringify(found.at(-1))}`);
    }
    return findingOf(found);
  } finally {
    mirror.stop();
    clients.kill('SIGKILL');
    api.process.kill('SIGTERM');
    await api.ended;
    redis.disconnect();
    await server.stop();
  }
}

/** A list that is published again and again, each time with other records. */
class ChangingList {
  readonly #redisUrl: string;
  #records: Product[] = products(size);
  #published = 0;

  constructor(redisUrl: string) {
    this.#redisUrl = redisUrl;
  }

  /** @returns the number of the version */
  async publish(): Promise<number> {
    this.#published += 1;
    this.#records = this.#records.map((it, n) =>
      n < changedEach ? product(it.product.id, { drugform: { id: 1, name: `FORM ${this.#published}` } }) : it,
    );
    const { outcome, reason, version } = await importRecords(this.#records, productCollection, {
      redisUrl: this.#redisUrl,
    });
    if (outcome !== 'published') throw new Error(`An import was ${outcome}: ${reason}`);
    return version as number;
  }
}

/** A mirror of the client library, and when it had each version. */
class Mirror {
  readonly #ending = new AbortController();
  readonly #hadAt = new Map<number, number>();
  readonly #listener: Redis;
  #announcedAt = 0;

  /** Waits until it has its snapshot. */
  static async start(options: { baseUrl: string; key: string }, redisUrl: string): Promise<Mirror> {
    const mirror = new Mirror(connectForListening(redisUrl));
    mirror.#listener.on('message', () => {
      mirror.#announcedAt = performance.now();
    });
    await mirror.#listener.subscribe(productKeys.announcements);
    const { signal } = mirror.#ending;
    const steps = createClient(options).products.mirror({ signal });
    await steps.next();
    void mirror.#follow(steps);
    return mirror;
  }

  private constructor(listener: Redis) {
    this.#listener = listener;
  }

  /** Waits until it has a version. @returns for how long after the announcement it had not, in ms */
  async lag(version: number): Promise<number> {
    for (const deadline = Date.now() + 60_000; !this.#hadAt.has(version); await sleep(5))
      if (Date.now() > deadline) throw new Error(`The mirror does not have version ${version}.`);
    return (this.#hadAt.get(version) as number) - this.#announcedAt;
  }

  stop(): void {
    this.#ending.abort();
    this.#listener.disconnect();
  }

  async #follow(steps: AsyncIterable<{ readonly version: number; readonly kind: string }>): Promise<void> {
    for await (const { version, kind } of steps)
      if (kind === 'changes') this.#hadAt.set(version, performance.now());
  }
}

interface Service {
  readonly redis: Redis;
  readonly mirror: Mirror;
  readonly list: ChangingList;
  readonly clients: ChildProcess;
  readonly adminPort: number;
  readonly pid: number;
  readonly asked: { readonly origin: string; readonly port: number; readonly key: string };
}

interface Measured {
  readonly clients: number;
  readonly rounds: number;
  readonly p50: number;
  readonly p99: number;
  readonly last: number;
  /** From the announcement until a mirror had the step, in ms. */
  readonly mirror: { readonly p50: number; readonly p99: number; readonly last: number };
  /** How much more memory the process holds than before they came, for each of them, in KB. */
  readonly kilobytesEach: number;
  /** Of one core, while they wait, in percent. */
  readonly cpuPercent: number;
  /** Commands of Redis, while they wait, each second; and for a publication, all together. */
  readonly commandsWaiting: number;
  readonly commandsAnswering: number;
  readonly readerMs: number;
  /** Answers that were not 200, by their status. */
  readonly others: Record<string, number>;
}

async function measure(
  { clients, rounds }: (typeof crowds)[number],
  service: Service,
  say: (progress: string) => void,
): Promise<Measured> {
  const { redis, list, pid } = service;
  const memoryBefore = (await metrics(service)).memory;
  service.clients.send({ clients, since: await liveVersion(service) } satisfies FollowOrder);
  await allWaiting(service, clients + 1);
  const [cpu, commandsBefore] = [cpuMicros(pid) ?? 0, await commandCount(redis)];
  await sleep(watchMs);
  const cpuPercent = (((cpuMicros(pid) ?? 0) - cpu) / 1_000 / watchMs) * 100;
  const commandsWaiting = ((await commandCount(redis)) - commandsBefore) / (watchMs / 1_000);
  const kilobytesEach = ((await metrics(service)).memory - memoryBefore) / clients / 1_000;
  const [ms, mirrorMs]: [number[], number[]] = [[], []];
  const others: Record<string, number> = {};
  let [commandsAnswering, readerMs] = [0, 0];
  for (let round = 1; round <= rounds; round += 1) {
    const allTold = once(service.clients, 'message');
    const reader = readOn(service);
    const version = await list.publish();
    const commands = await commandCount(redis);
    const [told] = (await allTold) as [Told];
    commandsAnswering = Math.max(commandsAnswering, (await commandCount(redis)) - commands);
    readerMs = Math.max(readerMs, await reader.stop());
    ms.push(...told.ms);
    mirrorMs.push(await service.mirror.lag(version));
    for (const [status, count] of Object.entries(told.others)) others[status] = (others[status] ?? 0) + count;
    say(`${clients} waiting, round ${round}: the last after ${Math.max(...told.ms).toFixed(1)} ms`);
    await allWaiting(service, clients + 1);
  }
  return {
    ...{ clients, rounds, ...spread(ms), mirror: spread(mirrorMs) },
    ...{ kilobytesEach, cpuPercent, commandsWaiting, commandsAnswering, readerMs, others },
  };
}

function spread(ms: readonly number[]): { p50: number; p99: number; last: number } {
  const sorted = Float64Array.from(ms).sort();
  const last = sorted.at(-1) as number;
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), last };
}

function findingOf(found: readonly Measured[]): Finding {
  const faults = found.flatMap(({ clients, last, mirror, others, readerMs }) => [
    ...(mirror.last <= allowed.answerMs
      ? []
      : [`A mirror beside ${clients} had a step after ${mirror.last} ms.`]),
    ...(Object.keys(others).length === 0 ? [] : [`There were other answers: ${JSON.stringify(others)}.`]),
    ...(last <= allowed.answerMs ? [] : [`The last of ${clients} was answered after ${last} ms.`]),
    ...(readerMs <= allowed.readerMs
      ? []
      : [`A reader waited ${readerMs} ms while ${clients} were answered.`]),
  ]);
  return {
    text,
    tables: [
      {
        head: ['Waiting beside a mirror', 'It has a step, p50, ms', 'p99, ms', 'Longest, ms'],
        rows: found.map(({ clients, mirror }) => [
          inDigits(clients),
          ...[mirror.p50, mirror.p99, mirror.last].map((it) => inDigits(it, 1)),
        ]),
      },
      {
        head: ['Waiting', 'Publications', 'p50, ms', 'p99, ms', 'Last, ms', 'A reader waited at most, ms'],
        rows: found.map((it) => [
          ...[
            inDigits(it.clients),
            it.rounds,
            inDigits(it.p50, 1),
            inDigits(it.p99, 1),
            inDigits(it.last, 1),
          ],
          inDigits(it.readerMs, 1),
        ]),
      },
      {
        head: [
          ...['Waiting', 'Memory of the process, each, KB', 'CPU while they wait, of a core'],
          ...[
            'Redis commands a second while they wait',
            'Redis commands from a publication to the last answer',
          ],
        ],
        rows: found.map((it) => [
          ...[inDigits(it.clients), it.clients === 1 ? '–' : inDigits(it.kilobytesEach, 1)], // Of one, it is that of all else.
          `${inDigits(it.cpuPercent, 1)} %`,
          ...[inDigits(it.commandsWaiting, 1), inDigits(it.commandsAnswering)],
        ]),
      },
    ],
    faults,
  };
}

function startClients(args: readonly string[]): ChildProcess {
  const entry = fileURLToPath(new URL('waiting-clients.ts', import.meta.url));
  return fork(entry, args, { execArgv: ['--import', 'tsx'] });
}

/** Waits until all clients wait again, and no longer than a minute. */
async function allWaiting(service: Service, clients: number): Promise<void> {
  for (const deadline = Date.now() + 60_000; (await metrics(service)).waiting < clients; await sleep(1_000))
    if (Date.now() > deadline) throw new Error('The clients do not all wait.');
}

async function liveVersion({ asked }: Service): Promise<number> {
  return Number((await send(asked, '/products?per-page=1')).headers['medref-version']);
}

/** What the process tells of itself. */
async function metrics({ adminPort }: Service): Promise<{ waiting: number; memory: number }> {
  const told = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
  const figure = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(told)?.[1]);
  return { waiting: figure('medref_waiting_requests'), memory: figure('process_resident_memory_bytes') };
}

async function commandCount(redis: Redis): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1]);
}

/** A reader that goes on until it is stopped, and then tells the longest that it waited, in ms. */
function readOn({ asked }: Service): { stop(): Promise<number> } {
  let isOver = false;
  const reading = (async () => {
    let longest = 0;
    while (!isOver) {
      const from = performance.now();
      const { status } = await send(asked, '/products/1');
      if (status !== 200) throw new Error(`A reader was answered ${status}.`);
      longest = Math.max(longest, performance.now() - from);
      await sleep(5);
    }
    return longest;
  })();
  reading.catch(() => undefined); // Whoever stops it is told: until then, nothing that was started is to be left behind.
  return {
    stop: () => {
      isOver = true;
      return reading;
    },
  };
}
