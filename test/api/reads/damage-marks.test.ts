import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { DamageMarks } from '../../../api/reads/damage-marks.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('marks of damage', () => {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());

  it('are told each time, set once for a while, and set again where Redis has lost them', async () => {
    const told: string[] = [];
    const marks = new DamageMarks(redis, (message) => void told.push(message), 200);
    const stored = 20_261_122_030_000;
    const meet = (message: string) => marks.found(keys, { stored }, message);
    const marked = () => redis.hget(keys.damaged, String(stored));
    meet('First.');
    expect(await marked()).to.equal('First.');
    await redis.del(keys.damaged);
    meet('Second.');
    expect(await marked(), 'it was set just now').to.equal(null);
    marks.found(keys, { stored: stored + 1 }, 'Of another content.');
    expect(await redis.hvals(keys.damaged)).to.deep.equal(['Of another content.']);
    await sleep(250);
    meet('Third.');
    expect(await marked()).to.equal('Third.');
    expect(told).to.deep.equal(['First.', 'Second.', 'Of another content.', 'Third.']);
  });
});
