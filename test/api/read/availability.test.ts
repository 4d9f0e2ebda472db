// Tests responses while Redis is unavailable, slow, empty or damaged, and how the API recovers by itself.

import { existsSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import { ApiKeys } from '../../../api/auth.ts';
import { LiveVersions } from '../../../api/read/live-versions.ts';
import { ReadModel } from '../../../api/read/read-model.ts';
import { createServer } from '../../../api/server.ts';
import { importedCollections, servedCollections } from '../../../shared/collections/collections.ts';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import {
  connectForListening,
  connectForServing,
  connectForWriting,
  type Redis,
} from '../../../shared/redis/connections.ts';
import { createApiKey } from '../../../shared/store/api-keys.ts';
import { packIds } from '../../../shared/store/block.ts';
import { startApi, type TestApi, useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { companies, product, products } from '../../support/records.ts';
import { startRedisProxy } from '../../support/redis-proxy.ts';
import { startTestRedis, useRedis } from '../../support/redis-server.ts';
import { type Asked, exchange, send, sendWithoutKey, type WireAnswer } from '../../support/wire.ts';

const dataPaths = [
  '/products',
  '/products?page=99',
  '/products?per-page=2',
  '/products?name=drug',
  '/products?name=!',
  '/products?barcode=000000000000',
  '/products?drug=1',
  '/products?ids=1,999',
  '/products/1',
  '/products/999',
];

function expectUnavailable({ status, headers, body }: WireAnswer, what: string): void {
  expect(status, `${what}: ${body}`).to.equal(503);
  expect(headers['retry-after'], what).to.match(/^[1-9][0-9]*$/);
  expect(headers['content-type'], what).to.equal('application/json');
  expect(headers, what).not.to.have.any.keys('etag', 'last-modified', 'medref-version');
  const error = JSON.parse(body.toString()) as { data: { message: string } };
  const { message } = error.data;
  expect(error, what).to.deep.equal({
    success: false,
    data: { name: 'Service Unavailable', message, code: 0, status: 503 },
  });
  expect(message, what)
    .to.match(/^[A-Z].*\.$/)
    .and.not.match(/ECONN|ioredis|Command timed out|127\.0\.0\.1/);
}

/** Repeats a request until its response is as wanted. Returns the last response and the milliseconds it took. */
async function until(
  ask: () => Promise<WireAnswer>,
  wanted: (response: WireAnswer) => boolean,
  withinMs: number,
): Promise<{ response: WireAnswer; ms: number }> {
  const started = Date.now();
  let response = await ask();
  while (!wanted(response) && Date.now() - started < withinMs) {
    await sleep(20);
    response = await ask();
  }
  expect(
    wanted(response),
    `${response.status} ${response.body.subarray(0, 300)} after ${withinMs} ms`,
  ).to.equal(true);
  return { response, ms: Date.now() - started };
}

const succeeded = ({ status }: WireAnswer) => status === 200;

/** Limits the time of a promise. Time in which this process, and so its API, waited for a processor does not count. */
async function withTimeout<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  const started = Date.now();
  const keptBefore = keptWaitingMs();
  const result = await promise;
  const took = Date.now() - started - (keptWaitingMs() - keptBefore);
  expect(took, `ms for ${what}`).to.be.at.most(ms);
  return result;
}

/** Returns how long this thread was ready to run and did not run, as the kernel counts it, in ms; 0 if it does not count. */
function keptWaitingMs(): number {
  if (!existsSync('/proc/self/schedstat')) return 0;
  return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6;
}

function health(api: Pick<Asked, 'origin'>, name: 'live' | 'ready'): Promise<WireAnswer> {
  return sendWithoutKey(api, `/health/${name}`);
}

describe('before anything is published', () => {
  const redis = useRedis();
  const api = useApi(redis);

  it('responds with 503 on every data route, never with an empty list', async () => {
    for (const path of [...dataPaths, '/companies', '/companies/1']) {
      expectUnavailable(await send(api(), path), path);
    }
  });

  it('is live and not ready', async () => {
    const live = await health(api(), 'live');
    expect([live.status, live.body.toString()]).to.deep.equal([
      200,
      '{"data":{"status":"live"},"success":true}',
    ]);
    expectUnavailable(await health(api(), 'ready'), 'ready');
  });

  it('serves products within a second of their publication, and 503 for companies', async () => {
    await importRecords(products(3), productCollection, { redisUrl: redis().url });
    await until(() => send(api(), '/products'), succeeded, 1_000);
    expectUnavailable(await send(api(), '/companies'), '/companies');
    expectUnavailable(await send(api(), '/companies/1'), '/companies/1');
  });

  it('is ready once one collection is live, and says which', async () => {
    const { status, body } = await health(api(), 'ready');
    const number = (await send(api(), '/products')).headers['medref-version'];
    expect(status).to.equal(200);
    expect(body.toString()).to.equal(
      `{"data":{"status":"ready","versions":{"products":${number},"drugs":${number},"companies":null},"warnings":[]},"success":true}`,
    );
  });

  it('reports health to anyone, uncached, whatever key is sent', async () => {
    for (const name of ['live', 'ready'] as const) {
      for (const authorization of ['Bearer unknown', 'x', `Bearer ${api().key}`]) {
        const headers = { authorization };
        const response = await sendWithoutKey(api(), `/health/${name}`, { headers });
        expect(response.status).to.equal(200);
        expect(response.headers['content-type']).to.equal('application/json');
        expect(response.headers['cache-control']).to.equal('no-store');
      }
    }
  });
});

describe('a new version', () => {
  const redis = useRedis();
  const [one, other] = [useApi(redis), useApi(redis)];

  it('is served by every process within a second, as records and lists', async () => {
    const options = { redisUrl: redis().url, force: true };
    for (let n = 1; n <= 4; n++) {
      await importRecords(
        [product(1, { drugform: { id: n, name: `FORM ${n}` } })],
        productCollection,
        options,
      );
      const published = Date.now();
      for (const api of [one, other]) {
        for (const path of ['/products', '/products/1']) {
          const isNew = ({ body }: WireAnswer) => body.includes(`FORM ${n}`);
          await until(() => send(api(), path), isNew, 1_000);
        }
      }
      expect(Date.now() - published).to.be.at.most(1_000);
    }
  });

  it('is never mixed with the one before, and no reader goes back', async () => {
    const count = 300;
    const listOf = (n: number) =>
      products(count).map((it) => ({ ...it, drugform: { id: n, name: `FORM ${n}` } }));
    const options = { redisUrl: redis().url, force: true };
    await importRecords(listOf(1), productCollection, options);
    await until(
      () => send(one(), '/products'),
      ({ body }) => body.includes(`"totalCount":${count}`),
      1_000,
    );
    let reading = true;
    const reader = async () => {
      let latest = 0;
      let responses = 0;
      while (reading) {
        const { status, headers, body } = await send(one(), '/products?page=2&per-page=150');
        expect(status).to.equal(200);
        const { data, _meta } = JSON.parse(body.toString());
        const forms = new Set((data as { drugform: { id: number } }[]).map(({ drugform }) => drugform.id));
        expect([forms.size, data.length, _meta.totalCount]).to.deep.equal([1, 150, count]);
        const version = Number(headers['medref-version']);
        expect(version).to.be.at.least(latest);
        latest = version;
        responses++;
      }
      return responses;
    };
    const readers = [reader(), reader()];
    for (let n = 2; n <= 5; n++) await importRecords(listOf(n), productCollection, options);
    reading = false;
    for (const responses of await Promise.all(readers)) expect(responses).to.be.greaterThan(3);
  });
});

describe('while Redis is unavailable', () => {
  const redis = useRedis({ appendOnly: true });
  const api = useApi(redis);
  let paths: readonly string[];
  before(async () => {
    const { version } = await importRecords(products(450), productCollection, { redisUrl: redis().url });
    await importRecords(companies(3), companyCollection, { redisUrl: redis().url });
    expect((await send(api(), '/products')).status).to.equal(200);
    paths = [...dataPaths, '/products/versions', `/products/changes?since=${version}`];
    for (const path of paths) await send(api(), path); // Now the API has everything in memory that it may keep there.
  });

  it('responds with 503 within 2 s after Redis was killed, and with 200 after its restart', async () => {
    await redis().kill();
    for (let round = 1; round <= 3; round++) {
      for (const path of paths) {
        expectUnavailable(await withTimeout(2_000, path, send(api(), path)), `${path}, round ${round}`);
      }
    }
    await redis().restart();
    const { ms } = await until(() => send(api(), '/products'), succeeded, 5_000);
    expect(ms).to.be.at.most(3_000);
    for (const path of ['/products', '/products/1', '/companies']) {
      expect((await send(api(), path)).status, path).to.equal(200);
    }
  });

  it('is live and not ready, and checks everything that needs no data', async () => {
    await redis().kill();
    expect((await health(api(), 'live')).status).to.equal(200);
    expectUnavailable(await withTimeout(2_000, 'ready', health(api(), 'ready')), 'ready');
    expect((await sendWithoutKey(api(), '/products')).status).to.equal(401);
    expect((await send(api(), '/x')).status).to.equal(404);
    expect((await sendWithoutKey(api(), '/health/live', { method: 'POST' })).status).to.equal(405);
    await redis().restart();
    await until(() => health(api(), 'ready'), succeeded, 5_000);
  });

  it('responds with 503 without hanging when Redis freezes, and with 200 afterwards', async () => {
    redis().pause();
    try {
      await sleep(1_000); // The API serves a page from memory until Redis has not confirmed the live version for a second.
      for (let round = 1; round <= 2; round++) {
        const asked = [...dataPaths, '/companies'].map(async (path) =>
          expectUnavailable(await withTimeout(2_500, path, send(api(), path)), path),
        );
        asked.push(
          withTimeout(2_500, 'ready', health(api(), 'ready')).then((it) => expectUnavailable(it, 'ready')),
        );
        asked.push(
          withTimeout(500, 'live', health(api(), 'live'))
            .then(({ status }) => expect(status).to.equal(200))
            .then(),
        );
        await Promise.all(asked);
      }
    } finally {
      redis().resume();
    }
    const { ms } = await until(() => send(api(), '/products'), succeeded, 5_000);
    expect(ms).to.be.at.most(2_000);
  });

  it('loses at most one response when Redis freezes at any moment of a request', async () => {
    const started = Date.now();
    const responses: WireAnswer[] = [];
    const ask = async (delay: number) => {
      await sleep(delay);
      responses.push(await withTimeout(2_500, 'a request', send(api(), '/products/1')));
    };
    const asked = Array.from({ length: 30 }, (_, i) => ask(i * 4));
    while (responses.length === 0) await sleep(1);
    redis().pause();
    try {
      await Promise.all(asked);
    } finally {
      redis().resume();
    }
    expect(Date.now() - started).to.be.at.most(3_500);
    const byStatus = (wanted: number) => responses.filter(({ status }) => status === wanted);
    for (const response of byStatus(503)) expectUnavailable(response, 'a request');
    expect([byStatus(200).length > 0, byStatus(503).length > 0]).to.deep.equal([true, true]);
    expect(byStatus(200).length + byStatus(503).length).to.equal(30);
    await until(() => send(api(), '/products'), succeeded, 5_000);
  });

  it('serves a version that was published while announcements were lost', async () => {
    await redis().kill();
    expectUnavailable(await send(api(), '/companies'), '/companies');
    await redis().restart();
    await importRecords(companies(4), companyCollection, { redisUrl: redis().url });
    const isNew = ({ body }: WireAnswer) => body.includes('"totalCount":4');
    await until(() => send(api(), '/companies'), isNew, 5_000);
  });
});

describe('when Redis has lost data', () => {
  const redis = useRedis();
  const api = useApi(redis);
  let connection: Redis;
  before(async () => {
    connection = await connectForWriting(redis().url);
  });
  after(() => connection.disconnect());
  beforeEach(async () => {
    await importRecords(products(250), productCollection, { redisUrl: redis().url, force: true });
    await until(() => send(api(), '/products/250'), succeeded, 1_000);
  });
  afterEach(() =>
    connection.del(
      ...(['live', 'versions', 'version-documents'] as const).map((it) => `medref:{products}:${it}`),
    ),
  );

  async function contentKey(name: 'records' | 'order' | 'blocks' | 'by-name'): Promise<string> {
    const [key] = (await connection.keys(`medref:{products}:[0-9]*:${name}`)).sort(
      (a, b) => Number(b.split(':')[2]) - Number(a.split(':')[2]),
    );
    return key as string;
  }

  const lists = ['/products', '/products?page=2', '/products?page=25&per-page=10'];

  it('serves lists from blocks alone, and 503, not 404, for records that are lost', async () => {
    const whole = await Promise.all(lists.map((path) => send(api(), path)));
    await connection.del(await contentKey('records'), await contentKey('order'));
    for (const [n, path] of lists.entries())
      expect((await send(api(), path)).body, path).to.deep.equal(whole[n]?.body);
    expect((await send(api(), '/products?page=9')).status).to.equal(200);
    for (const path of ['/products/1', '/products/999']) expectUnavailable(await send(api(), path), path);
  });

  it('responds with 503, not an empty list or 404, without blocks and records', async () => {
    await connection.del(await contentKey('blocks'), await contentKey('records'));
    for (const path of [...lists, '/products/1', '/products/999'])
      expectUnavailable(await send(api(), path), path);
  });

  it('responds with 503 to searches without the index', async () => {
    const searches = ['/products?name=drug', '/products?name=drug&page=2', '/products?name=nobody'];
    await connection.del(await contentKey('by-name'));
    for (const path of searches) expectUnavailable(await send(api(), path), path);
  });

  it('responds with 503, not an empty list, without blocks and order', async () => {
    await connection.del(await contentKey('blocks'), await contentKey('order'));
    for (const path of lists) expectUnavailable(await send(api(), path), path);
    expect((await send(api(), '/products/1')).status).to.equal(200);
  });

  it('responds with 503, not a shorter page, if blocks and single records are missing', async () => {
    await connection.hdel(await contentKey('records'), '7', '249');
    await connection.hdel(await contentKey('blocks'), '0', '1');
    for (const path of ['/products', '/products?page=2']) expectUnavailable(await send(api(), path), path);
    expect((await send(api(), '/products?page=2&per-page=10')).status).to.equal(200);
  });

  it('responds with 503, not a shorter page, if blocks and the end of the order are missing', async () => {
    const order = await contentKey('order');
    await connection.del(await contentKey('blocks'));
    const last = (await connection.hgetBuffer(order, '1')) as Buffer;
    await connection.hset(order, '1', last.subarray(0, -80));
    expectUnavailable(await send(api(), '/products?page=2'), '/products?page=2');
    expect((await send(api(), '/products')).status).to.equal(200);
  });

  it('responds with 503, not another record, if blocks are missing and the order has an unknown id', async () => {
    await connection.del(await contentKey('blocks'));
    const order = await contentKey('order');
    const first = (await connection.hgetBuffer(order, '0')) as Buffer;
    await connection.hset(order, '0', Buffer.concat([packIds([7_777]), first.subarray(8)]));
    expectUnavailable(await send(api(), '/products'), '/products');
  });

  it('responds with 503 without the live pointer, within a second', async () => {
    await connection.del('medref:{products}:live');
    const { response } = await until(
      () => send(api(), '/products'),
      ({ status }) => status !== 200,
      1_000,
    );
    expectUnavailable(response, '/products');
  });

  it('recovers with the next publication', async () => {
    await connection.del(await contentKey('blocks'), await contentKey('records'), 'medref:{products}:live');
    expectUnavailable(await send(api(), '/products'), '/products');
    await connection.del('medref:{products}:versions', 'medref:{products}:version-documents');
    await importRecords(products(9), productCollection, { redisUrl: redis().url, force: true });
    await until(() => send(api(), '/products'), succeeded, 1_000);
  });

  it('responds with 503, never with less data, when Redis returns empty', async () => {
    await redis().kill();
    await redis().restart();
    await until(
      () => send(api(), '/products'),
      ({ status }) => status === 401,
      5_000,
    );
    const { key } = await createApiKey(connection, 'medref', {
      client: 'again',
      expiresAt: null,
      rate: null,
    });
    await api().refreshKeys();
    for (const path of dataPaths) expectUnavailable(await send({ ...api(), key }, path), path);
    expectUnavailable(await health(api(), 'ready'), 'ready');
    expect((await health(api(), 'live')).status).to.equal(200);
  });
});

describe('an API started while Redis is unavailable', () => {
  it('starts, is live, is not ready, and serves once Redis is available', async () => {
    const redis = await startTestRedis({ appendOnly: true });
    const connection = await connectForWriting(redis.url);
    const { key } = await createApiKey(connection, 'medref', {
      client: 'tests',
      expiresAt: null,
      rate: null,
    });
    connection.disconnect();
    await importRecords(products(3), productCollection, { redisUrl: redis.url });
    await redis.kill();

    const serving = connectForServing(redis.url);
    const listener = connectForListening(redis.url);
    const keyPrefix = 'medref';
    const live = new LiveVersions({ redis: serving, listener, keyPrefix, sources: importedCollections });
    const apiKeys = new ApiKeys({ redis: serving, keyPrefix, onDamage: () => undefined });
    const server = await createServer({
      collections: servedCollections,
      readModel: new ReadModel({ redis: serving, live, keyPrefix, onDamage: () => undefined }),
      apiKeys,
      clientVersions: { serving: () => undefined, reported: () => undefined },
      whyUnavailable: () => null,
      host: '127.0.0.1',
      port: 0,
      baseUrl: undefined,
      logger: pino({ level: 'silent' }),
    });
    try {
      live.start();
      await apiKeys.start(listener);
      await withTimeout(1_000, 'the start', server.start());
      const { port } = server.listener.address() as AddressInfo;
      const api = { origin: `http://127.0.0.1:${port}`, port, key };
      for (let round = 1; round <= 2; round++) {
        expect((await health(api, 'live')).status).to.equal(200);
        expectUnavailable(await withTimeout(2_000, 'ready', health(api, 'ready')), 'ready');
        for (const path of dataPaths) {
          expectUnavailable(await withTimeout(2_000, path, send(api, path)), path);
        }
        await sleep(300);
      }
      await redis.restart();
      const { ms } = await until(() => send(api, '/products'), succeeded, 6_000);
      expect(ms).to.be.at.most(3_000);
      expect((await health(api, 'ready')).status).to.equal(200);
      await importRecords(products(4), productCollection, { redisUrl: redis.url });
      await until(
        () => send(api, '/products'),
        ({ body }) => body.includes('"totalCount":4'),
        1_000,
      );
    } finally {
      live.stop();
      apiKeys.stop();
      await server.stop({ timeout: 100 });
      serving.disconnect();
      listener.disconnect();
      await redis.stop();
    }
  });
});

/** An API behind a proxy that can delay each reply of Redis. */
interface LateApi {
  readonly api: TestApi;
  /** The delay of each reply, in ms. */
  lateMs: number;
  readonly logged: readonly string[];
  /** The causes of 503 responses. */
  readonly causes: readonly string[];
  stop(): Promise<void>;
}

async function startLateApi({ port }: { readonly port: number }): Promise<LateApi> {
  const proxy = await startRedisProxy(port, () =>
    late.lateMs === 0 ? undefined : { moment: 'after', commandsPass: true, act: () => sleep(late.lateMs) },
  );
  const logged: string[] = [];
  const causes: string[] = [];
  const late = { lateMs: 0 } as LateApi;
  const api = await startApi({
    redisUrl: proxy.url,
    logger: pino({}, { write: (line: string) => void logged.push(line) }),
    onServiceError: ({ cause }) => void causes.push(cause),
  });
  const stop = async () => {
    await api.stop();
    await proxy.close();
  };
  return Object.assign(late, { api, logged, causes, stop });
}

describe('when replies of Redis are slow', function () {
  this.timeout(20_000);
  const redis = useRedis();
  let version: number;
  let apis: LateApi[];
  before(async () => {
    const report = await importRecords(products(450), productCollection, { redisUrl: redis().url });
    version = report.version as number;
    apis = await Promise.all(asked.map(() => startLateApi(redis())));
  });
  after(() => Promise.all(apis.map((it) => it.stop())));
  beforeEach(() => sleep(600)); // The API remembers a valid key for half a second.
  afterEach(() => {
    for (const it of apis) it.lateMs = 0;
  });

  const lines = { accept: 'application/x-ndjson' };
  const answered = ({ status }: WireAnswer) => status === 200 || status === 304;
  /** `N` stands for the version number. */
  const asked: [what: string, path: string, headers: Record<string, string>][] = [
    ['a search, which needs several', '/products?name=drug', {}],
    ['a page that is put together', '/products?per-page=10&page=3', {}],
    ['a record', '/products/1', {}],
    ['lines', '/products', lines],
    ['changes', '/products/changes?since=N&version=N', {}],
    ['what the client holds', '/products?version=N', { 'if-none-match': '*' }],
    ['a question whether it is ready', '/health/ready', {}],
  ];
  it(`responds with 503 within 2 s in total to ${asked.map(([what]) => what).join(', ')}, and keeps the connection`, async () => {
    await Promise.all(
      asked.map(async ([what, template, headers], n) => {
        // Each request has its own API, so that none waits for the replies to another.
        const late = apis[n] as LateApi;
        const path = template.replaceAll('N', String(version));
        late.lateMs = 1_200;
        const response = await withTimeout(2_100, path, send(late.api, path, { headers }));
        late.lateMs = 0;
        expectUnavailable(response, what);
        expect(late.causes[0], `the cause for ${what}`).to.equal('late');
        await until(() => send(late.api, path, { headers }), answered, 8_000);
        expect(late.logged, `log lines after a late response to ${what}`).to.deep.equal([]);
      }),
    );
  });

  it('succeeds if all replies arrive within 2 s in total, and reports no service error afterwards', async () => {
    const { api } = Object.assign(apis[0] as LateApi, { lateMs: 300 });
    for (const path of ['/products/1', '/health/ready']) {
      expect((await withTimeout(2_000, path, send(api, path))).status, path).to.equal(200);
    }
  });

  it('sends the responses after a slow one on the same connection in order', async () => {
    const { api } = Object.assign(apis[0] as LateApi, { lateMs: 2_200 });
    const head = `HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${api.key}\r\n`;
    const responses = await exchange(
      api,
      `GET /products/1 ${head}\r\nGET /health/live ${head}Connection: close\r\n\r\n`,
    );
    expect(responses.map(({ status }) => status)).to.deep.equal([503, 200]);
  });
});
