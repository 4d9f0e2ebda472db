import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Cluster } from 'ioredis';
import { serverWarnings } from '../../importer/server-warnings.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForServing, connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { aheadOfClock, importRecords } from '../support/importing.ts';
import { beginMedref, medref } from '../support/medref.ts';
import { masters } from '../support/one-server.ts';
import { product, products } from '../support/records.ts';
import { usersFile, withUser } from '../support/redis-users.ts';
import { startCluster, type Topology } from './servers.ts';

// A Cluster refuses commands with keys of two slots, even if one node has all slots. `npm run test:cluster` has six nodes.
describe('a Cluster of one node', () => {
  let cluster: Topology;
  let redis: Redis;
  let api: TestApi;
  const keys = collectionKeys('medref', productCollection);
  before(async () => {
    cluster = await startCluster({ masters: 1, replicas: 0 });
    redis = await connectForWriting(cluster.url);
    await redis.set(keys.next, aheadOfClock);
    api = await startApi({ redisUrl: cluster.url });
  });
  after(async () => {
    await api.stop();
    redis.disconnect();
    await cluster.stop();
  });

  const run = (line: string) => medref(line.split(' '), { REDIS_URL: cluster.url });
  const publish = async (ids: number, changes = {}) => {
    const { outcome, reason, version } = await importRecords(products(ids), productCollection, {
      ...{ redisUrl: cluster.url, force: true },
      ...changes,
    });
    expect(outcome, reason ?? '').to.equal('published');
    return version as number;
  };

  it('accepts imports, more than are kept, and a rollback; readers see each within a second', async () => {
    const versions: number[] = [];
    for (const ids of [21, 22, 23, 24]) versions.push(await publish(ids));
    const live = async () => Number((await api.get('/products')).headers.get('medref-version'));
    const deadline = Date.now() + 1_000;
    while ((await live()) !== versions[3]) {
      expect(Date.now()).to.be.below(deadline);
      await sleep(20);
    }
    expect((await run('rollback products')).code).to.equal(0);
    expect((await run('resume products')).code).to.equal(0);
    expect((await run('versions products')).code).to.equal(0);
    expect((await run('diff products')).code).to.equal(0);
    expect((await run('status')).code).to.equal(0);
  });

  it('serves pages, ids, names, barcodes, NDJSON and changes', async () => {
    const [oldest] = await redis.zrange(keys.versions, 0, '0');
    for (const path of [
      ...[
        '/products?page=2&per-page=5',
        '/products/7',
        '/products?name=drug',
        '/products?barcode=8690000000007',
      ],
      ...['/drugs?name=drug', '/products?ids=3,1', `/products/changes?since=${oldest}`, '/products/versions'],
    ]) {
      expect((await api.get(path)).status, path).to.equal(200);
    }
    const lines = await api.get('/products', { headers: { accept: 'application/x-ndjson' } });
    expect(lines.text.trimEnd().split('\n')).to.have.length(23);
  });

  it('handles a dry run, a refusal and rejects', async () => {
    const changed = { redisUrl: cluster.url };
    const [dry, refused] = [
      await importRecords(products(25), productCollection, { ...changed, force: true, dryRun: true }),
      await importRecords([product(1), {}], productCollection, { ...changed, maxRejectPercent: 0 }),
    ];
    expect([dry.outcome, refused.outcome]).to.deep.equal(['dry-run', 'refused']);
    expect((await run('rejects products --json')).json()).to.deep.include({ total: 1 });
  });

  it('detects and repairs damage', async () => {
    const blocks = (await masters(redis)[0]?.keys('medref:{products}:*:blocks')) ?? [];
    for (const key of blocks) await redis.hdel(key, '0');
    expect((await run('verify')).code).to.equal(1);
    expect((await run('verify --repair')).code).to.equal(0);
    await redis.set(keys.live, 'x');
    expect((await run('verify --repair')).code).to.equal(0);
    await publish(26);
    expect((await run('verify')).code).to.equal(0);
  });

  it('creates, uses and revokes keys within a second', async () => {
    const { id, key } = (await run('keys create --client one --json')).json<{ id: string; key: string }>();
    const status = async () =>
      (await api.get('/products/1', { headers: { authorization: `Bearer ${key}` } })).status;
    const made = Date.now() + 1_000;
    while ((await status()) !== 200) {
      expect(Date.now()).to.be.below(made);
      await sleep(40);
    }
    expect((await run('keys list --json')).stdout).to.include(id);
    expect((await run(`keys revoke ${id}`)).code).to.equal(0);
    const deadline = Date.now() + 1_000;
    while ((await status()) !== 401) {
      expect(Date.now()).to.be.below(deadline);
      await sleep(40);
    }
    expect(await redis.hexists('medref:key-use', id)).to.equal(0);
  });

  it('gets a warning for each of its primaries', async () => {
    expect(await serverWarnings(redis, 'medref')).to.deep.equal([]);
    const [master] = masters(redis);
    await master?.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await serverWarnings(redis, 'medref')).to.have.length(1);
    await master?.config('SET', 'maxmemory-policy', 'noeviction');
  });

  it('works with the documented rights', async function () {
    const version = /^redis_version:(\d+)/m.exec((await masters(redis)[0]?.info('server')) ?? '')?.[1];
    if (Number(version) < 7) this.skip(); // Redis before 7 has no rights only to read; the page says so.
    const [master] = masters(redis);
    for (const [, user = '', rights = ''] of usersFile(7).matchAll(/^user (api|importer) (.+)$/gm))
      await master?.call('ACL', 'SETUSER', user, ...rights.split(' '));
    const serving = connectForServing(withUser(cluster.url, 'api'));
    await new Promise((resolve) => serving.once('ready', resolve));
    expect(await serving.hget('medref:keys', 'none')).to.equal(null);
    serving.disconnect();
    const report = await importRecords(products(27), productCollection, {
      ...{ redisUrl: withUser(cluster.url, 'importer'), force: true },
    });
    expect([report.reason, report.warnings]).to.deep.equal([null, []]);
  });

  it('is found although one of its hosts has no address', async () => {
    const [, hosts] = cluster.url.split('//');
    const writing = await connectForWriting(`redis+cluster://nowhere.invalid:6379,${hosts}`);
    expect(await writing.exists(keys.live)).to.equal(1);
    writing.disconnect();
  });

  it('survives the loss of the node that a moving slot is on', async () => {
    const serving = connectForServing(cluster.url) as Cluster;
    await new Promise((resolve) => serving.once('ready', resolve));
    const [node] = serving.nodes();
    node?.disconnect();
    await new Promise((resolve) => node?.once('end', resolve));
    void node?.asking(); // As ioredis does by itself; no caller handles its failure.
    await sleep(20);
    serving.disconnect();
  });

  it('gets no more lookups from a client that was closed during one', async () => {
    const serving = connectForServing(cluster.url) as Cluster;
    await new Promise((resolve) => serving.once('ready', resolve));
    serving.refreshSlotsCache();
    serving.disconnect();
    await new Promise((resolve) => serving.once('end', resolve));
    await sleep(50);
    const looked = new Promise((resolve) => serving.refreshSlotsCache(resolve));
    expect(await Promise.race([looked, sleep(50, 'not looked at')])).to.equal('not looked at');
  });

  it('is disconnected without a warning when an API ends', async () => {
    const settings = { REDIS_URL: cluster.url, API_PORT: '0', LOG_LEVEL: 'info' };
    const serve = beginMedref(['serve', '--json'], settings);
    await serve.line(/"address"/);
    const { code, stderr } = await serve.stop();
    expect(code, stderr).to.equal(0);
    expect(stderr).to.not.match(/"level":(40|50|"warn|"error)/);
  });

  it('is awaited by an import for a limited time', async () => {
    const impatient = (await connectForWriting(cluster.url)) as Cluster;
    Object.assign(impatient.options.redisOptions ?? {}, { commandTimeout: 400 });
    const [node] = cluster.nodes;
    await node?.server.kill();
    while (impatient.status === 'ready') {
      await impatient.get('x').catch(() => null);
      await sleep(20);
    }
    const late = await impatient.get('x').catch((error: Error) => error.message);
    expect(late).to.equal('Command timed out');
    Object.assign(impatient.options.redisOptions ?? {}, { commandTimeout: 10_000 });
    const waiting = impatient.get('x');
    await node?.server.restart();
    expect(await waiting).to.equal(null);
    impatient.disconnect();
  });

  it('is named with its addresses in one sentence when it is unavailable', async () => {
    const { code, stderr } = await medref(['status'], {
      REDIS_URL: 'redis+cluster://u:secret@127.0.0.1:1,[::1]:2',
    });
    expect([code, stderr]).to.deep.equal([
      1,
      'Redis at 127.0.0.1:1,[::1]:2 cannot be used: Connection is closed. Start it, or set REDIS_URL.\n',
    ]);
  });
});
