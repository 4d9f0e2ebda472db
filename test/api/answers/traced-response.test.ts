// Every answer carries the id of its request, and what came of each request is told when its answer has ended.

import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import type { AnsweredRequest } from '../../../api/answers/traced-response.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting } from '../../../shared/redis/connections.ts';
import { startApi, type TestApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { productKeys } from '../../support/keys.ts';
import { products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { exchange, send, sendWithoutKey } from '../../support/wire.ts';

/** What is told of a request, as it is when that is told. */
function factsOf(it: AnsweredRequest): AnsweredRequest {
  const { requestId, method, target, route, status, beganMs, ms, waitedMs, bytes, isWhole, client, address } =
    it;
  const times = { beganMs, ms, waitedMs };
  return { requestId, method, target, route, status, ...times, bytes, isWhole, client, address };
}

describe('a request that is answered', function () {
  this.timeout(30_000);
  const redis = useRedis();
  const logged: Record<string, unknown>[] = [];
  const told: AnsweredRequest[] = [];
  const troubles: [cause: string, requestId: string][] = [];
  let api: TestApi;
  let version: number;

  before(async () => {
    const imported = await importRecords(products(450), productCollection, { redisUrl: redis().url });
    version = imported.version as number;
    api = await startApi({
      redisUrl: redis().url,
      logger: pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) }),
      onAnswered: (it) => void told.push(factsOf(it)),
      onTrouble: ({ cause }, requestId) => void troubles.push([cause, requestId]),
    });
  });
  after(() => api.stop());
  beforeEach(() => {
    told.length = 0;
  });

  /** What is told of the only request of a test. */
  async function only(): Promise<AnsweredRequest> {
    for (const deadline = Date.now() + 2_000; told.length === 0 && Date.now() < deadline; ) await sleep(5);
    expect(told).to.have.length(1);
    return told[0] as AnsweredRequest;
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
    it(`has its own id, or one of ours: ${status} for ${method} ${path} ${JSON.stringify(headers)}`, async () => {
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

  it('has one of ours where its own is not 1 to 128 visible ASCII characters', async () => {
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
    const [answer] = await exchange(api, twice);
    expect(answer?.headers['x-request-id']).to.match(ofOurs);
  });

  it('has an id and is told of, also where it never gets to a route', async () => {
    const cases: [bytes: string, status: number, method: string | null, id: RegExp][] = [
      ['nonsense\r\n\r\n', 400, null, ofOurs],
      [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`, 431, null, ofOurs],
      ['CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nX-Request-Id: mine\r\n\r\n', 400, 'CONNECT', /^mine$/],
      ['GET /products HTTP/1.1\r\nX-Request-Id: mine\r\n\r\n', 400, 'GET', /^mine$/],
    ];
    for (const [bytes, status, method, id] of cases) {
      told.length = 0;
      const answers = await exchange(api, bytes);
      expect(answers.map((it) => it.status)).to.deep.equal([status]);
      expect(answers[0]?.headers['x-request-id']).to.match(id);
      expect(answers[0]?.headers).to.include(safe);
      const it = await only();
      expect([it.status, it.method, it.route, it.bytes, it.address]).to.deep.equal([
        ...[status, method, null, answers[0]?.body.length, '127.0.0.1'],
      ]);
      expect(it.requestId).to.equal(answers[0]?.headers['x-request-id']);
    }
  });

  it('is told of with its route, client, times and the bytes of its body', async () => {
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
      told.length = 0;
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
      told.length = 0;
      await sendWithoutKey(api, path);
      const it = await only();
      expect([it.client, it.route, it.status]).to.deep.equal([null, route, status]);
    }
  });

  it('is told of as cut off where its client goes before the end', async () => {
    redis().pause(); // So that no answer begins.
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

  it('is named by the log where it failed, and by what is told of its trouble', async () => {
    troubles.length = 0;
    await send(api, '/companies', { headers: { 'x-request-id': 'of-the-companies' } });
    expect(troubles).to.deep.equal([['nothing-published', 'of-the-companies']]);

    const writing = await connectForWriting(redis().url);
    try {
      // Of the last of three blocks, so that the stream has begun by then.
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
