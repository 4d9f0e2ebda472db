import { expect } from 'chai';
import { ListOrders, packIds } from '../../shared/list-order.ts';
import { connectForWriting, type Redis } from '../../shared/redis.ts';
import { useRedis } from '../support/redis-server.ts';

describe('the order of a list', () => {
  const server = useRedis();
  let redis: Redis;
  const ids = Array.from({ length: 2_500 }, (_, n) => (n % 2 === 0 ? n + 1 : Number.MAX_SAFE_INTEGER - n));
  const order = { key: 'order', name: 'first', count: ids.length };
  const expected = (from: number, count: number) => ids.slice(from, from + count).map(String);
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  beforeEach(() => redis.set(order.key, packIds(ids)));
  after(() => redis.disconnect());

  it('gives the ids of any span, also where it goes on beyond what is read at once', async () => {
    const orders = new ListOrders(redis);
    for (const [from, count] of [
      [0, 1],
      [0, 2_500],
      [1_000, 24],
      [1_000, 25],
      [1_023, 2],
      [1_024, 1],
      [2_047, 453],
      [2_499, 1],
      [700, 0],
    ] as const)
      expect(await orders.ids(order, { from, count }), `${count} from ${from}`).to.deep.equal(
        expected(from, count),
      );
  });

  it('is remembered by its name', async () => {
    const orders = new ListOrders(redis);
    const span = { from: 1_020, count: 10 };
    await orders.ids(order, span);
    await redis.set(order.key, packIds([...ids].reverse()));
    expect(await orders.ids(order, span)).to.deep.equal(expected(1_020, 10));
    expect(await orders.ids({ ...order, name: 'second' }, span)).not.to.deep.equal(expected(1_020, 10));
  });

  it('is not remembered where it is not whole: what is there is given, until it is mended', async () => {
    const orders = new ListOrders(redis);
    await redis.set(order.key, packIds(ids.slice(0, 1_500)));
    expect(await orders.ids(order, { from: 1_490, count: 5 })).to.deep.equal(expected(1_490, 5));
    expect(await orders.ids(order, { from: 1_490, count: 50 })).to.deep.equal(expected(1_490, 10));
    await redis.set(order.key, packIds(ids));
    expect(await orders.ids(order, { from: 1_490, count: 50 })).to.deep.equal(expected(1_490, 50));
  });
});
