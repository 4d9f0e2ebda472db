import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { Lease, lifetimes } from '../../importer/lease.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { readLockHolder } from '../../shared/store/import-locks.ts';
import { contentKeys } from '../../shared/store/keys.ts';
import { companyKeys, productKeys as keys } from '../support/keys.ts';
import { startRedisProxy, strikeOnce } from '../support/redis-proxy.ts';
import { useRedis } from '../support/redis-server.ts';

describe('the import lock', () => {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(() => redis.flushall());

  it('has one holder at a time, and others see who and since when', async () => {
    const start = new Date().toISOString();
    const lock = (await Lease.take(redis, keys)) as Lease;
    const other = await Lease.take(redis, keys);
    expect(other).to.deep.equal(await readLockHolder(redis, keys));
    expect(other).to.have.property('holder').that.includes(String(process.pid));
    const { since } = other as { since: string };
    expect(start <= since && since <= new Date().toISOString()).to.equal(true);
    await lock.release();
    expect(await readLockHolder(redis, keys)).to.equal(null);
  });

  it('forgets the progress of an import that died', async () => {
    await redis.set(keys.progress, '{"read":5,"percent":null}', 'PX', 20_000);
    const lock = (await Lease.take(redis, keys)) as Lease;
    expect(await redis.exists(keys.progress)).to.equal(0);
    await lock.release();
  });

  it('belongs to its holder even if the reply was lost', async () => {
    const cut = strikeOnce(({ name }) => name === 'SET', { moment: 'after', act: (link) => link.cut() });
    const proxy = await startRedisProxy(server().port, cut);
    const unlucky = await connectForWriting(proxy.url);
    try {
      const lock = (await Lease.take(unlucky, keys)) as Lease;
      expect(lock.token).to.equal(await redis.get(keys.lock));
      await lock.release();
    } finally {
      unlucky.disconnect();
      await proxy.close();
    }
  });

  it("is free at most 30 s after its holder's death", async () => {
    const lock = (await Lease.take(redis, keys)) as Lease;
    expect(await redis.pttl(keys.lock), 'and not much earlier, if its holder only stands still').to.be.within(
      25_000,
      30_000,
    );
    expect(lifetimes).to.deep.equal({ lockMs: 30_000, stagedMs: 60_000, renewEveryMs: 8_000 });
    await lock.release();
  });

  for (const [what, left] of [
    ['whose expiry grew because the clock of Redis was put back', 3_600_000],
    ['without an expiry', null],
  ] as const)
    it(`is free 30 s after a request if it is one ${what}`, async () => {
      const dead = JSON.stringify({ holder: 'process 1 on a', since: new Date().toISOString(), token: 't' });
      await redis.set(keys.lock, dead);
      if (left !== null) await redis.pexpire(keys.lock, left);
      expect(await Lease.take(redis, keys)).to.have.property('holder', 'process 1 on a');
      expect(await redis.pttl(keys.lock)).to.be.within(29_000, 30_000);
      await sleep(50);
      await Lease.take(redis, keys);
      expect(await redis.pttl(keys.lock), 'and is not extended again').to.be.below(29_960);
    });

  it('is per collection', async () => {
    const lock = (await Lease.take(redis, keys)) as Lease;
    const other = (await Lease.take(redis, companyKeys)) as Lease;
    expect(other.token).to.be.a('string');
    await lock.release();
    await other.release();
  });

  it('is renewed with its staged keys while its holder lives', async () => {
    const lock = (await Lease.take(redis, keys, { ...lifetimes, lockMs: 300, renewEveryMs: 50 })) as Lease;
    const { name } = await lock.begin('');
    const staged = contentKeys(keys, name);
    for (const key of staged) await redis.set(key, 'x', 'PX', 300);
    await sleep(600);
    expect(await redis.exists(keys.lock)).to.equal(1);
    for (const key of [keys.staged, ...staged]) expect(await redis.pttl(key), key).to.be.above(10_000);
    expect(lock.signal.aborted).to.equal(false);
    await lock.release();
  });

  it('reports its loss to the holder, who cannot release it afterwards', async () => {
    const lock = (await Lease.take(redis, keys, { ...lifetimes, renewEveryMs: 30 })) as Lease;
    await redis.set(keys.lock, JSON.stringify({ holder: 'another', since: 'now' }));
    await sleep(200);
    expect(lock.signal.aborted).to.equal(true);
    expect((lock.signal.reason as Error).message).to.match(/lost its lock/);
    await lock.release();
    expect(await redis.exists(keys.lock)).to.equal(1);
  });

  it('counts as lost if no renewal succeeds within its lifetime', async () => {
    const lock = (await Lease.take(redis, keys, { ...lifetimes, lockMs: 200, renewEveryMs: 50 })) as Lease;
    server().pause();
    try {
      while (!lock.signal.aborted) await sleep(20);
    } finally {
      server().resume();
    }
    await lock.release();
  });
});
