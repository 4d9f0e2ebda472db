// Tests request ids, reports of completed requests, connection limits, overload, and how a server stops.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import type { CompletedRequest } from '../../api/http.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { startApi, type TestApi, useApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { productKeys } from '../support/keys.ts';
import { product, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { exchange, send, sendWithoutKey } from '../support/wire.ts';

/** Copies the reported values of a request at once. */
function factsOf(it: CompletedRequest): CompletedRequest {
  const { requestId, method, target, route, status, beganMs, ms, waitedMs, bytes, isWhole, client, address } =
    it;
  const times = { beganMs, ms, waitedMs };
  return { requestId, method, target, route, status, ...times, bytes, isWhole, client, address };
}

describe('a request with a response', function () {
  this.timeout(30_000);
  const redis = useRedis();
  const logged: Record<string, unknown>[] = [];
  const reported: CompletedRequest[] = [];
  const troubles: [cause: string, requestId: string][] = [];
  let api: TestApi;
  let version: number;

  before(async () => {
    const imported = await importRecords(products(450), productCollection, { redisUrl: redis().url });
    version = imported.version as number;
    api = await startApi({
      redisUrl: redis().url,
      logger: pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) }),
      onResponse: (it) => void reported.push(factsOf(it)),
      onServiceError: ({ cause }, requestId) => void troubles.push([cause, requestId]),
    });
  });
  after(() => api.stop());
  beforeEach(() => {
    reported.length = 0;
  });

  /** Returns the report of the only request of a test. */
  async function only(): Promise<CompletedRequest> {
    for (const deadline = Date.now() + 2_000; reported.length === 0 && Date.now() < deadline; )
      await sleep(5);
    expect(reported).to.have.length(1);
    return reported[0] as CompletedRequest;
  }

  const ofOurs = /^[\w-]{12}-[0-9a-z]+$/;
  const safe = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' };
  const asked: [
    status: number,
    path: string,
    options: { key?: false; method?: string; headers?: Record<string, string> },
  ][] = [
    [200, '/products', { headers: { 'accept-encoding': 'gzip' } }],
    [200, '/products/1', {}],
    [200, '/products', { method: 'HEAD' }],
    [200, '/products', { headers: { accept: 'application/x-ndjson' } }],
    [200, '/products', { headers: { accept: 'application/x-ndjson', 'accept-encoding': 'gzip' } }],
    [200, '/products?name=a', {}],
    [200, '/products/versions', {}],
    [304, '/products', { headers: { 'if-none-match': '*' } }],
    [200, '/health/live', { key: false }],
    [200, '/health/ready', { key: false }],
    [400, '/products?page=0', {}],
    [400, '/%ff', {}],
    [401, '/products', { key: false }],
    [404, '/nothing', {}],
    [405, '/products', { method: 'POST' }],
    [410, '/products?version=7', {}],
    [417, '/products', { headers: { expect: 'miracles' } }],
    [503, '/companies', {}],
  ];

  for (const [status, path, { key, method = 'GET', headers = {} }] of asked) {
    it(`keeps its id, or gets one: ${status} for ${method} ${path} ${JSON.stringify(headers)}`, async () => {
      const ask = key === false ? sendWithoutKey : send;
      const ours = await ask(api, path, { method, headers });
      expect(ours.status).to.equal(status);
      expect(ours.headers['x-request-id']).to.match(ofOurs);
      const theirs = await ask(api, path, { method, headers: { ...headers, 'x-request-id': 'their-id' } });
      expect(theirs.headers['x-request-id']).to.equal('their-id');
      expect(ours.headers).to.include(safe);
      expect({ ...theirs.headers, date: '' }).to.have.all.keys({ ...ours.headers });
    });
  }

  it('gets an id if its own is not 1 to 128 visible ASCII characters', async () => {
    const edges: [sent: string, isTaken: boolean][] = [
      ['!', true],
      ['~'.repeat(128), true],
      ['x'.repeat(129), false],
      ['', false],
      ['a b', false],
      ['é', false],
      ['a\tb', false],
    ];
    for (const [sent, isTaken] of edges) {
      const { headers } = await send(api, '/products/1', { headers: { 'x-request-id': sent } });
      if (isTaken) expect(headers['x-request-id']).to.equal(sent);
      else expect(headers['x-request-id'], sent).to.match(ofOurs);
    }
    const [one, other] = await Promise.all([send(api, '/products/1', {}), send(api, '/products/1', {})]);
    expect(one?.headers['x-request-id']).not.to.equal(other?.headers['x-request-id']);
    const twice =
      'GET /health/live HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\r\nX-Request-Id: b\r\nConnection: close\r\n\r\n';
    const [response] = await exchange(api, twice);
    expect(response?.headers['x-request-id']).to.match(ofOurs);
  });

  it('has an id and is reported, even without a route', async () => {
    const cases: [bytes: string, status: number, method: string | null, id: RegExp][] = [
      ['nonsense\r\n\r\n', 400, null, ofOurs],
      [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`, 431, null, ofOurs],
      ['CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nX-Request-Id: mine\r\n\r\n', 400, 'CONNECT', /^mine$/],
      ['GET /products HTTP/1.1\r\nX-Request-Id: mine\r\n\r\n', 400, 'GET', /^mine$/],
    ];
    for (const [bytes, status, method, id] of cases) {
      reported.length = 0;
      const responses = await exchange(api, bytes);
      expect(responses.map((it) => it.status)).to.deep.equal([status]);
      expect(responses[0]?.headers['x-request-id']).to.match(id);
      expect(responses[0]?.headers).to.include(safe);
      const it = await only();
      expect([it.status, it.method, it.route, it.bytes, it.address]).to.deep.equal([
        ...[status, method, null, responses[0]?.body.length, '127.0.0.1'],
      ]);
      expect(it.requestId).to.equal(responses[0]?.headers['x-request-id']);
    }
  });

  it('is reported with route, client, times and bytes', async () => {
    const cases: [path: string, method: string, headers: Record<string, string>, route: string][] = [
      ['/products?page=2', 'GET', { 'accept-encoding': 'gzip' }, '/products'],
      ['/products/3', 'GET', {}, '/products/{id}'],
      ['/products', 'HEAD', {}, '/products'],
      ['/products', 'GET', { accept: 'application/x-ndjson' }, '/products'],
      ['/products', 'GET', { 'if-none-match': '*' }, '/products'],
      ['/products/x', 'GET', {}, '/products/{id}'],
      ['/products', 'POST', {}, '/products'],
    ];
    for (const [path, method, headers, route] of cases) {
      reported.length = 0;
      const { status, body } = await send(api, path, { method, headers });
      const { ms, beganMs, requestId, ...facts } = await only();
      expect(facts).to.deep.equal({
        ...{ method, target: path, route, status, waitedMs: null, bytes: body.length },
        ...{ isWhole: true, client: 'tests', address: '127.0.0.1' },
      });
      expect(requestId).to.match(ofOurs);
      expect(beganMs).to.be.above(0).and.at.most(ms);
      expect(ms).to.be.below(2_000);
    }
    for (const [path, route, status] of [
      ['/products/1', '/products/{id}', 401],
      ['/health/live', '/health/live', 200],
      ['/nothing', '/{any*}', 404],
    ] as const) {
      reported.length = 0;
      await sendWithoutKey(api, path);
      const it = await only();
      expect([it.client, it.route, it.status]).to.deep.equal([null, route, status]);
    }
  });

  it('is reported as truncated if the client disconnects early', async () => {
    redis().pause(); // Redis is paused, so that no response begins.
    try {
      const met = api.requests();
      const socket = connect(api.port, '127.0.0.1');
      socket.write(`GET /products/1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.key}\r\n\r\n`);
      while (api.requests() === met) await sleep(5);
      socket.resetAndDestroy();
      await once(socket, 'close');
      const { isWhole, status } = await only();
      expect({ isWhole, status }).to.deep.equal({ isWhole: false, status: null });
    } finally {
      redis().resume();
    }
  });

  it('has its id in the log of its error', async () => {
    troubles.length = 0;
    await send(api, '/companies', { headers: { 'x-request-id': 'of-the-companies' } });
    expect(troubles).to.deep.equal([['nothing-published', 'of-the-companies']]);

    const writing = await connectForWriting(redis().url);
    try {
      // These belong to the last of three blocks, so the stream has begun by then.
      await writing.hdel(productKeys.content(version).blocks, '2');
      await writing.hdel(productKeys.content(version).records, '450');
    } finally {
      writing.disconnect();
    }
    await send(api, '/products', {
      headers: { accept: 'application/x-ndjson', 'x-request-id': 'of-the-stream' },
    }).catch(() => undefined);
    await sleep(100);
    const resets = logged.filter(({ msg }) => msg === 'A stream was reset.');
    expect(resets.map(({ requestId }) => requestId)).to.deep.equal(['of-the-stream']);
  });
});

const stallMs = 1_500;

describe('a connection', function () {
  this.timeout(20_000);
  const redis = useRedis();
  const api = useApi(redis);
  const impatient = useApi(redis, { stallMs });
  const count = 2_000;
  const records = Array.from({ length: count }, (_, i) =>
    product(i + 1, { drugform: { id: 1, name: randomBytes(2_700).toString('base64') } }),
  );
  before(async () => {
    await importRecords(records, productCollection, { redisUrl: redis().url });
  });

  const opened: Socket[] = [];
  afterEach(() => {
    for (const socket of opened.splice(0)) socket.destroy();
  });

  type Api = ReturnType<typeof api>;
  const requestOf = ({ key }: Api, path: string, fields = '') =>
    `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n${fields}\r\n`;

  /** Opens a connection that reads nothing until a test resumes it. */
  async function openUnread(asked: Api, bytes: string): Promise<Socket> {
    const socket = connect(asked.port, '127.0.0.1');
    opened.push(socket.on('error', () => undefined));
    await once(socket, 'connect');
    socket.pause().write(bytes);
    return socket;
  }

  /** Returns the time until the service closes a connection, in ms from now. */
  async function untilLetGo(asked: Api, socket: Socket): Promise<number> {
    const from = performance.now();
    while (asked.isOpen(socket) && performance.now() - from < 10 * stallMs) await sleep(10);
    return performance.now() - from;
  }

  it('gets ten pipelined responses in order, and is closed beyond that', async () => {
    const requests = Array.from({ length: 9 }, (_, n) => requestOf(api(), `/products/${n + 1}`));
    requests.push(requestOf(api(), '/products/10', 'Connection: close\r\n'));
    const responses = await exchange(api(), requests.join(''));
    const ids = responses.map(({ body }) => JSON.parse(body.toString()).data.product.id);
    expect(ids).to.deep.equal([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    const socket = await openUnread(api(), requestOf(api(), '/products/1').repeat(50));
    expect(await untilLetGo(api(), socket)).to.be.below(1_000);
  });

  it('costs little if it requests much and reads nothing', async () => {
    const page = requestOf(api(), '/products?per-page=13');
    const before = process.memoryUsage();
    await Promise.all(Array.from({ length: 10 }, () => openUnread(api(), page.repeat(600))));
    for (let n = 0; n < 5; n += 1) {
      expect((await send(api(), '/products/1')).status).to.equal(200);
      await sleep(100);
    }
    const { arrayBuffers, heapUsed } = process.memoryUsage();
    const grown = arrayBuffers + heapUsed - before.arrayBuffers - before.heapUsed;
    expect(grown / 1e6, 'MB').to.be.below(100);
  });

  it('responds to a bad request after the good ones before it', async () => {
    const responses = await exchange(api(), `${requestOf(api(), '/products/1').repeat(5)}garbage\r\n\r\n`);
    expect(responses.map(({ status }) => status)).to.deep.equal([...Array(5).fill(200), 400]);
  });

  const stalled: [what: string, path: string, fields: string, times: number][] = [
    ['a page', '/products', '', 8],
    ['a page in gzip', '/products', 'Accept-Encoding: gzip\r\n', 8],
    ['lines', '/products', 'Accept: application/x-ndjson\r\n', 1],
    ['lines in gzip', '/products', 'Accept: application/x-ndjson\r\nAccept-Encoding: gzip\r\n', 1],
  ];
  for (const [what, path, fields, times] of stalled) {
    it(`is closed if its client reads nothing of ${what} for the documented time`, async function () {
      this.retries(1); // The test fails if the machine itself stalls as long as a client may.
      const socket = await openUnread(impatient(), requestOf(impatient(), path, fields).repeat(times));
      expect(await untilLetGo(impatient(), socket)).to.be.within(stallMs - 100, 6 * stallMs);
    });
  }
});

describe('a process with event-loop lag', () => {
  const redis = useRedis();

  it('refuses requests with 503 except health checks, and logs it', async () => {
    const causes: string[] = [];
    const late = await startApi({
      ...{ redisUrl: redis().url, lateMs: Number.NEGATIVE_INFINITY },
      onServiceError: ({ cause }) => void causes.push(cause),
    });
    const refused = await late.get('/products/1');
    expect([refused.status, refused.headers.get('retry-after')]).to.deep.equal([503, '1']);
    expect(refused.json()).to.deep.equal({
      success: false,
      data: {
        name: 'Service Unavailable',
        message: 'Too many requests in flight. Try again shortly.',
        ...{ code: 0, status: 503 },
      },
    });
    expect(causes).to.deep.equal(['overload']);
    expect((await late.get('/health/live')).status).to.equal(200);
    await late.stop();
  });
});

/** Long enough for a request to arrive, and short enough for a test. */
const quietMs = 1_500;

const asked = 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n';

describe('a server that stops', () => {
  const redis = useRedis();
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi({ redisUrl: redis().url, quietMs });
  });

  async function open(): Promise<Client> {
    const socket = connect(api.port, '127.0.0.1');
    const client: Client = { socket, text: '', ended: once(socket, 'close') };
    socket.on('data', (chunk) => {
      client.text += chunk;
    });
    await once(socket, 'connect');
    return client;
  }

  async function answerTo(client: Client, bytes = asked): Promise<string> {
    client.text = '';
    client.socket.write(bytes);
    while (!client.text.endsWith('}')) await once(client.socket, 'data');
    return client.text;
  }

  it('serves a further request on an idle connection, and closes it with that response', async () => {
    const [idle, fresh] = [await open(), await open()];
    expect(await answerTo(idle))
      .to.match(/^HTTP\/1.1 200 /)
      .and.to.match(/^connection: keep-alive/im);
    const from = performance.now();
    const stopped = api.stop();
    await sleep(50);
    for (const client of [idle, fresh]) {
      expect(await answerTo(client))
        .to.match(/^HTTP\/1.1 200 /)
        .and.to.match(/^connection: close/im);
      await client.ended;
    }
    await stopped;
    expect(performance.now() - from, 'it waits for no client').to.be.below(quietMs);
  });

  it('does so for Expect: 100-continue, too', async () => {
    const idle = await open();
    const stopped = api.stop();
    await sleep(50);
    const expecting = asked.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n');
    expect(await answerTo(idle, expecting))
      .to.match(/^HTTP\/1.1 200 /m)
      .and.to.match(/^connection: close/im);
    await stopped;
  });

  it('closes silent connections, and refuses new ones', async () => {
    const idle = await open();
    const from = performance.now();
    const stopped = api.stop();
    await sleep(20);
    const late = connect(api.port, '127.0.0.1');
    const [error] = (await once(late, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).to.equal('ECONNREFUSED');
    await idle.ended;
    expect(performance.now() - from).to.be.above(quietMs - 20);
    await stopped;
  });

  it('marks the response in progress as the last one', async () => {
    const client = await open();
    redis().pause(); // The API must ask Redis for the key.
    const response = answerTo(
      client,
      `GET /products HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${api.key}\r\n\r\n`,
    );
    await sleep(30);
    const stopped = api.stop();
    await sleep(30);
    redis().resume();
    expect(await response).to.match(/^connection: close/im);
    await stopped;
  });
});

interface Client {
  readonly socket: Socket;
  text: string;
  readonly ended: Promise<unknown>;
}
