// A chain of three services, each of which follows the one before, while their processes are killed at random. Out: whether
// all of them end with one content, and whether the last one ever had a content that the first one had not.

import { setTimeout as sleep } from 'node:timers/promises';
import { chance, pick, type Random, randomFor } from '../../demo/seeded-random.ts';
import { rollBack } from '../../importer/rollback.ts';
import { createApiKey } from '../../shared/api-keys.ts';
import { type Product, products as productCollection } from '../../shared/collections/product.ts';
import { collectionKeys } from '../../shared/keys.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { readKeptVersions, readLiveVersion } from '../../shared/versions.ts';
import { importRecords } from '../support/importing.ts';
import { type RunningCommand, startMedref } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { startTestRedis } from '../support/redis-server.ts';
import { closedPort } from '../support/upstream-server.ts';
import { send } from '../support/wire.ts';
import { type Finding, inDigits } from './reliability-page.ts';

const steps = 80;
const size = 2_000;

/** How long the chain may take to come to rest: a lock falls free after 30 s, a failed import is tried again after a minute. */
const restWithinMs = 240_000;

const names = ['first', 'second', 'third'] as const;

const text = `Three services in a chain: the second has the first one as its upstream, the third the second, by FOLLOW. The first one
publishes and rolls back at random, and one process after the other is killed by SIGKILL and started again: each of the three
APIs, and both that follow. Then the killing ends. The third may never have a content that the first has not had, and all of
them must end with the one of the first.`;

/** One service of the chain. */
interface Service {
  readonly name: string;
  readonly port: number;
  readonly key: string;
  /** What it runs, by what is started: `serve`, and `schedule` but for the first one. */
  readonly processes: Map<'serve' | 'schedule', RunningCommand>;
  readonly settings: Readonly<Record<string, string>>;
}

/** Kills and publishes at random. @param seed of all that is random */
export async function proveChain(seed: number, say: (progress: string) => void): Promise<Finding> {
  const random = randomFor(seed, 3, 0);
  const server = await startTestRedis();
  const redis = await connectForWriting(server.url);
  const counts = new Map<string, number>();
  const faults: string[] = [];
  const source = new Source(server.url, redis, random);
  await source.publish();
  const chain = await startChain(server.url, redis);
  try {
    for (let step = 1; step <= steps; step += 1) {
      const what = await takeStep(source, chain, random);
      counts.set(what, (counts.get(what) ?? 0) + 1);
      await sleep(random() * 1_500);
      const digest = await checksumOf(redis, 'third');
      if (digest !== null && !source.published.has(digest))
        faults.push(`After step ${step}, ${what}, the third has a content that the first never had.`);
      if (step % 10 === 0) say(`${step} steps`);
    }
    const from = performance.now();
    const rests = await atRest(redis, chain);
    const seconds = (performance.now() - from) / 1_000;
    if (!rests) faults.push(`The chain has not come to rest within ${restWithinMs / 1_000} s.`);
    counts.set('seconds from the last step until all three are the same', Math.round(seconds));
    for (const name of names) counts.set(`versions of the ${name}`, await versionsOf(redis, name));
  } finally {
    for (const { processes } of chain)
      for (const running of processes.values()) {
        running.process.kill('SIGKILL');
        await running.ended;
      }
    redis.disconnect();
    await server.stop();
  }
  return {
    text: `${text} The seed was ${seed}: \`npm run prove -- only=chain seed=${seed}\`. ${inDigits(faults.length)} differences.`,
    tables: [{ head: ['What', 'Times'], rows: [...counts] }],
    faults,
  };
}

/** What the first service publishes. */
class Source {
  /** Checksums of all that was published. */
  readonly published = new Set<string>();
  readonly #redisUrl: string;
  readonly #redis: Redis;
  readonly #random: Random;
  #records: Product[] = products(size);
  #changes = 0;

  constructor(redisUrl: string, redis: Redis, random: Random) {
    this.#redisUrl = redisUrl;
    this.#redis = redis;
    this.#random = random;
  }

  async publish(): Promise<void> {
    this.#changes += 1;
    this.#records = this.#records.map((it) =>
      chance(0.02, this.#random)
        ? product(it.product.id, { drugform: { id: 1, name: `FORM ${this.#changes}` } })
        : it,
    );
    const { outcome, reason } = await importRecords(this.#records, productCollection, {
      ...{ redisUrl: this.#redisUrl, keyPrefix: 'first', force: true },
    });
    if (outcome !== 'published') throw new Error(`The first one could not publish: ${outcome}, ${reason}`);
    this.published.add((await checksumOf(this.#redis, 'first')) as string);
  }

  async rollBack(): Promise<void> {
    const kept = await readKeptVersions(this.#redis, keysOf('first'));
    const to = pick(kept, this.#random).version;
    await rollBack(productCollection, { redis: this.#redis, keyPrefix: 'first', to, maxNumberWaitMs: 0 });
  }
}

async function startChain(redisUrl: string, redis: Redis): Promise<Service[]> {
  const chain: Service[] = [];
  for (const name of names) {
    const before = chain.at(-1);
    const port = await closedPort();
    const { key } = await createApiKey(redis, name, { client: 'chain', expiresAt: null, rate: null });
    const settings = {
      ...{ REDIS_URL: redisUrl, KEY_PREFIX: name, API_PORT: String(port), LOG_LEVEL: 'error' },
      ...{ FOLLOW: 'true', IMPORT_CRON: '0 3 31 12 *', MAX_CHANGE_PERCENT: '100' },
      ...(before && { PRODUCTS_URL: `http://127.0.0.1:${before.port}/products`, UPSTREAM_TOKEN: before.key }),
    };
    const service: Service = { name, port, key, settings, processes: new Map() };
    await start(service, 'serve');
    if (before) await start(service, 'schedule');
    chain.push(service);
  }
  return chain;
}

async function start({ processes, settings }: Service, command: 'serve' | 'schedule'): Promise<void> {
  const running = startMedref([command], settings);
  processes.set(command, running);
  if (command === 'serve') await running.line(/answers/);
}

async function takeStep(source: Source, chain: readonly Service[], random: Random): Promise<string> {
  const dice = random();
  if (dice < 0.4) {
    await source.publish();
    return 'publication';
  }
  if (dice < 0.45) {
    await source.rollBack();
    return 'rollback';
  }
  const service = pick(chain, random);
  const command = service.processes.has('schedule') && chance(0.5, random) ? 'schedule' : 'serve';
  const running = service.processes.get(command) as RunningCommand;
  running.process.kill('SIGKILL');
  await running.ended;
  await sleep(random() * 500);
  await start(service, command);
  return `kill of what ${command === 'serve' ? 'serves' : 'follows'}`;
}

/** Waits until all have the content of the first, in Redis and as they answer. @returns whether they do in time */
async function atRest(redis: Redis, chain: readonly Service[]): Promise<boolean> {
  for (const deadline = Date.now() + restWithinMs; Date.now() < deadline; await sleep(200)) {
    const stored = await Promise.all(names.map((name) => checksumOf(redis, name)));
    const digests = await Promise.all(chain.map(digestOf));
    if (new Set(stored).size === 1 && new Set(digests).size === 1) return true;
  }
  return false;
}

async function digestOf({ port, key }: Service): Promise<string | undefined> {
  const answer = await send(
    { origin: `http://127.0.0.1:${port}`, port, key },
    '/products/versions?per-page=1',
  );
  return String(answer.headers['medref-digest']);
}

function keysOf(name: string) {
  return collectionKeys(name, productCollection);
}

async function checksumOf(redis: Redis, name: string): Promise<string | null> {
  return (await readLiveVersion(redis, keysOf(name)))?.checksum ?? null;
}

async function versionsOf(redis: Redis, name: string): Promise<number> {
  return redis.zcard(keysOf(name).changeSets);
}
