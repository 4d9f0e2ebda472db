import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { HashReads } from '../../../api/reads/hash-reads.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('reads of hashes', () => {
  const server = useRedis();
  let redis: Redis;
  let hashes: HashReads;
  before(async () => {
    redis = await connectForWriting(server().url);
    for (const key of ['letters', 'others'])
      await redis.hset(key, ...Array.from({ length: 2_000 }, (_, n) => [`${n}`, `${key} ${n}`]).flat());
  });
  beforeEach(async () => {
    hashes = new HashReads(redis);
    await redis.config('RESETSTAT');
  });
  after(() => redis.disconnect());

  const texts = (values: readonly (Buffer | null)[]) => values.map((it) => it?.toString() ?? null);
  const commands = async () =>
    Number(/cmdstat_hmget:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);

  it('give each who asks the fields that were asked for, in their order, from one command for each hash', async () => {
    const asked = await Promise.all([
      hashes.get('letters', ['7', '3']),
      hashes.get('others', ['7']),
      hashes.get('letters', ['none']),
      hashes.get('letters', []),
      hashes.get('letters', ['3', '1999', 'none', '0']),
    ]);
    expect(asked.map(texts)).to.deep.equal([
      ['letters 7', 'letters 3'],
      ['others 7'],
      [null],
      [],
      ['letters 3', 'letters 1999', null, 'letters 0'],
    ]);
    expect(await commands()).to.equal(2);
  });

  it('send no command of many hundred fields for others, and go on in the next turn', async () => {
    const many = Array.from({ length: 300 }, (_, n) => String(n));
    const asked = await Promise.all([1, 2, 3, 4, 5].map(() => hashes.get('letters', many)));
    for (const values of asked) expect(texts(values)).to.deep.equal(many.map((n) => `letters ${n}`));
    expect(await commands()).to.equal(3);
    expect(texts(await hashes.get('letters', ['1']))).to.deep.equal(['letters 1']);
    expect(await commands()).to.equal(4);
  });

  it('fail for all who asked together, and for nobody else', async () => {
    await redis.set('text', 'not a hash');
    const asked = await Promise.allSettled([
      hashes.get('text', ['1']),
      hashes.get('text', ['2']),
      hashes.get('letters', ['1']),
    ]);
    expect(asked.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected', 'fulfilled']);
  });

  it('ask once whether a hash is there for all who ask within half a millisecond, and again for who asks later', async () => {
    const exists = async () =>
      Number(/cmdstat_exists:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
    const inOneTurn = [hashes.has('letters'), hashes.has('letters'), hashes.has('none')];
    expect(await Promise.all(inOneTurn)).to.deep.equal([true, true, false]);
    expect(await exists()).to.equal(2);
    await sleep(3);
    expect(await hashes.has('letters')).to.equal(true);
    expect(await exists()).to.equal(3);
    await redis.rename('letters', 'elsewhere');
    await sleep(3);
    expect(await hashes.has('letters')).to.equal(false);
    await redis.rename('elsewhere', 'letters');
  });

  it('ask Redis less often than once for each turn of the event loop', async () => {
    const until = performance.now() + 100;
    let turns = 0;
    for (; performance.now() < until; turns += 1) {
      void hashes.has('letters');
      await new Promise(setImmediate);
    }
    const asked = Number(/cmdstat_exists:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
    expect(asked).to.be.within(1, turns / 2);
  });
});
