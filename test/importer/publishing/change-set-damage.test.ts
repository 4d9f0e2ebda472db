import { expect } from 'chai';
import { changeSetDamage } from '../../../importer/publishing/change-set-damage.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('damage of change sets', () => {
  const server = useRedis();
  let redis: Redis;
  let publishing: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
    publishing = await connectForWriting(server().url);
  });
  after(() => {
    redis.disconnect();
    publishing.disconnect();
  });

  it('is not found in those that are let go while they are read', async () => {
    const kept = 10;
    let isOver = false;
    const publications = (async () => {
      for (let number = 1; !isOver; number += 1) {
        const step = publishing
          .multi()
          .zadd(keys.changeSets, number, number)
          .zrem(keys.changeSets, number - kept);
        for (const part of keys.parts)
          step
            .hset(part.changeSet(number), '#', `0 0 ${number - 1}`)
            .unlink(part.changeSet(number - kept + 1));
        await step.exec();
      }
    })();
    const found: unknown[] = [];
    for (let n = 0; n < 100; n += 1) found.push(...(await changeSetDamage(redis, keys)));
    isOver = true;
    await publications;
    expect(found).to.deep.equal([]);
    await redis.del(...(await redis.zrange(keys.changeSets, '-1', '-1')).map((it) => keys.changeSet(it)));
    expect(await changeSetDamage(redis, keys)).to.have.length(1);
  });
});
