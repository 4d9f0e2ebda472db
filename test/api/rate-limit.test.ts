// Tests rate limits of keys from a client's view, with two API processes that share a Redis.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import type { MadeApiKey } from '../../shared/store/api-keys.ts';
import { type ApiAnswer, startApi, type TestApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { exchange } from '../support/wire.ts';

const accept = { accept: 'application/x-ndjson' };

describe('rate limits', () => {
  const redis = useRedis();
  let connection: Redis;
  let api: TestApi;
  let other: TestApi;
  const clients: (string | null)[] = [];
  before(async () => {
    connection = await connectForWriting(redis().url);
    await importRecords(products(450), productCollection, { redisUrl: redis().url });
    api = await startApi({
      redisUrl: redis().url,
      onResponse: ({ status, client }) => void (status === 429 && clients.push(client)),
    });
    other = await startApi({ redisUrl: redis().url, defaultRate: '2/s' });
  });
  after(async () => {
    await Promise.all([api.stop(), other.stop()]);
    connection.disconnect();
  });

  async function makeKey(rate: string | null): Promise<MadeApiKey> {
    const made = await api.makeKey({ rate });
    await other.refreshKeys();
    return made;
  }
  const get = (
    { key }: { key: string },
    { path = '/products/1', headers = {}, at = api }: { path?: string; headers?: object; at?: TestApi } = {},
  ): Promise<ApiAnswer> => at.get(path, { headers: { authorization: `Bearer ${key}`, ...headers } });
  const fieldsOf = ({ headers }: ApiAnswer) =>
    ['ratelimit-policy', 'ratelimit', 'retry-after'].map((name) => headers.get(name));
  const countOf = (responses: readonly ApiAnswer[], status: number) =>
    responses.filter((it) => it.status === status).length;

  /** Returns how often Redis ran a script since the last call. */
  async function scriptsRun(): Promise<number> {
    const stats = await connection.info('commandstats');
    await connection.config('RESETSTAT');
    return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    );
  }

  it('add no header and no command for keys without one', async () => {
    const key = await makeKey(null);
    await scriptsRun();
    expect(fieldsOf(await get(key))).to.deep.equal([null, null, null]);
    expect(await scriptsRun()).to.equal(0);
  });

  it("allow one second's requests at once over all processes, and report the rest", async () => {
    const key = await makeKey('10/s');
    const first = await get(key);
    expect(fieldsOf(first)).to.deep.equal(['"default";q=10;w=1', '"default";r=9;t=1', null]);
    const from = performance.now();
    const responses = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        get(key, { at: n % 2 ? api : other, path: '/products?per-page=1' }),
      ),
    );
    const seconds = (performance.now() - from) / 1_000;
    expect(countOf(responses, 200)).to.be.within(9, 10 + Math.ceil(10 * seconds));
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused.length + countOf(responses, 200)).to.equal(30);
    expect(fieldsOf(refused[0] as ApiAnswer)).to.deep.equal(['"default";q=10;w=1', '"default";r=0;t=1', '1']);
    expect(refused[0]?.text).to.include(
      '"message":"This key is limited to 10 requests per second. Try again in 1 s."',
    );
    expect(clients).to.include('pharmacy').and.not.include(null);
  });

  it('count requests that arrive together with one command', async () => {
    const { key } = await makeKey('6/s');
    await scriptsRun();
    const request = (fields = '') =>
      `GET /products/1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n${fields}\r\n`;
    const responses = await exchange(api, request().repeat(8) + request('Connection: close\r\n'));
    expect(responses.map(({ status }) => status)).to.deep.equal([
      200, 200, 200, 200, 200, 200, 429, 429, 429,
    ]);
    expect(responses.map(({ headers }) => headers['ratelimit'])).to.deep.equal(
      [5, 4, 3, 2, 1, 0, 0, 0, 0].map((left) => `"default";r=${left};t=1`),
    );
    expect(await scriptsRun()).to.equal(1);
  });

  it('allow a retry at the announced time, and not before', async () => {
    const key = await makeKey('1/s');
    expect((await get(key)).status).to.equal(200);
    const from = performance.now();
    expect((await get(key)).status).to.equal(429);
    await sleep(300);
    expect((await get(key)).status).to.equal(429);
    await sleep(from + 1_010 - performance.now());
    expect((await get(key)).status).to.equal(200);
  });

  it('count every request: 304, HEAD, NDJSON and errors', async () => {
    const key = await makeKey('9/s');
    const etag = (await get(key)).headers.get('etag') ?? '';
    const held = await get(key, { headers: { 'if-none-match': etag } });
    expect([held.status, held.headers.get('ratelimit')]).to.deep.equal([304, '"default";r=7;t=1']);
    const authorization = `Bearer ${key.key}`;
    const head = await api.get('/products', { method: 'HEAD', headers: { ...accept, authorization } });
    expect(head.headers.get('ratelimit')).to.equal('"default";r=6;t=1');
    const lines = await get(key, { path: '/products', headers: accept });
    expect(lines.text.split('\n')).to.have.length(451);
    expect(lines.headers.get('ratelimit')).to.equal('"default";r=5;t=1');
    for (const [path, status, left] of [
      ['/products/9999', 404, 4],
      ['/products?page=x', 400, 3],
      ['/products?version=1', 410, 2],
    ] as const) {
      const response = await get(key, { path });
      expect([response.status, response.headers.get('ratelimit')]).to.deep.equal([
        status,
        `"default";r=${left};t=1`,
      ]);
    }
  });

  it('refuse conditional requests and exports over the limit', async () => {
    const key = await makeKey('1/s');
    const etag = (await get(key)).headers.get('etag') ?? '';
    expect((await get(key, { headers: { 'if-none-match': etag } })).status).to.equal(429);
    expect((await get(key, { path: '/products', headers: accept })).status).to.equal(429);
  });

  it('send no command for a key over its limit, and store nothing after the second', async () => {
    const key = await makeKey('2/s');
    await scriptsRun();
    const statuses = [(await get(key)).status, (await get(key)).status];
    for (let n = 0; n < 5; n += 1) statuses.push((await get(key)).status);
    expect(statuses).to.deep.equal([200, 200, 429, 429, 429, 429, 429]);
    expect(await scriptsRun()).to.equal(2);
    await sleep(1_050);
    expect(await connection.exists(`medref:{rate:${key.id}}`)).to.equal(0);
  });

  it("use the key's own limit before the default", async () => {
    const [own, usual] = [await makeKey('5/s'), await makeKey(null)];
    expect(fieldsOf(await get(own, { at: other }))[0]).to.equal('"default";q=5;w=1');
    expect(fieldsOf(await get(usual, { at: other }))[0]).to.equal('"default";q=2;w=1');
  });

  it('count errors, too', async () => {
    const key = await makeKey('3/s');
    expect((await get(key, { path: '/products/9999' })).status).to.equal(404);
    expect((await get(key, { path: '/products?page=x' })).status).to.equal(400);
    expect((await get(key)).headers.get('ratelimit')).to.match(/^"default";r=0;/);
  });

  it('are not enforced if Redis has no memory for counters, which is logged', async () => {
    const key = await makeKey('1/s');
    await connection.config('SET', 'maxmemory', '1');
    try {
      for (let n = 0; n < 3; n += 1) expect((await get(key)).status).to.equal(200);
      expect(api.uncounted[0]).to.match(
        /^Requests are not counted against their rate limit: Redis has reached/,
      );
    } finally {
      await connection.config('SET', 'maxmemory', '0');
    }
    expect((await get(key)).status).to.equal(200);
    expect((await get(key)).status).to.equal(429);
  });

  it('return 503 while Redis is unavailable', async () => {
    const key = await makeKey('5/s');
    expect((await get(key)).status).to.equal(200);
    redis().pause();
    try {
      expect((await get(key, { path: '/products?per-page=2' })).status).to.equal(503);
    } finally {
      redis().resume();
    }
  });
});
