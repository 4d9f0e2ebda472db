// Tests GET /{collection}/changes?since=N&wait=S: when a waiting request gets its response, which one, and what a wait costs.

import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { CompletedRequest } from '../../../api/http.ts';
import { LiveVersions } from '../../../api/read/live-versions.ts';
import { ReadModel } from '../../../api/read/read-model.ts';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { listApiKeys, revokeApiKey } from '../../../shared/store/api-keys.ts';
import { startApi, type TestApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { company, product, products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { exchange, send, type WireAnswer, type WireRequest } from '../../support/wire.ts';

const maxWaiting = 40;

const toldOf = ['status', 'beganMs', 'ms', 'waitedMs', 'route', 'client'] as const;

describe('a request that waits for a publication', () => {
  const server = useRedis();
  const answered: Pick<CompletedRequest, (typeof toldOf)[number]>[] = [];
  const causes: string[] = [];
  const list = products(9);
  let redis: Redis;
  let api: TestApi;
  let other: TestApi;
  let live = 0;
  /** A request that waits longer than any response may take to begin, while the other tests run. */
  let longest: Promise<WireAnswer>;

  before(async () => {
    redis = await connectForWriting(server().url);
    await publish();
    const start = () =>
      startApi({
        ...{ redisUrl: server().url, maxWaiting },
        // The values of a completed request are not kept, so they are read at once.
        onResponse: ({ status, beganMs, ms, waitedMs, route, client }) =>
          void answered.push({ status, beganMs, ms, waitedMs, route, client }),
        onServiceError: ({ cause }) => void causes.push(cause),
      });
    [api, other] = [await start(), await start()];
    const { version } = await importRecords([company(1)], companyCollection, { redisUrl: server().url });
    longest = send(other, `/companies/changes?since=${version}&wait=3`);
  });
  after(async () => {
    await Promise.all([api.stop(), other.stop()]);
    redis.disconnect();
  });

  async function publish(): Promise<number> {
    list.push(product(list.length + 1));
    const report = await importRecords(list, productCollection, { redisUrl: server().url });
    expect(report.outcome, report.reason ?? '').to.equal('published');
    live = report.version as number;
    return live;
  }
  const path = (more = '', since = live) => `/products/changes?since=${since}&wait=60${more}`;
  const untilWaiting = async (count: number) => {
    while (api.waiting() !== count) await sleep(2);
  };
  /** Starts waiting requests. The returned object has a promise of their responses. */
  async function begin(target = path(), options: WireRequest = {}, count = 1) {
    const before = api.waiting();
    const responses = Array.from({ length: count }, () => send(api, target, options));
    await untilWaiting(before + count);
    return { responses: Promise.all(responses) };
  }
  const dataOf = ({ body }: WireAnswer) => JSON.parse(String(body)).data as { readonly id: number }[];
  const messageOf = ({ body }: WireAnswer) => JSON.parse(String(body)).data.message as string;

  /** Returns how often Redis has run each command so far. */
  const commands = async () => {
    const reported = await redis.info('commandstats');
    const counts = [...reported.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name, calls]) => [
      name,
      calls,
    ]);
    return Object.fromEntries(counts) as Record<string, string>;
  };
  const calls = (name: string, it: Record<string, string>) => Number(it[name] ?? 0);

  it('gets the changes of the next publication, as a request without wait does', async () => {
    const since = live;
    const { responses } = await begin();
    await publish();
    const from = performance.now();
    const [response] = await responses;
    expect(performance.now() - from).to.be.below(500);
    expect([response?.status, response?.headers['medref-version']]).to.deep.equal([200, String(live)]);
    const plain = await send(api, `/products/changes?since=${since}`);
    expect([String(response?.body), response?.headers.etag]).to.deep.equal([
      String(plain.body),
      plain.headers.etag,
    ]);
    expect(dataOf(plain).map(({ id }) => id)).to.deep.equal([list.length]);
  });

  it('gets a response at once if something was published since, or with a version', async () => {
    const since = live;
    await publish();
    for (const target of [path('', since), path(`&version=${live}`), path(`&version=${since}`, since)]) {
      const { status, body } = await send(api, target);
      expect([target, status, String(body).includes('wait')]).to.deep.equal([target, 200, false]);
    }
    const never = await send(api, path('', 7));
    expect(`${never.status} ${messageOf(never)}`).to.match(
      /^410 Changes of products since version 7 are not kept/,
    );
    expect(api.waiting()).to.equal(0);
  });

  it('has links with its own address, even if other clients wait for the same', async () => {
    const hosts = ['one.example', 'other.example'];
    const waiting = [];
    for (const host of hosts) waiting.push(await begin(path(), { headers: { host } }));
    await publish();
    for (const [n, { responses }] of waiting.entries()) {
      const [response] = await responses;
      const { self } = JSON.parse(String(response?.body))._links;
      expect(self.href).to.include(`http://${hosts[n]}/products/changes?`);
    }
  });

  it('works for drugs, which are published with the products', async () => {
    const { responses } = await begin(path().replace('products', 'drugs'));
    await publish();
    const [response] = await responses;
    expect(dataOf(response as WireAnswer)).to.have.length(1);
  });

  it('gets an empty list when its time is over, or 304 if the client has that', async () => {
    const now = await send(api, `/products/changes?since=${live}`);
    const held = { 'if-none-match': String(now.headers.etag) };
    const target = `/products/changes?since=${live}&wait=1`;
    const from = performance.now();
    const [empty, unchanged, head] = await Promise.all([
      send(api, target),
      send(api, target, { headers: held }),
      send(api, target, { method: 'HEAD' }),
    ]);
    expect(performance.now() - from).to.be.within(990, 1_900);
    expect([empty.status, String(empty.body)]).to.deep.equal([200, String(now.body)]);
    expect([unchanged.status, unchanged.headers.etag]).to.deep.equal([304, now.headers.etag]);
    expect([head.status, head.headers.etag, head.body.length]).to.deep.equal([200, now.headers.etag, 0]);
    const { responses } = await begin(path(), { headers: held });
    await publish();
    expect((await responses)[0]?.status).to.equal(200);
  });

  it('waits from a version that another process served first', async () => {
    // It receives no announcements, and never asks for the live version by itself.
    const deaf = new LiveVersions({
      ...{ redis, listener: redis, keyPrefix: 'medref', sources: [productCollection] },
    });
    const readModel = new ReadModel({ redis, live: deaf, keyPrefix: 'medref', onDamage: () => undefined });
    const served = { collection: productCollection, source: productCollection };
    const before = live;
    expect(await readModel.isLatest(served, before)).to.equal(true);
    await publish();
    expect(await readModel.isLatest(served, live)).to.equal(true);
    expect(await readModel.isLatest(served, before)).to.equal(false);
    expect(await readModel.isLatest(served, live + 1)).to.equal(false);
  });

  it('is 400 without "since", or with seconds outside 1 to 60', async () => {
    expect(messageOf(await send(api, '/products/changes?wait=1'))).to.contain('since is missing');
    for (const wait of ['0', '61', '1.5', '-1', 'x', '', '1e1', '１']) {
      const response = await send(api, `/products/changes?since=${live}&wait=${encodeURIComponent(wait)}`);
      expect([wait, response.status]).to.deep.equal([wait, 400]);
      expect(messageOf(response)).to.match(
        /^The parameter wait .* accepts seconds as a whole number from 1 to 60\.$/,
      );
    }
    expect((await send(api, '/products?wait=1')).status).to.equal(400);
  });

  it('sends nothing to Redis while it waits, and next to nothing for the response', async () => {
    const { responses } = await begin(path(), {}, maxWaiting);
    const before = await commands();
    await sleep(100);
    const asked = Object.entries(await commands()).filter(([name, its]) => its !== before[name]);
    expect(
      asked.map(([name]) => name).filter((name) => !['info', 'get', 'hget'].includes(name)),
    ).to.deep.equal([]);
    const published = await publish();
    for (const { headers } of await responses) expect(headers['medref-version']).to.equal(String(published));
    const after = await commands();
    for (const name of ['hmget', 'hget', 'zscore', 'exists'])
      expect(calls(name, after) - calls(name, before), name).to.be.below(maxWaiting / 2);
  });

  it('is 503 at the limit of waiting requests, until one of them disconnects', async () => {
    const sockets = Array.from({ length: maxWaiting }, () => connect(api.port, '127.0.0.1'));
    const head = `GET ${path()} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${api.key}\r\n\r\n`;
    for (const socket of sockets) socket.on('error', () => undefined).write(head);
    await untilWaiting(maxWaiting);
    const refused = await send(api, path());
    expect([refused.status, refused.headers['retry-after']]).to.deep.equal([503, '1']);
    expect(messageOf(refused)).to.match(/^Too many requests are waiting for a publication\. /);
    expect(causes).to.deep.equal(['busy']);
    expect((await send(api, '/products/1')).status).to.equal(200);
    sockets[0]?.destroy();
    sockets[1]?.resetAndDestroy();
    sockets[2]?.end();
    await untilWaiting(maxWaiting - 3);
    await sleep(20); // By now, Redis has replied to all earlier commands.
    const before = await commands();
    for (const socket of sockets) socket.destroy();
    await untilWaiting(0);
    await sleep(20);
    expect(calls('exists', await commands()), 'nothing is read for closed connections').to.equal(
      calls('exists', before),
    );
    expect(answered.filter(({ status }) => status === null)).to.have.length(maxWaiting);
  });

  it('keeps the order of responses on its connection', async () => {
    const request = (target: string, field = '') =>
      `GET ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${api.key}\r\n${field}\r\n`;
    const both = exchange(api, request(path()) + request('/products/1', 'Connection: close\r\n'));
    await untilWaiting(1);
    await publish();
    const [first, second] = await both;
    expect(dataOf(first as WireAnswer)).to.have.length(1);
    expect(JSON.parse(String(second?.body)).data).to.deep.equal(product(1));
  });

  it('is 401 if its key was revoked meanwhile', async () => {
    const { key } = await api.makeKey({ client: 'leaving' });
    const { responses } = await begin(path(), { headers: { authorization: `Bearer ${key}` } });
    const [leaving] = (await listApiKeys(redis, 'medref')).filter(({ client }) => client === 'leaving');
    await revokeApiKey(redis, 'medref', String(leaving?.id));
    await api.refreshKeys();
    await publish();
    const [response] = await responses;
    expect([response?.status, response?.headers['www-authenticate']]).to.deep.equal([
      401,
      'Bearer realm="medref"',
    ]);
  });

  it('does not count as slow in metrics and logs, which show how long it waited', async () => {
    const { responses } = await begin();
    await sleep(400);
    await publish();
    await responses;
    while (!answered.at(-1)?.waitedMs) await sleep(2);
    const { beganMs, ms, waitedMs, route, client } = answered.at(-1) as (typeof answered)[number];
    expect(waitedMs).to.be.above(400);
    expect(beganMs).to.be.below(400);
    expect(ms).to.be.closeTo((waitedMs as number) + (beganMs as number), 200);
    expect([route, client]).to.deep.equal(['/products/changes', 'tests']);
    await send(api, '/products/1');
    expect(answered.at(-1)?.waitedMs).to.equal(null);
  });

  it('may take longer than any other response', async () => {
    const { status, body } = await longest;
    expect([status, JSON.parse(String(body)).data]).to.deep.equal([200, []]);
  });

  it('gets a response when the process stops, and its connection closes', async () => {
    const response = send(other, path());
    while (other.waiting() < 1) await sleep(2);
    await other.stop();
    const { status, headers, body } = await response;
    expect([status, headers.connection, JSON.parse(String(body)).data]).to.deep.equal([200, 'close', []]);
  });

  it('is 503 if Redis is unavailable at the end of its wait, and at once if it is before', async () => {
    const { responses } = await begin(`/products/changes?since=${live}&wait=1`);
    await sleep(700);
    const from = performance.now();
    await server().kill();
    expect((await responses)[0]?.status).to.equal(503);
    expect(performance.now() - from, 'it does not wait again').to.be.below(1_200);
    await sleep(700);
    expect((await send(api, path())).status).to.equal(503);
    expect(performance.now() - from).to.be.below(3_000);
  });
});
