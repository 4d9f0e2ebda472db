// Tests damaged bookkeeping keys: readers get 503, and imports fail and name the command that repairs the keys.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { readKeyDamage } from '../../importer/bookkeeping.ts';
import type { ImportReport } from '../../importer/report.ts';
import { rollBack } from '../../importer/rollback.ts';
import { repair, verify } from '../../importer/verify.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { documentOf, parseVersion, readLiveVersion } from '../../shared/store/versions.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { keepKeySpace, readKeySpace } from '../support/key-space.ts';
import { productKeys as keys } from '../support/keys.ts';
import { medref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';

describe('a damaged key', () => {
  const server = useRedis();
  let redis: Redis;
  /** The numbers of the kept versions, the oldest first. */
  let versions: number[];
  /** The number of the live version. */
  let live: number;
  let restore: () => Promise<void>;
  let api: TestApi | undefined;
  before(async () => {
    redis = await connectForWriting(server().url);
    versions = [];
    for (const count of [10, 11, 12]) {
      const { version } = await importRecords(products(count), productCollection, { redisUrl: server().url });
      versions.push(version as number);
    }
    live = versions.at(-1) as number;
    restore = await keepKeySpace(redis);
  });
  after(() => redis.disconnect());
  beforeEach(() => restore());
  afterEach(() => endApi());

  /** Returns the API of a test. It starts at its first use, and so has nothing in memory from before. */
  const openApi = async () => {
    api ??= await startApi({ redisUrl: server().url, cacheBytes: 1 });
    return api;
  };
  const endApi = async () => {
    await api?.stop();
    api = undefined;
  };
  /** Expects that an import names the key and the command, that `medref verify --repair` works, and the next import too. */
  const importRepaired = async (count: number, damage = ''): Promise<ImportReport> => {
    const failed = await importAgain(count);
    expect(failed.outcome).to.equal('failed');
    expect(failed.reason).to.match(/^The Redis key .*\. Run "medref verify products --repair"\.$/);
    const before = await verify(redis, keys, productCollection);
    const repaired = await repair(productCollection, { redis, keyPrefix: 'medref' });
    expect('left' in repaired && repaired.left.keys).to.deep.equal([]);
    expect(before.keys.join(' ')).to.include(damage);
    expect('found' in repaired && repaired.found.keys).to.deep.equal(before.keys);
    return importAgain(count);
  };
  const importAgain = (count: number, changes = {}): Promise<ImportReport> =>
    importRecords(products(count), productCollection, { redisUrl: server().url, ...changes });
  const becomeSet = async (key: string) => {
    await redis.del(key);
    await redis.sadd(key, 'damage');
  };

  const pointers: [what: string, damage: () => Promise<unknown>, reported: RegExp][] = [
    [
      'of another type',
      () => becomeSet(keys.live),
      /The Redis key medref:\{products\}:live has the unexpected type set/,
    ],
    [
      'with text that is none of ours',
      () => redis.set(keys.live, '{"version":'),
      /The Redis key medref:\{products\}:live holds unexpected text\./,
    ],
    ['with a number alone', () => redis.set(keys.live, '7'), /holds unexpected text/],
  ];
  for (const [what, damage, reported] of pointers) {
    it(`is reported, and returns 503, if it is the pointer ${what}, until repaired`, async () => {
      const before = await openApi();
      await damage();
      expect((await before.get('/products')).status, 'a process that knows the live version').to.equal(200);
      expect((await before.get('/health/ready')).status, 'and is not ready').to.equal(503);
      await endApi();
      const fresh = await openApi();
      const since = `/products/changes?since=${versions[0]}`;
      for (const path of ['/products', '/products/1', '/drugs?name=d', since]) {
        const { status, headers, text } = await fresh.get(path);
        expect([status, headers.get('retry-after')], path).to.deep.equal([503, '5']);
        expect(text).to.include('is damaged in Redis').and.not.to.include('medref:');
      }
      expect(fresh.damage[0]).to.match(reported);

      const report = await importRepaired(12, 'The Redis key medref:{products}:live ');
      expect(report.outcome).to.equal('unchanged');
      expect(report.previousVersion).to.equal(live);
      const response = await fresh.get('/products');
      expect(response.status).to.equal(200);
      expect(response.headers.get('medref-version')).to.equal(String(live));
    });
  }

  const repairedKeys = [
    'next',
    'versions',
    'versionDocuments',
    'staged',
    'imports',
    'rejects',
    'pause',
  ] as const;
  for (const name of [...repairedKeys, 'rolledBack', 'checked', 'validators', 'changeSets'] as const) {
    it(`is repaired if it is ${name}, and all kept versions stay`, async () => {
      const before = await redis.hgetall(keys.versionDocuments);
      await (name === 'staged' ? redis.set(keys.staged, 'damage') : becomeKeyOfOtherType(name));
      const report = await importRepaired(13, `The Redis key ${keys[name]} is a `);
      expect(report.outcome, report.reason ?? '').to.equal('published');
      const version = report.version as number;
      expect(version).to.be.above(live);
      const { get } = await openApi();
      const kept = name === 'versionDocuments' ? [live] : versions.slice(1);
      for (const number of kept) {
        const { status } = await get(`/products?version=${number}`);
        expect(status, `version ${number}`).to.equal(200);
        expect(await redis.hget(keys.versionDocuments, String(number))).to.equal(before[number]);
      }
      expect(await redis.zrange(keys.versions, 0, '-1')).to.deep.equal([...kept, version].map(String));
      expect(Number(await redis.get(keys.next))).to.equal(version);
      for (const number of versions.filter((it) => !kept.includes(it)))
        expect(await redis.pttl(keys.content(number).records), `${number}`).to.be.within(1, 60_000);
    });
  }

  it('deletes a content with a damaged document, unless a rollback uses it', async () => {
    const [first, second] = versions as [number, number];
    const context = { redis, keyPrefix: 'medref', to: first, maxNumberWaitMs: 0 };
    const back = await rollBack(productCollection, context);
    const again = back.outcome === 'rolled-back' ? back.report.version : null;
    for (const version of [first, second]) await redis.hset(keys.versionDocuments, version, 'damage');
    await repair(productCollection, { redis, keyPrefix: 'medref' });
    expect(await redis.pttl(keys.content(second).records)).to.be.within(1, 60_000);
    expect(await redis.pttl(keys.content(first).records)).to.equal(-1);
    expect((await (await openApi()).get(`/products?version=${again}`)).status).to.equal(200);
  });

  async function becomeKeyOfOtherType(name: keyof typeof keys): Promise<void> {
    const key = keys[name] as string;
    await redis.del(key);
    if (name === 'rolledBack') await redis.set(key, 'damage');
    else await redis.sadd(key, 'damage');
  }

  it('is repaired if it is next, without a number', async () => {
    await redis.set(keys.next, 'seven');
    const { version } = await importRepaired(13);
    expect(version).to.be.above(live);
    expect(await redis.get(keys.next)).to.equal(String(version));
  });

  it('is repaired if it is the list of kept versions, with one missing', async () => {
    await redis.zrem(keys.versions, live);
    await importRepaired(12, 'versions does not list the kept versions');
    expect(await redis.zrange(keys.versions, 0, '-1')).to.deep.equal(versions.map(String));
  });

  it('is repaired if the documents of kept versions lack the live one', async () => {
    const document = (await redis.hget(keys.versionDocuments, String(live))) as string;
    await redis.hdel(keys.versionDocuments, String(live));
    await importRepaired(12, `version-documents has another document of the live version ${live}`);
    expect(await redis.hget(keys.versionDocuments, String(live))).to.equal(document);
  });

  it('is found if two documents are swapped, and repaired', async () => {
    const [one, other] = versions as [number, number];
    const before = await redis.hgetall(keys.versionDocuments);
    const swapped = { [one]: String(before[other]), [other]: String(before[one]) };
    await redis.hset(keys.versionDocuments, swapped);
    const { get } = await openApi();
    for (const number of [one, other])
      expect((await get(`/products?version=${number}`)).status, 'nothing of another version').to.equal(503);
    const verified = await medref(['verify', 'products'], { REDIS_URL: server().url });
    expect(verified.code).to.equal(1);
    for (const [is, as] of [
      [one, other],
      [other, one],
    ])
      expect(verified.stdout.replace(/\n {4}/g, ' ')).to.include(
        `has the document of version ${is} under the number ${as}.`,
      );
    await repair(productCollection, { redis, keyPrefix: 'medref' });
    expect(await redis.hgetall(keys.versionDocuments)).to.deep.equal(before);
    expect((await get(`/products?version=${one}`)).headers.get('medref-version')).to.equal(String(one));
  });

  it('is found if the pointer names an old version, and repaired', async () => {
    const document = (await redis.get(keys.live)) as string;
    const [older] = versions as [number];
    await redis.set(keys.live, (await redis.hget(keys.versionDocuments, String(older))) as string);
    const report = await importRepaired(
      12,
      `${keys.live} names version ${older} as the live one, and the latest version is ${live}.`,
    );
    expect([report.outcome, report.previousVersion]).to.deep.equal(['unchanged', live]);
    expect(await redis.get(keys.live)).to.equal(document);
  });

  it('is never reported while versions are published and deleted', async () => {
    const publishing = await connectForWriting(server().url);
    const [document] = await redis.hvals(keys.versionDocuments);
    let isOver = false;
    const publications = (async () => {
      for (let number = live + 1; !isOver; number += 1) {
        const text = documentOf({ ...parseVersion('', document as string), version: number });
        await publishing
          .multi()
          .hset(keys.versionDocuments, String(number), text)
          .zadd(keys.versions, number, number)
          .hdel(keys.versionDocuments, String(number - 2))
          .zrem(keys.versions, number - 2)
          .set(keys.live, text)
          .exec();
      }
    })();
    const found: string[] = [];
    for (let n = 0; n < 60; n += 1) found.push(...(await readKeyDamage(redis, keys)).damage);
    isOver = true;
    await publications;
    publishing.disconnect();
    expect(found).to.deep.equal([]);
  });

  it('is repaired if the pointer is missing', async () => {
    await redis.del(keys.live);
    const damage = `The Redis key ${keys.live} is missing, and the latest version is ${live}.`;
    const report = await importRepaired(12, damage);
    expect([report.outcome, report.previousVersion]).to.deep.equal(['unchanged', live]);
    expect(await readLiveVersion(redis, keys)).to.deep.include({ version: live });
  });

  for (const part of ['records', 'order', 'blocks'] as const) {
    it(`returns 503 or intact data, and is rebuilt, if it is the ${part} of the live version`, async () => {
      const fresh = await openApi();
      await becomeSet(keys.content(live)[part]);
      for (const path of ['/products', '/products/1', '/products?name=drug', '/products?page=2&per-page=7']) {
        expect((await fresh.get(path)).status, path).to.be.oneOf([200, 503]);
      }
      if (part !== 'order')
        // Pages that come from blocks, and records, do not need the order.
        expect(fresh.damage.join(' ')).to.include(
          `The Redis key ${keys.content(live)[part]} has the unexpected type set`,
        );
      const report = await importAgain(12);
      expect(report.outcome).to.equal('published');
      expect(report.version).to.be.above(live);
      const deadline = Date.now() + 1_000;
      const isLive = async () =>
        (await fresh.get('/products')).headers.get('medref-version') === String(report.version);
      while (!(await isLive())) expect(Date.now(), 'not served within a second').to.be.below(deadline);
    });
  }

  it('returns 503 within seconds if it holds the API keys: no key is called unknown', async () => {
    const fresh = await openApi();
    await becomeSet('medref:keys');
    const deadline = Date.now() + 10_000;
    for (;;) {
      const { status } = await fresh.get('/products');
      if (status === 503) break;
      expect(status).to.equal(200);
      expect(Date.now(), 'known keys are accepted for some seconds').to.be.below(deadline);
      await sleep(100);
    }
  });

  it('is left alone by imports, and commands name it', async () => {
    await redis.set(keys.live, 'damage');
    const before = await readKeySpace(redis);
    for (const changes of [{ dryRun: true }, { force: true, dryRun: true }])
      expect((await importAgain(12, changes)).outcome).to.equal('failed');
    const { stdout } = await medref(['status', '--json'], { REDIS_URL: server().url });
    expect(stdout).to.match(/The Redis key .*:live holds unexpected text\./);
    expect(stdout).to.include('medref verify products --repair');
    expect(await readKeySpace(redis)).to.deep.equal(before);
  });

  it('does not appear in imports of an intact collection', async () => {
    expect((await importAgain(12)).warnings).to.deep.equal([]);
    expect(productCollection.name).to.equal('products');
  });
});
