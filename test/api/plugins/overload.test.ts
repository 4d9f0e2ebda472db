// More requests at once than a process works on: which are refused, and when it takes some again.

import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { RequestsUnderWay } from '../../../api/answers/requests-under-way.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { startApi, type TestApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { product, products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { send } from '../../support/wire.ts';

const maxRequests = 3;

describe('a process with more requests than it works on', () => {
  const redis = useRedis();
  const causes: string[] = [];
  let api: TestApi;
  let live = 0;
  before(async () => {
    live = await publish(products(9));
    api = await startApi({
      ...{ redisUrl: redis().url, maxRequests, onTrouble: ({ cause }) => void causes.push(cause) },
    });
    expect((await api.get('/products')).status).to.equal(200);
  });
  after(() => api.stop());
  beforeEach(() => {
    causes.length = 0;
  });

  async function publish(records: readonly unknown[]): Promise<number> {
    const { version } = await importRecords(records, productCollection, {
      ...{ redisUrl: redis().url, force: true },
    });
    return version as number;
  }

  it('refuses at once what is beyond, in the shape of every error, and answers all that it has taken', async () => {
    redis().pause(); // It is asked for the records.
    const met = api.requests();
    const taken = Array.from({ length: maxRequests }, () => send(api, '/products/1'));
    while (api.requests() < met + maxRequests) await sleep(5);
    const refused = await api.get('/products/2');
    expect([refused.status, refused.headers.get('retry-after')]).to.deep.equal([503, '1']);
    expect(refused.json()).to.deep.equal({
      success: false,
      data: {
        name: 'Service Unavailable',
        message: 'More requests come than can be answered quickly. Try again shortly.',
        ...{ code: 0, status: 503 },
      },
    });
    expect((await api.get('/products?name=wait=9')).status, 'who names it, and does not wait').to.equal(503);
    expect(causes).to.deep.equal(['overload', 'overload']);
    expect((await send(api, '/health/live')).status).to.equal(200);
    const ready = send(api, '/health/ready'); // Redis is asked for it, too.
    await sleep(20);
    redis().resume();
    expect((await Promise.all(taken)).map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    expect((await ready).status).to.equal(200);
    expect((await api.get('/products/2')).status, 'when they are answered').to.equal(200);
  });

  it('counts nobody who has left, also not who asked on a connection behind another request', async () => {
    redis().pause();
    try {
      const request = `GET /products/1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${api.key}\r\n\r\n`;
      for (let n = 0; n < maxRequests; n += 1) {
        const met = api.requests();
        const client = connect(api.port, '127.0.0.1');
        client.write(request.repeat(2));
        while (api.requests() < met + 2) await sleep(5);
        client.destroy();
        await sleep(20);
      }
    } finally {
      redis().resume();
    }
    await sleep(100);
    expect((await api.get('/products/1')).status).to.equal(200);
    const answers = Array.from({ length: maxRequests - 1 }, () => send(api, '/products/1'));
    expect((await Promise.all(answers)).map(({ status }) => status)).to.deep.equal([200, 200]);
  });

  it('does not count those that wait for a publication, before and after, nor those that left', async () => {
    const waiting = Array.from({ length: maxRequests + 1 }, () =>
      send(api, `/products/changes?since=${live}&wait=20`),
    );
    while (api.waiting() < waiting.length) await sleep(5);
    const leaving = new AbortController();
    const left = api.get(`/products/changes?since=${live}&wait=20`, { signal: leaving.signal });
    while (api.waiting() < waiting.length + 1) await sleep(5);
    leaving.abort();
    await left.catch(() => undefined);
    for (let n = 0; n < 2 * maxRequests; n += 1)
      expect((await api.get('/products/1')).status, 'while they wait').to.equal(200);
    live = await publish([...products(9), product(10)]);
    for (const { status } of await Promise.all(waiting)) expect(status).to.equal(200);
    for (let n = 0; n < 2 * maxRequests; n += 1)
      expect((await api.get('/products/1')).status, 'when they are answered').to.equal(200);
    expect(causes).to.deep.equal([]);
    redis().pause();
    const met = api.requests();
    const taken = Array.from({ length: maxRequests }, () => send(api, '/products/1'));
    while (api.requests() < met + maxRequests) await sleep(5);
    await send(api, '/products/2');
    redis().resume();
    expect(causes, 'beyond as many as before').to.deep.equal(['overload']);
    await Promise.all(taken);
  });

  it('takes a tenth while its event loop is late, and all again when it is not', async () => {
    let time = 0;
    let looked: () => void = () => undefined;
    const now = () => {
      queueMicrotask(looked);
      return time;
    };
    const underWay = new RequestsUnderWay(20, { now });
    const lookAfter = async (ms: number) => {
      time += ms;
      await new Promise<void>((resolve) => {
        looked = resolve;
      });
    };
    underWay.watch();
    try {
      for (let n = 0; n < 2; n += 1) underWay.begin();
      await lookAfter(150);
      expect(underWay.isFull, 'with 2 of 20').to.equal(false);
      await lookAfter(151);
      expect(underWay.isFull, 'with 2 of 20, and late').to.equal(true);
      underWay.end();
      expect(underWay.isFull, 'with 1 of 20, and late').to.equal(false);
      underWay.begin();
      await lookAfter(50);
      expect(underWay.isFull, 'with 2 of 20, and late no more').to.equal(false);
    } finally {
      underWay.stop();
    }
  });

  it('does so by its own event loop', async () => {
    const late = await startApi({
      ...{ redisUrl: redis().url, maxRequests: 20, lateMs: Number.NEGATIVE_INFINITY },
    });
    try {
      await late.get('/products/1');
      await sleep(100);
      redis().pause();
      const taken = [send(late, '/products/1'), send(late, '/products/2')];
      while (late.requests() < 3) await sleep(5);
      const { status } = await late.get('/products/3');
      redis().resume();
      expect(status).to.equal(503);
      expect((await Promise.all(taken)).map((answer) => answer.status)).to.deep.equal([200, 200]);
    } finally {
      redis().resume();
      await late.stop();
    }
  });
});
