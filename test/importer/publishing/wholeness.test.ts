import { expect } from 'chai';
import { isWhole, requireWhole, sizesOf } from '../../../importer/publishing/wholeness.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { StagedLostError } from '../../../shared/store/scripts.ts';
import { readLiveVersion, type Version } from '../../../shared/store/versions.ts';
import { importRecords } from '../../support/importing.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('a content, of its own records and of drugs', () => {
  const server = useRedis();
  let redis: Redis;
  let version: Version;
  before(async () => {
    redis = await connectForWriting(server().url);
    await importRecords(products(201), productCollection, { redisUrl: server().url });
    version = (await readLiveVersion(redis, keys)) as Version;
  });
  after(() => redis.disconnect());

  it('is whole as it was published', async () => {
    expect(sizesOf(keys, version)).to.have.length(10);
    expect(await isWhole(redis, keys, version)).to.equal(true);
    await requireWhole(redis, keys, version);
  });

  const losses: Record<string, (key: string) => Promise<unknown>> = {
    'is gone': (key) => redis.del(key),
    'has a member less': async (key) => {
      if ((await redis.type(key)) === 'zset') return redis.zpopmax(key);
      return redis.hdel(key, ...(await redis.hkeys(key)).slice(0, 1));
    },
    'has a member more': async (key) =>
      (await redis.type(key)) === 'zset' ? redis.zadd(key, 1e9, 'more') : redis.hset(key, 'more', ''),
    'is of another type': (key) => redis.set(key, ''),
  };
  for (const [what, lose] of Object.entries(losses)) {
    it(`is not whole where any one of its keys ${what}, and is then not to be published`, async () => {
      for (const { key } of sizesOf(keys, version)) {
        await redis.copy(key, 'kept', 'REPLACE');
        await lose(key);
        expect(await isWhole(redis, keys, version), key).to.equal(false);
        const refused = await requireWhole(redis, keys, version).catch((error: unknown) => error);
        expect(refused, key).to.be.instanceOf(StagedLostError);
        await redis.copy('kept', key, 'REPLACE');
      }
      expect(await isWhole(redis, keys, version)).to.equal(true);
    });
  }

  it('is not told to be damaged where Redis does not answer', async () => {
    const away = await connectForWriting(server().url);
    away.disconnect();
    const told = await isWhole(away, keys, version).catch((error: unknown) => error);
    expect(told).to.be.instanceOf(Error);
  });
});
