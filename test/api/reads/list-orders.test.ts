import { expect } from 'chai';
import { HashReads } from '../../../api/reads/hash-reads.ts';
import { ListOrders } from '../../../api/reads/list-orders.ts';
import { formatOf } from '../../../shared/formats/content-format.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { packIds, rangeIds } from '../../../shared/store/packed-ids.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('the order of a list, as it is read', () => {
  const server = useRedis();
  let redis: Redis;
  let orders: ListOrders;
  const ids = Array.from({ length: 950 }, (_, n) => (n % 2 === 0 ? n + 1 : Number.MAX_SAFE_INTEGER - n));
  const order = { key: 'order', name: 'first', count: ids.length, format: formatOf({ format: 2 }) };
  const expected = (from: number, count: number) => ids.slice(from, from + count).map(String);
  const write = async (all: readonly number[]) => {
    await redis.del(order.key);
    for (let from = 0; from < all.length; from += rangeIds)
      await redis.hset(
        order.key,
        from / rangeIds,
        packIds(all.slice(from, from + rangeIds), from / rangeIds),
      );
  };
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  beforeEach(async () => {
    await write(ids);
    orders = new ListOrders(new HashReads(redis));
  });
  after(() => redis.disconnect());

  for (const [from, count] of [
    [0, 1],
    [0, 950],
    [190, 10],
    [190, 11],
    [199, 2],
    [200, 1],
    [399, 402],
    [949, 1],
    [700, 0],
  ] as const) {
    it(`gives ${count} ids from ${from} on`, async () => {
      expect(await orders.ids(order, { from, count })).to.deep.equal(expected(from, count));
    });
  }

  it('is remembered by its name', async () => {
    const span = { from: 195, count: 10 };
    await orders.ids(order, span);
    await write([...ids].reverse());
    expect(await orders.ids(order, span)).to.deep.equal(expected(195, 10));
    expect(await orders.ids({ ...order, name: 'second' }, span)).not.to.deep.equal(expected(195, 10));
  });

  it('is not remembered where it is not whole: what is there is given, until it is mended', async () => {
    for (const there of [480, 400, 0]) {
      await write(ids.slice(0, there));
      expect(await orders.ids(order, { from: 390, count: 5 })).to.deep.equal(
        expected(390, Math.min(5, there)),
      );
      const span = { from: 390, count: 200 };
      expect(await orders.ids(order, span)).to.deep.equal(
        expected(390, Math.max(0, there - 390)).slice(0, 200),
      );
      orders = new ListOrders(new HashReads(redis));
    }
    await write(ids.slice(0, 480));
    await orders.ids(order, { from: 390, count: 200 });
    await write(ids);
    expect(await orders.ids(order, { from: 390, count: 200 })).to.deep.equal(expected(390, 200));
  });

  it('gives no id of a range of which a bit is another one, or that belongs elsewhere', async () => {
    const stored = (await redis.hgetBuffer(order.key, '1')) as Buffer;
    for (let at = 0; at < stored.length; at += 61) {
      const damaged = Buffer.from(stored);
      damaged[at] = (damaged[at] as number) ^ 1;
      await redis.hset(order.key, '1', damaged);
      expect(await orders.ids(order, { from: 195, count: 10 })).to.deep.equal(expected(195, 5));
    }
    await redis.hset(order.key, '1', (await redis.hgetBuffer(order.key, '2')) as Buffer);
    expect(await orders.ids(order, { from: 200, count: 10 })).to.deep.equal([]);
  });

  it('is asked for again after Redis failed', async () => {
    await redis.set(order.key, 'no hash');
    const failure = await orders.ids(order, { from: 0, count: 1 }).catch((error: Error) => error);
    expect(failure).to.be.an('error');
    await write(ids);
    expect(await orders.ids(order, { from: 0, count: 1 })).to.deep.equal(expected(0, 1));
  });
});
