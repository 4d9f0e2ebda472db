import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { rollBack } from '../../importer/rollback.ts';
import { products as productCollection } from '../../shared/collections/product.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { readLiveVersion } from '../../shared/versions.ts';
import { importRecords } from '../support/importing.ts';
import { productKeys as keys } from '../support/keys.ts';
import { products } from '../support/records.ts';
import { startRedisProxy, strikeOnce } from '../support/redis-proxy.ts';
import { useRedis } from '../support/redis-server.ts';

describe('a rollback', () => {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());

  for (const [what, alsoLost] of [
    ['the reply of its publication', false],
    ['the reply of its publication, and its lock', true],
  ] as const) {
    it(`is told as done when ${what} was lost`, async () => {
      await redis.flushall();
      for (const count of [3, 4])
        await importRecords(products(count), productCollection, { redisUrl: server().url });
      const fate = strikeOnce(({ name }) => name === 'publish', {
        moment: 'after',
        commandsPass: true,
        act: async () => {
          if (alsoLost) await redis.del(keys.lock);
          await sleep(700);
        },
      });
      await rollBackOnce(server().port, fate);
      expect(await readLiveVersion(redis, keys)).to.deep.include({ version: 3, content: 1 });
      expect(await redis.exists(keys.staged)).to.equal(0);
    });
  }

  /** Rolls back through a proxy, by a client that waits for half a second for each reply. */
  async function rollBackOnce(port: number, fate: ReturnType<typeof strikeOnce>): Promise<void> {
    const proxy = await startRedisProxy(port, fate);
    const waiting = await connectForWriting(proxy.url);
    const impatient = waiting.duplicate({ commandTimeout: 500 });
    impatient.on('error', () => undefined);
    await impatient.connect();
    try {
      const result = await rollBack(productCollection, { redis: impatient, keyPrefix: 'medref', to: null });
      expect(result).to.deep.include({ outcome: 'rolled-back', contentOf: 1 });
    } finally {
      impatient.disconnect();
      waiting.disconnect();
      await proxy.close();
    }
  }
});
