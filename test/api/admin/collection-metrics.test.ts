// Tests the metrics of imports and live versions: read from a real Redis after real imports, and without Redis.

import { expect } from 'chai';
import { Registry } from 'prom-client';
import { collectionMetrics } from '../../../api/admin/collection-metrics.ts';
import { rollBack } from '../../../importer/rollback.ts';
import { readCollectionStates } from '../../../shared/collection-status.ts';
import { servedCollections } from '../../../shared/collections/collections.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { readImporters, writeHeartbeat } from '../../../shared/importer-heartbeats.ts';
import { connectForServing, connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { createApiKey, revokeApiKey, rotateApiKey } from '../../../shared/store/api-keys.ts';
import { listActiveClients, writeClientVersions } from '../../../shared/store/client-versions.ts';
import { documentOf, parseVersion } from '../../../shared/store/versions.ts';
import { importRecords, importText } from '../../support/importing.ts';
import { productKeys } from '../../support/keys.ts';
import { product, products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('the metrics of collections', function () {
  this.timeout(30_000);
  const server = useRedis();
  let redis: Redis;
  let serving: Redis;
  let registry: Registry;

  before(async () => {
    redis = await connectForWriting(server().url);
  });
  beforeEach(async () => {
    await redis.flushall();
    serving = connectForServing(server().url);
    await new Promise((resolve) => serving.once('ready', resolve));
    registry = new Registry();
    const keyPrefix = 'medref';
    const options = { redis: serving, keyPrefix, served: servedCollections, imports: 100 };
    collectionMetrics(registry, async () => ({
      states: await readCollectionStates(options),
      importers: await readImporters(serving, keyPrefix),
      clients: await listActiveClients(serving, keyPrefix, servedCollections),
    }));
  });
  afterEach(() => serving.disconnect());
  after(() => redis.disconnect());

  /** Returns the values of a scrape, by metric name and labels. */
  async function scrape(): Promise<Record<string, number>> {
    const lines = (await registry.metrics()).split('\n').filter((line) => line.startsWith('medref_'));
    return Object.fromEntries(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
    );
  }
  const importList = (records: readonly unknown[], force = false) =>
    importRecords(records, productCollection, { redisUrl: server().url, force });
  const of = (name: string, labels = '') => `medref_${name}{collection="products"${labels}}`;
  const outcomeOf = (figures: Record<string, number>) =>
    Object.entries(figures)
      .filter(([name, value]) => name.startsWith(of('last_import_outcome').slice(0, -1)) && value === 1)
      .map(([name]) => /outcome="(.+)"/.exec(name)?.[1]);
  const isNow = (seconds: number | undefined) => {
    expect(seconds).to.be.closeTo(Date.now() / 1000, 15);
  };

  it('show before any import that nothing is paused, locked or damaged, and omit absent values', async () => {
    const figures = await scrape();
    const reported = Object.keys(figures).filter((name) => !name.startsWith('medref_kept_imports'));
    const each = (name: string) => ['products', 'companies'].map((it) => `${name}{collection="${it}"}`);
    const ofAll = ['live', 'clients_behind', 'most_versions_behind'];
    expect(reported).to.have.members([
      ...['medref_redis_up', 'medref_ready'],
      ...ofAll.map((it) => `medref_${it}{collection="drugs"}`),
      ...[...ofAll, 'imported', 'paused', 'locked', 'damage_marks'].map((it) => `medref_${it}`).flatMap(each),
    ]);
    expect(Object.entries(figures).filter(([, value]) => value !== 0)).to.deep.equal([
      ['medref_redis_up', 1],
    ]);
    expect(figures).to.include({ [of('kept_imports', ',outcome="failed"')]: 0 });
  });

  it("show the live version, also of derived collections, and the last import's counts", async () => {
    await importList(products(120));
    await importList([...products(119), product(500), { product: { id: 'x' } }], true);
    const figures = await scrape();
    for (const collection of ['products', 'drugs']) {
      const label = `{collection="${collection}"}`;
      expect(figures[`medref_live_records${label}`]).to.equal(120);
      expect(String(figures[`medref_live_version${label}`])).to.match(/^20\d{12}$/);
      isNow(figures[`medref_live_published_timestamp_seconds${label}`]);
    }
    isNow(figures[of('checked_timestamp_seconds')]);
    isNow(figures[of('last_import_timestamp_seconds')]);
    expect(figures[of('last_import_duration_seconds')]).to.be.above(0).and.below(30);
    expect(outcomeOf(figures)).to.deep.equal(['published']);
    const expected = { read: 121, written: 120, rejected: 1, added: 1, changed: 0, removed: 1 };
    for (const [kind, count] of Object.entries(expected))
      expect(figures[of('last_import_records', `,kind="${kind}"`)], kind).to.equal(count);
    expect(figures[of('kept_imports', ',outcome="published"')]).to.equal(2);
  });

  it('follow the outcomes of imports, and keep the counts of the last one that read records', async () => {
    await importList(products(50));
    expect(outcomeOf(await scrape())).to.deep.equal(['published']);
    await importList(products(10));
    let figures = await scrape();
    expect(outcomeOf(figures)).to.deep.equal(['refused']);
    expect(figures[of('last_import_records', ',kind="read"')]).to.equal(10);
    await importText('not JSON', productCollection, { redisUrl: server().url });
    figures = await scrape();
    expect(outcomeOf(figures)).to.deep.equal(['failed']);
    expect(figures[of('last_import_records', ',kind="read"')], 'the failed import read nothing').to.equal(10);
    await redis.set(productKeys.lock, JSON.stringify({ holder: 'x', since: '2026-11-22T00:00:00.000Z' }));
    await importList(products(50));
    figures = await scrape();
    expect(outcomeOf(figures), 'an import that found the lock held does not count').to.deep.equal(['failed']);
    expect(figures).to.include({
      [of('kept_imports', ',outcome="locked"')]: 1,
      [of('locked')]: 1,
      [of('locked_since_timestamp_seconds')]: Date.parse('2026-11-22T00:00:00.000Z') / 1000,
    });
  });

  it('show since when a candidate waits, and omit an outdated one', async () => {
    await importList(products(50));
    expect(await scrape()).not.to.have.property(of('candidate_since_timestamp_seconds'));
    await importList(products(10));
    isNow((await scrape())[of('candidate_since_timestamp_seconds')]);
    await importList(products(51));
    expect(await scrape()).not.to.have.property(of('candidate_since_timestamp_seconds'));
  });

  it('show how many clients are behind, and how far the last one is', async () => {
    const terms = { expiresAt: null, rate: null };
    const made = await Promise.all(
      ['A', 'B', 'C', 'D'].map((client) => createApiKey(redis, 'medref', { client, ...terms })),
    );
    const versions: (number | null)[] = [];
    for (const count of [50, 51, 52]) versions.push((await importList(products(count)))?.version ?? null);
    for (const [n, { id }] of made.entries()) {
      const its = { served: versions[Math.min(n, 2)] as number, servedAt: new Date().toISOString() };
      await writeClientVersions(redis, 'medref', { id, versions: new Map([['products', its]]) });
    }
    const scraped = async () => {
      const figures = await scrape();
      return [figures[of('clients_behind')], figures[of('most_versions_behind')]];
    };
    expect(await scraped()).to.deep.equal([2, 2]);
    await revokeApiKey(redis, 'medref', made[0]?.id as string);
    expect(await scraped()).to.deep.equal([1, 1]);
    await rotateApiKey(redis, 'medref', { id: made[1]?.id as string, overlapS: 60 });
    expect(await scraped(), 'a rotated key is not counted').to.deep.equal([0, 0]);
  });

  it('show a pause with its start, and damage that readers found', async () => {
    await importList(products(50));
    await importList(products(49));
    await rollBack(productCollection, { redis, keyPrefix: 'medref', to: null, maxNumberWaitMs: 0 });
    await redis.hset(productKeys.damaged, '1', 'x', '2', 'y');
    const figures = await scrape();
    expect(figures).to.include({ [of('paused')]: 1, [of('damage_marks')]: 2 });
    isNow(figures[of('paused_since_timestamp_seconds')]);
    expect(figures, 'the live version is not the list of upstream').not.to.have.property(
      of('checked_timestamp_seconds'),
    );
    expect(outcomeOf(figures)).to.deep.equal(['rolled-back']);
  });

  it('omit times in the future, so that an alert on their age still works', async () => {
    await importList(products(50));
    const future = new Date(Date.now() + 86_400_000).toISOString();
    await redis.set(productKeys.checked, future);
    expect(await scrape()).not.to.have.property(of('checked_timestamp_seconds'));
    expect(await scrape()).to.have.property(of('live_published_timestamp_seconds'));
    const live = parseVersion(productKeys.live, (await redis.get(productKeys.live)) ?? '');
    await redis.set(productKeys.live, documentOf({ ...live, publishedAt: future }));
    const figures = await scrape();
    expect(figures).not.to.have.property(of('live_published_timestamp_seconds'));
    expect(figures).to.have.property(of('live_version'));
  });

  it('omit values of a damaged key, and show all others', async () => {
    await importList(products(50));
    const keys = [
      productKeys.live,
      productKeys.checked,
      productKeys.imports,
      productKeys.pause,
      productKeys.damaged,
    ];
    for (const key of keys) {
      const before = await redis.dumpBuffer(key);
      await redis.del(key);
      await redis.rpush(key, 'x');
      const figures = await scrape();
      expect(figures, key).to.include({ medref_redis_up: 1, [of('locked')]: 0 });
      await redis.del(key);
      if (before) await redis.restore(key, 0, before);
    }
    await redis.set(productKeys.live, 'not a version');
    await redis.xadd(productKeys.imports, '*', 'report', 'no JSON');
    const figures = await scrape();
    expect(figures).to.include({ medref_redis_up: 1, [of('paused')]: 0 });
    expect(figures).not.to.have.any.keys(of('live_records'), of('last_import_timestamp_seconds'));
  });

  it('show live and imported collections, and when an importer was last seen', async () => {
    const seenAt = new Date().toISOString();
    const beat = {
      ...{ importer: 'process 7 on there', startedAt: seenAt, stopped: false, nextRun: seenAt },
      ...{ cron: '0 3 * * *', timezone: 'UTC', collections: ['companies'] },
    };
    await writeHeartbeat(serving, 'medref', { ...beat, seenAt: '2026-01-01T00:00:00.000Z' });
    await writeHeartbeat(serving, 'medref', { ...beat, importer: 'process 8 on there', seenAt });
    await importList(products(50));
    const figures = await scrape();
    expect(figures).to.include({
      ...{ medref_ready: 1, [of('live')]: 1, 'medref_live{collection="companies"}': 0 },
      ...{ [of('imported')]: 1, 'medref_imported{collection="companies"}': 1 },
    });
    isNow(figures['medref_importer_heartbeat_timestamp_seconds{collection="companies"}']);
    expect(figures).not.to.have.any.keys(of('importer_heartbeat_timestamp_seconds'));
  });

  it('show only that Redis is down while it is unavailable or hangs, and no scrape waits long', async () => {
    await importList(products(50));
    server().pause();
    const start = performance.now();
    try {
      expect(await scrape()).to.deep.equal({ medref_redis_up: 0, medref_ready: 0 });
      expect(performance.now() - start).to.be.within(1_000, 2_600);
    } finally {
      server().resume();
    }
    await server().kill();
    expect(await scrape()).to.deep.equal({ medref_redis_up: 0, medref_ready: 0 });
  });
});
