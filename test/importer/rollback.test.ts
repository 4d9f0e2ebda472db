import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { RollbackError, rollBack } from '../../importer/rollback.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { readLiveVersion } from '../../shared/store/versions.ts';
import { importRecords } from '../support/importing.ts';
import { productKeys as keys } from '../support/keys.ts';
import { oneServer } from '../support/one-server.ts';
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
    it(`is reported as done when ${what} was lost`, async () => {
      await redis.flushall();
      const versions: number[] = [];
      for (const count of [3, 4]) {
        const options = { redisUrl: server().url };
        versions.push((await importRecords(products(count), productCollection, options)).version as number);
      }
      const [first, second] = versions as [number, number];
      const fate = strikeOnce(({ name }) => name === 'publish', {
        moment: 'after',
        commandsPass: true,
        act: async () => {
          if (alsoLost) await redis.del(keys.lock);
          await sleep(700);
        },
      });
      const version = await rollBackOnce(server().port, first, fate);
      expect(version).to.be.above(second);
      expect(await readLiveVersion(redis, keys)).to.deep.include({ version, content: String(first) });
      expect(await redis.exists(keys.staged)).to.equal(0);
    });
  }

  it('republishes a damaged live list after another content', async () => {
    await redis.flushall();
    const numbers: number[] = [];
    for (const count of [3, 4, 3]) {
      const { version } = await importRecords(products(count), productCollection, {
        ...{ redisUrl: server().url, force: true },
      });
      numbers.push(version as number);
    }
    const [whole, , damaged] = numbers as [number, number, number];
    const back = () =>
      rollBack(productCollection, { redis, keyPrefix: 'medref', to: whole, maxNumberWaitMs: 0 });
    expect(await back()).to.deep.equal({ outcome: 'unchanged', version: damaged });
    await redis.hdel(keys.content(damaged).records, '1');
    expect(await back()).to.deep.include({ outcome: 'rolled-back', contentOf: whole });
    expect(await readLiveVersion(redis, keys)).to.deep.include({ content: String(whole), totalCount: 3 });
  });

  it('refuses a damaged content, and says what to do', async () => {
    await redis.flushall();
    const options = { redisUrl: server().url, force: true };
    const { version } = await importRecords(products(3), productCollection, options);
    await importRecords(products(4), productCollection, options);
    const live = await redis.get(keys.live);
    const { blocks } = keys.content(version as number);
    const stored = (await redis.hgetBuffer(blocks, '0')) as Buffer;
    stored[40] = (stored[40] as number) ^ 1;
    await redis.hset(blocks, '0', stored);
    const failure = await rollBack(productCollection, {
      ...{ redis, keyPrefix: 'medref', to: version, maxNumberWaitMs: 0 },
    }).catch((error: Error) => error);
    expect(failure).to.be.instanceOf(RollbackError);
    expect((failure as Error).message).to.match(
      /^Version \d+ is damaged in Redis\. Choose a different version with --to, or run "medref verify --repair"\. Block 0 of /,
    );
    expect(await redis.get(keys.live)).to.equal(live);
  });

  /**
   * Rolls back to a content through a proxy, with a client that waits half a second for each reply.
   * @returns the new version's number
   */
  async function rollBackOnce(
    port: number,
    contentOf: number,
    fate: ReturnType<typeof strikeOnce>,
  ): Promise<number> {
    const proxy = await startRedisProxy(port, fate);
    const waiting = await connectForWriting(proxy.url);
    const impatient = oneServer(waiting).duplicate({ commandTimeout: 500 });
    impatient.on('error', () => undefined);
    await impatient.connect();
    try {
      const result = await rollBack(productCollection, {
        ...{ redis: impatient, keyPrefix: 'medref', to: null },
        maxNumberWaitMs: 0,
      });
      expect(result).to.deep.include({ outcome: 'rolled-back', contentOf });
      if (result.outcome !== 'rolled-back') throw new Error(`It ended as ${result.outcome}.`);
      return result.report.version as number;
    } finally {
      impatient.disconnect();
      waiting.disconnect();
      await proxy.close();
    }
  }
});
