import { expect } from 'chai';
import { diffVersions, IncompleteContentError } from '../../importer/diff.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { readKeptVersions, type Version } from '../../shared/store/versions.ts';
import { importRecords } from '../support/importing.ts';
import { productKeys as keys } from '../support/keys.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';

describe('a diff', () => {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());

  for (const [which, gone] of [
    ['the version whose records it walks', 1],
    ['the other version', 0],
  ] as const) {
    it(`fails if ${which} expires during the read, and never shows wrong differences`, async () => {
      await redis.flushall();
      for (const count of [401, 402]) {
        await importRecords(products(count), productCollection, { redisUrl: server().url });
      }
      const kept = await readKeptVersions(redis, keys);
      const [from, to] = kept as [Version, Version];
      const found: unknown[] = [];
      const read = async () => {
        for await (const record of diffVersions(redis, keys, from, to).added()) found.push(record);
      };
      await read();
      expect(found).to.have.length(1);
      await redis.del(keys.content((kept[gone] as Version).content).records);
      const error = await read().catch((it: unknown) => it);
      expect(error).to.be.instanceOf(IncompleteContentError);
      expect(found).to.have.length(1);
    });
  }
});
