// Rates of keys and bounds of streams as clients meet them, at two API processes that share a Redis.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { Rates, Standing } from '../../../api/reads/rates.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { createApiKey, type MadeApiKey } from '../../../shared/store/api-keys.ts';
import { type ApiAnswer, startApi, type TestApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

const accept = { accept: 'application/x-ndjson' };
/** A whole list. */
const lines = { path: '/products', headers: accept };

describe('rates', () => {
  const redis = useRedis();
  let connection: Redis;
  let api: TestApi;
  let other: TestApi;
  let version: number;
  const clients: (string | null)[] = [];
  const held: number[] = [];
  before(async () => {
    connection = await connectForWriting(redis().url);
    const report = await importRecords(products(450), productCollection, { redisUrl: redis().url });
    version = report.version as number;
    api = await startApi({
      ...{ redisUrl: redis().url, maxStreams: 2 },
      onAnswered: ({ status, client, waitedMs }) => {
        if (status !== 429) return;
        clients.push(client);
        held.push(waitedMs ?? 0);
      },
    });
    other = await startApi({ redisUrl: redis().url, defaultRate: '2/s' });
  });
  after(async () => {
    await Promise.all([api.stop(), other.stop()]);
    connection.disconnect();
  });

  const makeKey = (rate: string | null): Promise<MadeApiKey> =>
    createApiKey(connection, 'medref', { client: 'pharmacy', expiresAt: null, rate });
  const get = (
    { key }: { key: string },
    { path = '/products/1', headers = {}, at = api }: { path?: string; headers?: object; at?: TestApi } = {},
  ): Promise<ApiAnswer> => at.get(path, { headers: { authorization: `Bearer ${key}`, ...headers } });
  const fieldsOf = ({ headers }: ApiAnswer) =>
    ['ratelimit-policy', 'ratelimit', 'retry-after'].map((name) => headers.get(name));
  const countOf = (answers: readonly ApiAnswer[], status: number) =>
    answers.filter((it) => it.status === status).length;

  /** How often Redis ran a script since the last time. */
  async function scriptsRun(): Promise<number> {
    const stats = await connection.info('commandstats');
    await connection.config('RESETSTAT');
    return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    );
  }

  it('cost a key without one nothing: no field, and no command', async () => {
    const key = await makeKey(null);
    await scriptsRun();
    expect(fieldsOf(await get(key))).to.deep.equal([null, null, null]);
    expect(await scriptsRun()).to.equal(0);
  });

  it('let a second’s worth through at once, over all processes, and say what is left', async () => {
    const key = await makeKey('10/s');
    const first = await get(key);
    expect(fieldsOf(first)).to.deep.equal(['"default";q=10;w=1', '"default";r=9;t=1', null]);
    const from = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        get(key, { at: n % 2 ? api : other, path: '/products?per-page=1' }),
      ),
    );
    const seconds = (performance.now() - from) / 1_000;
    expect(countOf(answers, 200)).to.be.within(9, 10 + Math.ceil(10 * seconds));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length + countOf(answers, 200)).to.equal(30);
    expect(fieldsOf(refused[0] as ApiAnswer)).to.deep.equal(['"default";q=10;w=1', '"default";r=0;t=1', '1']);
    expect(refused[0]?.text).to.include('"message":"This key may ask 10 times a second. Try again in 1 s."');
    expect(clients).to.include('pharmacy').and.not.include(null);
    // Who asks again as soon as he is refused would take the time of others.
    for (const ms of held) expect(ms).to.be.within(240, 2_000);
  });

  it('tell whole seconds that are enough: until one more, and until a second’s worth', () => {
    const told = ([rate, used]: readonly [number, number]) => {
      const { left, retryAfterS, fullAfterS } = new Standing(true, rate, used);
      return [left, retryAfterS, fullAfterS];
    };
    expect(told([10, 0])).to.deep.equal([10, 1, 1]);
    expect(told([10, 10])).to.deep.equal([0, 1, 1]);
    expect(told([10, 10.1])).to.deep.equal([0, 1, 2]);
    expect(told([10, 20])).to.deep.equal([0, 2, 2]);
    expect(told([1, 2.5])).to.deep.equal([0, 3, 3]);
  });

  it('let a key ask again when it was told to, and not before', async () => {
    const key = await makeKey('1/s');
    expect((await get(key)).status).to.equal(200);
    const from = performance.now();
    expect((await get(key)).status).to.equal(429);
    await sleep(300);
    expect((await get(key)).status).to.equal(429);
    // A tenth of a request is carried over, for clocks that are not that of Redis.
    await sleep(from + 960 - performance.now());
    expect((await get(key)).status).to.equal(200);
  });

  it('do not ask Redis for what is known to be beyond its rate', async () => {
    const key = await makeKey('2/s');
    await scriptsRun();
    const statuses = [(await get(key)).status, (await get(key)).status];
    statuses.push(
      ...(await Promise.all(Array.from({ length: 10 }, () => get(key)))).map(({ status }) => status),
    );
    expect(statuses.slice(0, 3)).to.deep.equal([200, 200, 429]);
    expect(await scriptsRun()).to.be.at.most(2 + statuses.slice(3).filter((it) => it === 200).length + 1);
  });

  it('let in a small share of what is left without asking Redis, which is told a little later', async () => {
    const { id, ...known } = await makeKey('160/s');
    const rates = ratesOf(connection);
    await rates.charge({ id, ...known })?.settle();
    const standings = Array.from({ length: 12 }, () => rates.charge({ id, ...known })?.settle());
    expect(standings.filter((it) => !(it instanceof Promise))).to.have.length(9);
    await Promise.all(standings);
    const level = async () => Number(((await connection.get(`medref:{rate:${id}}`)) ?? '').split(' ')[0]);
    expect(await level(), 'reported with those that were asked for').to.be.above(11.8);
    await sleep(20); // What was let in is no longer so.
    const one = rates.charge({ id, ...known })?.settle();
    expect(one).to.be.a('promise');
    await one;
    for (let n = 0; n < 5; n += 1) rates.charge({ id, ...known })?.begin();
    await sleep(50);
    expect(await level(), 'reported by themselves').to.be.above(4.8);
  });

  it('are those of the key, else the default', async () => {
    const [own, usual] = [await makeKey('5/s'), await makeKey(null)];
    expect(fieldsOf(await get(own, { at: other }))[0]).to.equal('"default";q=5;w=1');
    expect(fieldsOf(await get(usual, { at: other }))[0]).to.equal('"default";q=2;w=1');
  });

  it('do not count 304, which is answered whatever is left, and count what is sent', async () => {
    const paths: [string, object][] = [
      ['/products', {}],
      ['/products/1', {}],
      ['/products?name=drug', {}],
      ['/products/versions', {}],
      [`/products/changes?since=${version}`, {}],
      ['/products', accept],
    ];
    const [free, paid] = [await makeKey(null), await makeKey('1/s')];
    const etags = await Promise.all(
      paths.map(async ([path, headers]) => (await get(free, { path, headers })).headers.get('etag') ?? ''),
    );
    expect((await get(paid)).status).to.equal(200);
    // All at once, since a refusal comes a little later, and the rate gives another request each second.
    await Promise.all(
      paths.map(async ([path, headers], n) => {
        const held = await get(paid, { path, headers: { ...headers, 'if-none-match': etags[n] } });
        expect([held.status, ...fieldsOf(held)], path).to.deep.equal([304, null, null, null]);
        const changed = await get(paid, { path, headers: { ...headers, 'if-none-match': '"x"' } });
        expect(changed.status, path).to.equal(429);
      }),
    );
    const next = await makeKey('9/s');
    await Promise.all(
      paths
        .slice(0, 5)
        .map(([path, headers]) => get(next, { path, headers: { ...headers, 'if-none-match': '"x"' } })),
    );
    // It would be 8 if none of them counted; some may have come back meanwhile.
    expect((await get(next)).headers.get('ratelimit')).to.match(/^"default";r=[3-6];t=1$/);
  });

  it('count errors of requests, too', async () => {
    const key = await makeKey('3/s');
    expect((await get(key, { path: '/products/9999' })).status).to.equal(404);
    expect((await get(key, { path: '/products?page=x' })).status).to.equal(400);
    expect((await get(key)).headers.get('ratelimit')).to.match(/^"default";r=0;/);
  });

  it('count errors of conditional requests, too, and refuse those beyond them', async () => {
    const key = await makeKey('2/s');
    const headers = { 'if-none-match': '"x"' };
    const statuses = [];
    for (const path of ['/products/9999', '/products?page=x', '/products/9999'])
      statuses.push((await get(key, { path, headers })).status);
    expect(statuses).to.deep.equal([404, 400, 429]);
  });

  it('count lines as their pages, and HEAD as one request; they may go into debt', async () => {
    const [key, slow] = [await makeKey('10/s'), await makeKey('1/s')];
    expect((await get(key, lines)).text.split('\n')).to.have.length(451);
    expect((await get(key)).headers.get('ratelimit')).to.match(/^"default";r=[67];/);
    const authorization = `Bearer ${(await makeKey('1/s')).key}`;
    const head = { method: 'HEAD', headers: { ...accept, authorization } };
    expect((await api.get('/products', head)).headers.get('ratelimit')).to.equal('"default";r=0;t=1');
    expect((await api.get('/products', head)).headers.get('retry-after')).to.equal('1');
    expect((await get(slow, lines)).status).to.equal(200);
    const refused = await get(slow);
    expect([refused.status, refused.headers.get('retry-after')]).to.deep.equal([429, '3']);
  });

  it('let no key be in debt for longer than a minute', async () => {
    const { id, key } = await makeKey('1/s');
    const known = { id, client: 'x', createdAt: '', expiresAt: null, rate: '1/s' };
    ratesOf(connection).charge(known)?.owe(1_000_000);
    await sleep(20);
    expect((await get({ key })).headers.get('retry-after')).to.equal('60');
  });

  it('keep nothing for longer than a minute after the last request, and nothing on the disk', async () => {
    const { id, key } = await makeKey('10/s');
    await connection.config('SET', 'appendonly', 'yes');
    const written = async () => Number(/^aof_current_size:(\d+)/m.exec(await connection.info())?.[1]);
    await get({ key });
    await sleep(200); // When the key was used is written, once a minute.
    const before = await written();
    for (let n = 0; n < 5; n += 1) expect((await get({ key })).status).to.equal(200);
    await sleep(50);
    expect(await written()).to.equal(before);
    await connection.config('SET', 'appendonly', 'no');
    expect(await connection.pttl(`medref:{rate:${id}}`)).to.be.within(58_000, 61_000);
  });

  it('are not kept where Redis has no memory to count, which is told', async () => {
    const key = await makeKey('1/s');
    await connection.config('SET', 'maxmemory', '1');
    try {
      for (let n = 0; n < 3; n += 1) expect((await get(key)).status).to.equal(200);
      expect(api.uncounted[0]).to.match(
        /^Requests are not held against the rates of their keys: Redis has reached/,
      );
    } finally {
      await connection.config('SET', 'maxmemory', '0');
    }
    expect((await get(key)).status).to.equal(200);
    expect((await get(key)).status).to.equal(429);
  });

  it('are 503 while Redis is away, as all else', async () => {
    const key = await makeKey('5/s');
    expect((await get(key)).status).to.equal(200);
    redis().pause();
    try {
      expect((await get(key, { path: '/products?per-page=2' })).status).to.equal(503);
    } finally {
      redis().resume();
    }
  });

  it('add no delay to that of the read, however slow Redis is', async () => {
    const slow = await startSlowly(redis().port, 200);
    const late = await startApi({ redisUrl: slow.url });
    try {
      const [free, rated] = [await makeKey(null), await makeKey('50/s')];
      for (const key of [free, rated]) {
        await get(key, { at: late }); // So that the key is known, and the script.
        const from = performance.now();
        expect((await get(key, { at: late })).status).to.equal(200);
        expect(performance.now() - from, 'one round trip').to.be.within(190, 390);
      }
    } finally {
      await late.stop();
      slow.close();
    }
  });

  it('stand beside a bound on the streams that a key has under way', async () => {
    const [key, another] = [await makeKey(null), await makeKey(null)];
    for (const it of [key, another]) expect((await get(it)).status).to.equal(200);
    redis().pause(); // So that they stay under way for a while.
    const [one, two] = [get(key, lines), get(key, lines)];
    let third: ApiAnswer;
    const others: Promise<ApiAnswer>[] = [];
    try {
      await sleep(100);
      third = await get(key, lines);
      others.push(get(another, lines), get(key, { path: '/products' }));
      others.push(
        api.get('/products', { method: 'HEAD', headers: { ...accept, authorization: `Bearer ${key.key}` } }),
      );
      await sleep(20);
    } finally {
      redis().resume();
    }
    expect([third.status, third.headers.get('retry-after')]).to.deep.equal([429, '1']);
    expect(third.text).to.include('This key has 2 streams under way');
    for (const it of [one, two, ...others]) expect((await it).status).to.equal(200);
    for (let n = 0; n < 3; n += 1) expect((await get(key, lines)).status).to.equal(200);
  });
});

function ratesOf(redis: Redis): Rates {
  return new Rates({
    ...{ redis, keyPrefix: 'medref', defaultRate: undefined },
    onUncounted: () => undefined,
  });
}

/** What stands before a Redis and passes on all that it says some ms later. */
async function startSlowly(port: number, ms: number): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((client) => {
    const behind = connect(port, '127.0.0.1');
    for (const socket of [client, behind]) socket.setNoDelay().on('error', () => undefined);
    client.pipe(behind);
    behind.on('data', (chunk) => setTimeout(() => client.write(chunk), ms));
    client.on('close', () => behind.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => void server.close(),
  };
}
