// Mirrors that follow a service through a thousand random steps: imports, rollbacks, refusals, losses, restores, upgrades,
// damage and repair. Out: how often a mirror was not what it was told to be, which must be never.

import { setTimeout as sleep } from 'node:timers/promises';
import { chance, pick, type Random, randomFor, shuffled } from '../../demo/seeded-random.ts';
import { repair } from '../../importer/repair.ts';
import { rollBack } from '../../importer/rollback.ts';
import { isDamaged, verify } from '../../importer/verify.ts';
import type { Collection } from '../../shared/collections/collection.ts';
import { type Company, companies as companyCollection } from '../../shared/collections/company.ts';
import type { Drug } from '../../shared/collections/drug.ts';
import { type Product, products as productCollection } from '../../shared/collections/product.ts';
import { currentFormat } from '../../shared/formats/content-format.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { readKeptVersions } from '../../shared/versions.ts';
import { storedProducts } from '../stored/stored-lists.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { companyKeys, productKeys } from '../support/keys.ts';
import { companies, company, product, products } from '../support/records.ts';
import { proofSetUp, proofSetUpText, startTestRedis } from '../support/redis-server.ts';
import { dumpFile, loadDump } from '../support/stored-dump.ts';
import { Mirror, setOf } from './mirror.ts';
import { type Finding, inDigits } from './reliability-page.ts';

const steps = 1_000;
/** Side by side, each with a Redis and an API of its own: a publication waits for its second. */
const sequences = 5;

const text = `Three mirrors of products, of drugs and of companies follow a service, one by changes, one by pinned pages, one by lines.
After each random step they come up to date and prove their copies by the digests that they are told; the copy is also compared
with the list that was imported as that version. A mirror by changes may be told 410 and then reads the whole list; 503 is
allowed while what is live is damaged. ${proofSetUpText()}`;

/** Follows a service through random steps. @param seed of all that is random */
export async function proveMirrors(seed: number, say: (progress: string) => void): Promise<Finding> {
  say(`seed ${seed}`);
  const runs = await Promise.all(
    Array.from({ length: sequences }, (_, n) =>
      runSequence(randomFor(seed, 1, n), (it) => say(`${n}: ${it}`)),
    ),
  );
  const counts = new Map<string, number>();
  for (const run of runs)
    for (const [what, count] of run.counts) counts.set(what, (counts.get(what) ?? 0) + count);
  const rows = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
  const faults = runs.flatMap((run) => run.faults);
  return {
    text: `${text} The seed was ${seed}: \`npm run prove -- only=mirrors seed=${seed}\`. ${inDigits(faults.length)} differences.`,
    tables: [{ head: ['What', 'Times'], rows }],
    faults: faults.slice(0, 20),
  };
}

interface Run {
  readonly counts: Map<string, number>;
  readonly faults: string[];
}

/** What a service has been through. */
interface Sequence {
  readonly redis: Redis;
  readonly redisUrl: string;
  readonly random: Random;
  /** The set digests of what was published, by collection and version. */
  readonly truth: Map<string, string>;
  products: readonly Product[];
  companies: readonly Company[];
  /** Key spaces that were saved, to be restored. */
  saved: (readonly [name: string, dump: Buffer])[] | null;
  nextId: number;
}

async function runSequence(random: Random, say: (progress: string) => void): Promise<Run> {
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
    for (let n = 1; n <= steps / sequences; n += 1) {
      const [name, take] = pick(weighted, random);
      try {
        await take(it);
        count(`step: ${name}`);
        await untilSeen(it, api);
        for (const { mirror, collection } of mirrors) await check(it, mirror, collection, count);
      } catch (error) {
        faults.push(`After step ${n}, ${name}: ${(error as Error).message}`);
      }
      if (n % 50 === 0) say(`${n} steps, ${faults.length} faults`);
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

/** Waits until the API answers from what is live in Redis: at most a second. */
async function untilSeen({ redis }: Sequence, api: TestApi): Promise<void> {
  const deadline = Date.now() + 1_500;
  for (;;) {
    const wanted = await Promise.all(
      [productKeys, companyKeys].map(async ({ live }) => JSON.parse((await redis.get(live)) ?? '{}').version),
    );
    const answer = await api.get('/health/ready');
    const { versions } = answer.json<{ data: { versions?: Record<string, number> } }>().data;
    if (versions && versions['products'] === wanted[0] && versions['companies'] === wanted[1]) break;
    if (Date.now() > deadline) throw new Error(`The API answers ${answer.text}, and ${wanted} are live.`);
    await sleep(20);
  }
  await sleep(550); // A process knows of a Redis that was changed behind its back after half a second.
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
    const source = collection === 'companies' ? companyCollection : productCollection;
    const keys = collection === 'companies' ? companyKeys : productKeys;
    if (!isDamaged(await verify(it.redis, keys, source)))
      throw new Error(`${collection} are 503, and nothing of them is damaged.`);
    return;
  }
  const truth = it.truth.get(`${collection} ${step.version}`);
  if (truth !== step.set) throw new Error(`The copy of ${collection} is not version ${step.version}.`);
}

/** Imports what the lists are now; what is published is known from then on. */
async function publish(it: Sequence, collection: Collection, options: object = {}): Promise<void> {
  const records = collection === productCollection ? it.products : it.companies;
  const report = await importRecords(records, collection, {
    ...{ redisUrl: it.redisUrl, force: true, maxNumberWaitMs: 10_000, ...options },
  });
  if (report.outcome === 'failed') throw new Error(`An import failed: ${report.reason}`);
  if (report.outcome === 'published') learn(it, collection, report.version as number, records);
}

function learn(it: Sequence, collection: Collection, version: number, records: readonly unknown[]): void {
  const tell = (name: string, its: readonly unknown[]) => {
    const digest = setOf(its.map((record) => JSON.stringify(record)));
    const key = `${name} ${version}`;
    const known = it.truth.get(key);
    if (known !== undefined && known !== digest)
      throw new Error(`The number ${key} was given to two contents.`);
    it.truth.set(key, digest);
  };
  tell(collection.name, records);
  if (collection !== productCollection) return;
  const drugs = new Map((records as readonly Product[]).map(({ drug }) => [drug.id, drug]));
  tell(
    'drugs',
    [...drugs.values()].map((drug) => ({ drug })),
  );
}

/** A list a little changed: some are gone, some are others, some are new, some have another place. */
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
        const kept = await readKeptVersions(it.redis, productKeys).catch(() => []);
        const to = kept.length > 0 ? pick(kept, it.random).version : null;
        const context = { redis: it.redis, keyPrefix: 'medref', to, maxNumberWaitMs: 10_000 };
        const result = await rollBack(productCollection, context).catch(() => null); // Nothing whole to go back to.
        if (result?.outcome !== 'rolled-back') return;
        for (const name of ['products', 'drugs'])
          it.truth.set(`${name} ${result.report.version}`, it.truth.get(`${name} ${to}`) as string);
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
    [
      'backup of the release before, restored',
      3,
      async (it) => {
        const keys = await it.redis.hgetall('medref:keys');
        await it.redis.flushall();
        await it.redis.hset('medref:keys', keys);
        await loadDump(it.redis, dumpFile(currentFormat - 1));
        for (const [n, { version }] of (await readKeptVersions(it.redis, productKeys)).entries())
          learn(it, productCollection, version, storedProducts[n] as readonly Product[]);
        for (const { version } of await readKeptVersions(it.redis, companyKeys))
          learn(it, companyCollection, version, companies(3));
        it.products = storedProducts.at(-1) as readonly Product[];
        it.companies = companies(3);
      },
    ],
    ['damage', 10, (it) => damage(it)],
    [
      'repair',
      6,
      async (it) => {
        for (const collection of [productCollection, companyCollection])
          await repair(collection, { redis: it.redis, keyPrefix: 'medref' });
      },
    ],
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

/** Changes a byte of something that is stored of a version, or loses it. */
async function damage({ redis, random }: Sequence): Promise<void> {
  const names = await redis.keys('medref:{*}:*:*');
  const isStored = /:(records|order|blocks|entries|changes|fences)$/;
  // The format before has no checks behind its records, so that damage of one is not told before the next import.
  const stored = names.filter((name) => isStored.test(name) && !/:[123]:[a-z]+$/.test(name));
  if (stored.length === 0) return;
  const key = pick(stored.sort(), random);
  if (key.endsWith(':fences')) return void (await redis.zpopmin(key));
  const field = pick((await redis.hkeys(key)).sort(), random);
  const value = (await redis.hgetBuffer(key, field)) as Buffer;
  if (chance(0.3, random)) return void (await redis.hdel(key, field));
  const at = Math.floor(random() * value.length);
  value[at] = (value[at] as number) ^ (1 + Math.floor(random() * 255));
  await redis.hset(key, field, value);
}
