import { expect } from 'chai';
import { HmgetBatcher } from '../../../api/read/records.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('HmgetBatcher', () => {
  const server = useRedis();
  let redis: Redis;
  let hashes: HmgetBatcher;
  before(async () => {
    redis = await connectForWriting(server().url);
    for (const key of ['letters', 'others'])
      await redis.hset(key, ...Array.from({ length: 2_000 }, (_, n) => [`${n}`, `${key} ${n}`]).flat());
  });
  beforeEach(async () => {
    hashes = new HmgetBatcher(redis);
    await redis.config('RESETSTAT');
  });
  after(() => redis.disconnect());

  const texts = (values: readonly (Buffer | null)[]) => values.map((it) => it?.toString() ?? null);
  const commands = async () =>
    Number(/cmdstat_hmget:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);

  it('returns to each caller its fields in their order, by one command for each hash', async () => {
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

  it('splits many hundred fields into commands of about 500', async () => {
    const many = Array.from({ length: 300 }, (_, n) => String(n));
    const asked = await Promise.all([1, 2, 3, 4, 5].map(() => hashes.get('letters', many)));
    for (const values of asked) expect(texts(values)).to.deep.equal(many.map((n) => `letters ${n}`));
    expect(await commands()).to.equal(3);
    expect(texts(await hashes.get('letters', ['1']))).to.deep.equal(['letters 1']);
    expect(await commands()).to.equal(4);
  });

  it('rejects all reads of a failed command, and no others', async () => {
    await redis.set('text', 'not a hash');
    const asked = await Promise.allSettled([
      hashes.get('text', ['1']),
      hashes.get('text', ['2']),
      hashes.get('letters', ['1']),
    ]);
    expect(asked.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected', 'fulfilled']);
  });
});
