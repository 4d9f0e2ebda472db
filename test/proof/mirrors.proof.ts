// Mirrors that follow a service through random imports, rollbacks, refusals, losses, restores, damage and repair. Each verifies
// its copy by the digests that it gets. The test also compares the copy with the list that was imported as that version.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { chance, pick, type Random, randomFor, shuffled } from '../../demo/seeded-random.ts';
import { type Company, companies as companyCollection } from '../../shared/collections/companies.ts';
import type { Collection } from '../../shared/collections/define.ts';
import type { Drug } from '../../shared/collections/products.ts';
import { type Product, products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { companyKeys, productKeys } from '../support/keys.ts';
import { medref } from '../support/medref.ts';
import { companies, company, product, products } from '../support/records.ts';
import { proofSetUp, startTestRedis } from '../support/redis-server.ts';
import { Mirror, setOf } from './mirror.ts';
import { isFull, note, noteCounts, seed } from './proof.ts';

/** Sequences run in parallel, each with its own Redis and API: for most of a step, it waits for the second of a number to end. */
const sequences = 5;
const steps = isFull ? 200 : 10;

describe('three mirrors of each collection, by changes, pages and NDJSON', function () {
  this.timeout(0);

  it(`equal their announced version through ${sequences * steps} random steps`, async () => {
    note(`SEED=${seed}`);
    const runs = await Promise.all(
      Array.from({ length: sequences }, (_, n) => runSequence(randomFor(seed, 1, n))),
    );
    const counts = new Map<string, number>();
    for (const run of runs)
      for (const [what, count] of run.counts) counts.set(what, (counts.get(what) ?? 0) + count);
    noteCounts(counts);
    expect(runs.flatMap(({ faults }) => faults).slice(0, 20), `SEED=${seed}`).to.deep.equal([]);
  });
});

interface Run {
  readonly counts: Map<string, number>;
  readonly faults: string[];
}

/** A service and its history. */
interface Sequence {
  readonly redis: Redis;
  readonly redisUrl: string;
  readonly random: Random;
  /** The set digests of the published lists, by collection and version. */
  readonly truth: Map<string, string>;
  products: readonly Product[];
  companies: readonly Company[];
  /** The saved key space of a backup; `null`: there is none. */
  saved: (readonly [name: string, dump: Buffer])[] | null;
  nextId: number;
}

async function runSequence(random: Random): Promise<Run> {
  const counts = new Map<string, number>();
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1);
  const faults: string[] = [];
  const server = await startTestRedis(proofSetUp());
  const redis = await connectForWriting(server.url);
  const it: Sequence = {
    ...{ redis, redisUrl: server.url, random, truth: new Map(), saved: null, nextId: 1_000 },
    ...{ products: products(260), companies: companies(30) },
  };
  const api = await startApi({ redisUrl: server.url });
  try {
    await publish(it, productCollection);
    await publish(it, companyCollection);
    const mirrors = startMirrors(api);
    for (let n = 1; n <= steps; n += 1) {
      const [name, take] = pick(weighted, random);
      try {
        await take(it);
        count(`step: ${name}`);
        await untilSeen(it, api);
        for (const { mirror, collection } of mirrors) await check(it, mirror, collection, count);
      } catch (error) {
        faults.push(`After step ${n}, ${name}: ${(error as Error).message}`);
      }
    }
  } finally {
    await api.stop();
    redis.disconnect();
    await server.stop();
  }
  return { counts, faults };
}

function startMirrors(api: TestApi) {
  const idOf: Record<string, (record: never) => number> = {
    products: (record: Product) => record.product.id,
    drugs: (record: Drug) => record.drug.id,
    companies: (record: Company) => record.id,
  };
  return Object.entries(idOf).flatMap(([collection, its]) =>
    (['changes', 'pages', 'lines'] as const).map((way) => ({
      ...{ collection, mirror: new Mirror(api, collection, its, way) },
    })),
  );
}

/** Waits until the API serves the versions that are live in Redis; fails after 1.5 s. */
async function untilSeen({ redis }: Sequence, api: TestApi): Promise<void> {
  const deadline = Date.now() + 1_500;
  for (;;) {
    const wanted = await Promise.all(
      [productKeys, companyKeys].map(async ({ live }) => JSON.parse((await redis.get(live)) ?? '{}').version),
    );
    const response = await api.get('/health/ready');
    const { versions } = response.json<{ data: { versions?: Record<string, number> } }>().data;
    if (versions && versions['products'] === wanted[0] && versions['companies'] === wanted[1]) break;
    if (Date.now() > deadline) throw new Error(`The API answers ${response.text}, and ${wanted} are live.`);
    await sleep(20);
  }
  await sleep(550); // A process notices within half a second that Redis was changed without it.
}

async function check(
  it: Sequence,
  mirror: Mirror,
  collection: string,
  count: (what: string) => void,
): Promise<void> {
  const step = await mirror.step();
  count(`mirror: ${step.outcome}`);
  if (step.outcome === 'unavailable') {
    const source = collection === 'companies' ? 'companies' : 'products';
    if ((await run(it, 'verify', source)).code !== 1)
      throw new Error(`${collection} are 503, and nothing of them is damaged.`);
    return;
  }
  const truth = it.truth.get(`${collection} ${step.version}`);
  if (truth !== step.set) throw new Error(`The copy of ${collection} is not version ${step.version}.`);
}

/** Imports the current list; a published version is added to the known digests. */
async function publish(it: Sequence, collection: Collection, options: object = {}): Promise<void> {
  const records = collection === productCollection ? it.products : it.companies;
  const report = await importRecords(records, collection, {
    ...{ redisUrl: it.redisUrl, force: true, maxNumberWaitMs: 10_000, ...options },
  });
  if (report.outcome === 'failed') throw new Error(`An import failed: ${report.reason}`);
  if (report.outcome === 'published') learn(it, collection, report.version as number, records);
}

function learn(it: Sequence, collection: Collection, version: number, records: readonly unknown[]): void {
  const remember = (name: string, its: readonly unknown[]) => {
    const digest = setOf(its.map((record) => JSON.stringify(record)));
    const key = `${name} ${version}`;
    const known = it.truth.get(key);
    if (known !== undefined && known !== digest)
      throw new Error(`The number ${key} was given to two contents.`);
    it.truth.set(key, digest);
  };
  remember(collection.name, records);
  if (collection !== productCollection) return;
  const drugs = new Map((records as readonly Product[]).map(({ drug }) => [drug.id, drug]));
  remember(
    'drugs',
    [...drugs.values()].map((drug) => ({ drug })),
  );
}

/** Returns a slightly changed list: some records are gone, some differ, some are new, some have another place. */
function changed<It>(list: readonly It[], random: Random, make: (changed: It | null) => It): It[] {
  const left = list.filter(() => !chance(0.03, random)).map((it) => (chance(0.04, random) ? make(it) : it));
  const added = Array.from({ length: Math.floor(random() * 8) }, () => make(null));
  return chance(0.2, random) ? shuffled([...left, ...added], random) : [...left, ...added];
}

const steppings: readonly (readonly [name: string, weight: number, take: (it: Sequence) => Promise<void>])[] =
  [
    [
      'import of products',
      30,
      async (it) => {
        it.products = changed(it.products, it.random, (old) =>
          product(old?.product.id ?? it.nextId++, { drugform: { id: 1, name: `FORM ${it.random()}` } }),
        );
        await publish(it, productCollection);
      },
    ],
    [
      'import of companies',
      12,
      async (it) => {
        it.companies = changed(it.companies, it.random, (old) =>
          company(old?.id ?? it.nextId++, { city: `CITY ${it.random()}` }),
        );
        await publish(it, companyCollection);
      },
    ],
    ['import of the same list', 5, (it) => publish(it, productCollection, { force: false })],
    [
      'refusal',
      5,
      async (it) => {
        const report = await importRecords(it.products.slice(0, 20), productCollection, {
          redisUrl: it.redisUrl,
        });
        if (report.outcome === 'published')
          learn(it, productCollection, report.version as number, it.products.slice(0, 20));
      },
    ],
    [
      'rollback',
      10,
      async (it) => {
        const { versions } = (await run(it, 'versions', 'products', '--json')).json<Versions>();
        if (versions.length === 0) return;
        const { version: to } = pick(versions, it.random);
        const { code } = await run(it, 'rollback', 'products', '--to', String(to));
        if (code !== 0) return; // The version is damaged.
        const live = JSON.parse((await it.redis.get(productKeys.live)) as string).version;
        for (const name of ['products', 'drugs'])
          it.truth.set(`${name} ${live}`, it.truth.get(`${name} ${to}`) as string);
      },
    ],
    [
      'loss of everything, then an import',
      4,
      async (it) => {
        const keys = await it.redis.hgetall('medref:keys');
        await it.redis.flushall();
        await it.redis.hset('medref:keys', keys);
        await publish(it, productCollection);
        await publish(it, companyCollection);
      },
    ],
    ['backup', 8, (it) => save(it)],
    ['restore of the last backup', 6, (it) => restore(it)],
    [
      'publication that is lost at once',
      6,
      async (it) => {
        const before = it.saved;
        await save(it);
        it.products = [...it.products, product(it.nextId++)];
        await publish(it, productCollection);
        await restore(it);
        it.saved = before;
      },
    ],
    ['damage', 10, (it) => damage(it)],
    ['repair', 6, async (it) => void (await run(it, 'verify', '--repair'))],
  ];

const weighted = steppings.flatMap(([name, weight, take]) =>
  Array.from({ length: weight }, () => [name, take] as const),
);

async function save(it: Sequence): Promise<void> {
  const names = await it.redis.keys('*');
  const dumps = await Promise.all(names.map((name) => it.redis.dumpBuffer(name)));
  it.saved = names.flatMap((name, n) => (dumps[n] ? [[name, dumps[n]] as const] : []));
}

async function restore(it: Sequence): Promise<void> {
  if (!it.saved) return;
  await it.redis.flushall();
  for (const [name, dump] of it.saved) await it.redis.restore(name, 0, dump);
}

/** Deletes a part of a version's stored data. */
async function damage({ redis, random }: Sequence): Promise<void> {
  const names = (await redis.keys('medref:{*}:*:*')).filter((name) => /:[\d.]+:[\w-]+$/.test(name)).sort();
  if (names.length === 0) return;
  const key = pick(names, random);
  if ((await redis.type(key)) === 'zset') return void (await redis.zpopmin(key));
  await redis.hdel(key, pick((await redis.hkeys(key)).sort(), random));
}

interface Versions {
  readonly versions: readonly { readonly version: number }[];
}

/** Runs a command of medref. */
function run({ redisUrl }: Sequence, ...args: string[]) {
  return medref(args, { REDIS_URL: redisUrl });
}
