import { crc32 } from 'node:zlib';
import { expect } from 'chai';
import { Fences } from '../../../api/reads/fences.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('the fences of a search index', () => {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  beforeEach(() => redis.flushall());
  after(() => redis.disconnect());

  const texts = (count: number) => Array.from({ length: count }, (_, n) => `n${String(n).padStart(6, '0')}`);
  const write = async (members: readonly string[]) => {
    if (members.length > 0) await redis.zadd('fences', ...members.flatMap((it) => [0, it]));
  };
  const list = (count: number) => ({
    ...{ key: 'fences', name: `of ${count}`, count },
    check: texts(count).reduce((crc, text) => crc32(`${text}\n`, crc), 0),
  });

  for (const count of [1, 499, 500, 501, 8_000, 8_001, 20_000]) {
    it(`are given sorted and whole where there are ${count}`, async () => {
      await write([...texts(count)].reverse());
      expect(await new Fences(redis).get(list(count))).to.deep.equal(texts(count));
    });
  }

  it('are remembered by their name, and read once for all who ask at once', async () => {
    await write(texts(700));
    const fences = new Fences(redis);
    await redis.config('RESETSTAT');
    const asked = await Promise.all([1, 2, 3].map(() => fences.get(list(700))));
    for (const it of asked) expect(it).to.deep.equal(texts(700));
    await redis.flushall();
    expect(await fences.get(list(700))).to.deep.equal(texts(700));
    expect(await redis.info('commandstats')).to.include('cmdstat_zrange:calls=2,');
  });

  it('are none where one is missing or too many, until they are mended', async () => {
    const fences = new Fences(redis);
    expect(await fences.get(list(600))).to.equal(null);
    for (const wanted of [1, 500, 600, 8_000]) {
      for (const count of [wanted - 1, wanted + 1]) {
        await redis.flushall();
        await write(texts(count));
        for (const check of [list(wanted).check, undefined])
          expect(await fences.get({ ...list(wanted), check }), `${count} of ${wanted}`).to.equal(null);
      }
    }
    await redis.flushall();
    await write(texts(600));
    expect(await fences.get(list(600))).to.deep.equal(texts(600));
  });

  it('are none where one of them is another one, and not checked where what they must be is not known', async () => {
    const fences = new Fences(redis);
    await write([...texts(599), 'n000000x']);
    expect(await fences.get(list(600))).to.equal(null);
    const known = await fences.get({ ...list(600), check: undefined });
    expect(known).to.deep.equal(['n000000', 'n000000x', ...texts(599).slice(1)]);
  });

  it('are counted below bounds, by their bytes, whether they are read or Redis counts them', async () => {
    const members = ['a', 'b\u0001', 'b\u007f', 'bc', 'c'];
    const bytes = [...members, '\u00e9'].map((it) => Buffer.from(it, 'latin1'));
    await redis.zadd('fences', ...bytes.flatMap((it) => [0, it]));
    const bounds = ['', 'a', 'a\u0000', 'b', 'b\u0080', 'bc', 'd', '\u00e8', '\u00ff'];
    for (const most of [6, 5]) {
      const list = { key: 'fences', name: 'of bytes', count: 6, check: undefined };
      const fences = new Fences(redis, most);
      expect(await fences.countsBelow(list, bounds), `${most}`).to.deep.equal([0, 0, 1, 1, 4, 2, 5, 5, 6]);
      for (const count of [5, 7])
        expect(await new Fences(redis, most).countsBelow({ ...list, count }, bounds), `${count}`).to.equal(
          null,
        );
    }
  });

  it('are asked for again after Redis failed', async () => {
    const fences = new Fences(redis);
    await redis.set('fences', 'no sorted set');
    const failure = await fences.get(list(3)).catch((error: Error) => error);
    expect(failure)
      .to.be.an('error')
      .with.property('message')
      .that.matches(/^WRONGTYPE/);
    await redis.del('fences');
    await write(texts(3));
    expect(await fences.get(list(3))).to.deep.equal(texts(3));
  });
});
