import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { createClient } from '../../client/client.ts';
import { SetDigest } from '../../client/digests.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { createApiKey, revokeApiKey } from '../../shared/store/api-keys.ts';
import type { ComparedClientVersion, ListedClient } from '../../shared/store/client-versions.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { startDashboard } from '../support/dashboard.ts';
import { importRecords } from '../support/importing.ts';
import { productKeys as keys } from '../support/keys.ts';
import { medref } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { sendWithoutKey } from '../support/wire.ts';

const ndjson = { accept: 'application/x-ndjson' };

describe('the versions that clients have', function () {
  this.timeout(30_000);
  const server = useRedis();
  let redis: Redis;
  let api: TestApi;
  let key: { id: string; key: string };
  let versions: number[];

  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    versions = [];
    for (const count of [300, 301, 302, 303]) versions.push(await publish(products(count)));
    key = await createApiKey(redis, 'medref', { client: 'Pharmacy 7', expiresAt: null, rate: null });
    api = await startApi({ redisUrl: server().url });
  });
  afterEach(() => api.stop());

  const publish = async (list: readonly object[]) => {
    const report = await importRecords(list, productCollection, {
      redisUrl: server().url,
      maxChangePercent: 100,
    });
    expect(report.outcome, report.reason ?? '').to.equal('published');
    return report.version as number;
  };
  const get = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
    const response = await fetch(`${api.origin}${path}`, {
      ...{ method, headers: { authorization: `Bearer ${key.key}`, ...headers } },
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  /** Stops the API, which then writes what it knows, and returns what operators see of the key. */
  const known = async (id = key.id): Promise<Readonly<Record<string, ComparedClientVersion>>> => {
    await api.stop();
    const { stdout } = await medref(['keys', 'list', '--json'], { REDIS_URL: server().url });
    const { keys: list } = JSON.parse(stdout) as { keys: ListedClient[] };
    return list.find((it) => it.id === id)?.versions ?? {};
  };
  /** Returns the version and whether it is verified, and how far it is behind. */
  const ofProducts = async () => {
    const { products: its } = await known();
    return its && [its.version, its.isVerified, its.behind];
  };
  const setOf = (count: number) => {
    const digest = new SetDigest();
    for (const it of products(count)) digest.add(it);
    return digest.value;
  };

  it('are what NDJSON sent to its end', async () => {
    await get('/products', ndjson);
    await get(`/drugs?version=${versions[2]}`, ndjson);
    const found = await known();
    expect(found['products']).to.deep.include({ version: versions[3], isVerified: false, behind: 0 });
    expect(found['products']).to.deep.include({ served: versions[3], verified: null, verifiedAt: null });
    expect(found['products']?.servedAt).to.match(/^\d{4}-\d\d-\d\dT/);
    expect(found['drugs']).to.deep.include({ served: versions[2], behind: 1 });
    expect(found).not.to.have.property('companies');
  });

  it('are those of a 304 to NDJSON', async () => {
    const { headers } = await get('/products', ndjson);
    const etag = headers.get('etag') as string;
    await redis.del('medref:key-use');
    expect((await get('/products', { ...ndjson, 'if-none-match': etag })).status).to.equal(304);
    expect(await ofProducts()).to.deep.equal([versions[3], false, 0]);
  });

  it('are those at which a walk over changes ends, on its last page only', async () => {
    const walk = `/products/changes?since=${versions[0]}&per-page=2`;
    await get(walk);
    expect(await ofProducts()).to.equal(undefined);
    api = await startApi({ redisUrl: server().url });
    await get(`${walk}&page=2&version=${versions[3]}`);
    expect(await ofProducts()).to.deep.equal([versions[3], false, 0]);
  });

  it('are those of a poll that finds no changes, also by 304', async () => {
    const poll = `/products/changes?since=${versions[3]}`;
    const { headers } = await get(poll);
    await sleep(700);
    expect(await redis.hdel('medref:key-use', `${key.id}:products`), 'written').to.equal(1);
    const again = await get(poll, { 'if-none-match': headers.get('etag') as string });
    expect(again.status).to.equal(304);
    expect(await ofProducts()).to.deep.equal([versions[3], false, 0]);
  });

  it('are not recorded for pages, records, HEAD, or a stream that breaks off', async () => {
    await get('/products?per-page=200');
    await get('/products/1');
    await get('/products', ndjson, 'HEAD');
    await get(`/products/changes?since=${versions[3]}`, {}, 'HEAD');
    await publish(Array.from({ length: 400 }, (_, n) => product(n + 1, { barcodes: manyBarcodes })));
    const leaving = new AbortController();
    const response = await fetch(`${api.origin}/products`, {
      ...{ headers: { authorization: `Bearer ${key.key}`, ...ndjson, 'accept-encoding': 'identity' } },
      signal: leaving.signal,
    });
    await response.body?.getReader().read();
    leaving.abort();
    await sleep(100);
    expect(await known()).to.deep.equal({});
  });

  it('are verified if the client reports the digest of a kept version', async () => {
    const have = `${versions[1]} ${setOf(301)}`;
    expect((await get('/products/1', { 'medref-have': have })).status).to.equal(200);
    const found = (await known())['products'];
    expect(found).to.deep.include({ version: versions[1], isVerified: true, behind: 2, served: null });
    expect(found).to.deep.include({ verified: versions[1] });
  });

  it('are verified with the colons of Medref-Digest, and for drugs', async () => {
    const { headers } = await get('/drugs', ndjson);
    const [, set] = /set=(:[^:]+:)/.exec(headers.get('medref-digest') ?? '') ?? [];
    await get('/drugs/1', { 'medref-have': `${versions[3]} ${set}` });
    expect((await known())['drugs']).to.deep.include({ version: versions[3], isVerified: true });
  });

  for (const [what, field] of [
    ['a wrong digest', () => `${versions[3]} ${setOf(300)}`],
    ['the digest of another version', () => `${versions[2]} ${setOf(303)}`],
    ['a version that never was', () => `${Number(versions[3]) - 1} ${setOf(303)}`],
    ['a version that is not kept', () => `${versions[0]} ${setOf(300)}`],
    ['another form', () => `v${versions[3]}:${setOf(303)}`],
    ['no digest', () => String(versions[3])],
    ['a huge field', () => '9'.repeat(4_000)],
    ['a huge number', () => `${'9'.repeat(16)} ${setOf(303)}`],
  ] as const)
    it(`are not verified by a report with ${what}, which is no error`, async () => {
      if (what === 'a version that is not kept')
        expect((await get(`/products?version=${versions[0]}`)).status).to.equal(410);
      expect((await get('/products/1', { 'medref-have': field() })).status).to.equal(200);
      expect(await known()).to.deep.equal({});
    });

  it('belong to the key that the request has', async () => {
    const other = await createApiKey(redis, 'medref', { client: 'B', expiresAt: null, rate: null });
    await api.stop();
    api = await startApi({ redisUrl: server().url });
    const have = { 'medref-have': `${versions[3]} ${setOf(303)}` };
    await get('/products/1', { ...have, authorization: 'Bearer medref_unknown' });
    await get('/products/1', { ...have, authorization: `Bearer ${other.key}` });
    expect(await known()).to.deep.equal({});
    expect(await known(other.id)).to.have.property('products');
  });

  it('are not recorded for a collection that the key may not read', async () => {
    key = await createApiKey(redis, 'medref', {
      ...{ client: 'C', expiresAt: null, rate: null, collections: ['drugs'] },
    });
    await api.stop();
    api = await startApi({ redisUrl: server().url });
    const { status } = await get('/products/1', { 'medref-have': `${versions[3]} ${setOf(303)}` });
    expect(status).to.equal(403);
    expect(await known()).to.deep.equal({});
  });

  it('are written within a second, and then at most once a minute', async () => {
    const field = `${key.id}:products`;
    const have = `${versions[3]} ${setOf(303)}`;
    await get('/products', ndjson);
    await get('/products/1', { 'medref-have': have });
    expect(await redis.hexists('medref:key-use', field), 'at once').to.equal(0);
    await sleep(1_000);
    const written = await redis.hget('medref:key-use', field);
    expect(JSON.parse(written ?? '{}')).to.deep.include({ served: versions[3], verified: versions[3] });
    const version = await publish(products(304));
    await get(`/products?version=${version}`, ndjson);
    await sleep(1_000);
    expect(await redis.hget('medref:key-use', field)).to.equal(written);
    expect((await known())['products'], 'written at the end').to.deep.include({ served: version });
  });

  it('of two processes are the later ones', async () => {
    const other = await startApi({ redisUrl: server().url });
    await get('/products', ndjson);
    await sleep(20);
    const version = await publish(products(304));
    await fetch(`${other.origin}/products?version=${version}`, {
      headers: { authorization: `Bearer ${key.key}`, ...ndjson },
    }).then((response) => response.text());
    await other.stop();
    expect(await ofProducts()).to.deep.equal([version, false, 0]);
  });

  it('end with the key', async () => {
    await get('/products', ndjson);
    await sleep(700);
    expect(await redis.hlen('medref:key-use')).to.equal(2);
    await revokeApiKey(redis, 'medref', key.id);
    await known();
    expect(await redis.hlen('medref:key-use')).to.equal(0);
  });

  it('are shown by `keys list`, the metrics and the dashboard, and after a rollback on the overview', async () => {
    await get('/products', ndjson);
    await get('/products/1', { 'medref-have': `${versions[3]} ${setOf(303)}` });
    await get(`/drugs?version=${versions[1]}`, ndjson);
    await known();
    const { stdout } = await medref(['keys', 'list'], { REDIS_URL: server().url });
    expect(stdout).to.include(`products ${versions[3]}, verified, live\n`);
    expect(stdout).to.include(`drugs ${versions[1]}, served, 2 versions behind\n`);
    for (const line of stdout.split('\n')) expect(line.length, line).to.be.at.most(80);

    await medref(['rollback', 'products'], { REDIS_URL: server().url });
    const dashboard = await startDashboard({ redisUrl: server().url });
    try {
      const read = async (path: string) => {
        const { body } = await sendWithoutKey(dashboard, path);
        return body
          .toString()
          .replace(/<[^>]*>/g, ' ')
          .replace(/\s+/g, ' ');
      };
      const clients = await read('/clients');
      expect(clients).to.include('2 of 2 copies are behind the live version.');
      expect(clients).to.match(
        /Pharmacy 7 drugs \d+ 3 behind only served .* Pharmacy 7 products \d+ 1 behind verified /,
      );
      expect(await read('/')).to.include(
        `products : A client has the content that was rolled back: Pharmacy 7 (${versions[3]}) .`,
      );
    } finally {
      await dashboard.stop();
    }
    expect(await redis.scard(keys.rolledBack)).to.equal(1);
  });

  it('are reported by a mirror after its snapshot and after changes, by `all()`, and by `report()`', async () => {
    const client = createClient({ baseUrl: api.origin, key: key.key });
    const ending = new AbortController();
    const mirror = client.products.mirror({ signal: ending.signal });
    const first = (await mirror.next()).value;
    expect(first?.kind).to.equal('snapshot');
    const next = mirror.next();
    await sleep(700);
    const stored = async () =>
      JSON.parse((await redis.hget('medref:key-use', `${key.id}:products`)) ?? '{}') as ComparedClientVersion;
    expect(await stored()).to.deep.include({ verified: versions[3] });
    const version = await publish(products(304));
    expect((await next).value).to.deep.include({ kind: 'changes', version });
    const waiting = mirror.next();
    await sleep(200);
    ending.abort();
    await waiting;
    for await (const _ of client.drugs.all());
    await client.drugs.get(1);
    const found = await known();
    expect(found['products']).to.deep.include({ version, isVerified: true });
    expect(found['drugs']).to.deep.include({ version, isVerified: true });
    api = await startApi({ redisUrl: server().url });
    await redis.del('medref:key-use');
    const later = createClient({ baseUrl: api.origin, key: key.key });
    await later.products.report({ version, digest: setOf(304) });
    expect(await ofProducts()).to.deep.equal([version, true, 0]);
  });
});

const manyBarcodes = Array.from({ length: 200 }, (_, n) => ({
  ...{ barcode: String(8_690_000_000_000 + n), skrsStatus: 'Aktif' },
}));
