import { expect } from 'chai';
import { forgetChanges } from '../../../importer/scripts/forget-changes.ts';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { drugs, expectError, held, useLockedRedis } from './locked-redis.ts';

describe('forget-changes.lua', () => {
  const redis = useLockedRedis();
  const forget = () => forgetChanges(redis(), held, { version: 3, before: [1, 2] });
  beforeEach(async () => {
    for (const version of [1, 2, 3, 4]) {
      await redis().zadd(keys.changeSets, version, version);
      for (const part of [keys, drugs]) await redis().hset(part.changeSet(version), '#', '0 0 1');
    }
  });

  it('lets go of all sets up to that of a version, and leaves it as the first one; may be repeated', async () => {
    for (const _time of [1, 2]) {
      await forget();
      expect(await redis().zrange(keys.changeSets, 0, '-1')).to.deep.equal(['3', '4']);
      for (const part of [keys, drugs]) {
        const sets = [1, 2, 3, 4].map((version) => redis().exists(part.changeSet(version)));
        expect(await Promise.all(sets)).to.deep.equal([0, 0, 0, 1]);
      }
    }
  });

  it('lets go of nothing once the lock is lost', async () => {
    await redis().set(keys.lock, 'another');
    await expectError(forget(), LockLostError);
    expect(await redis().zcard(keys.changeSets)).to.equal(4);
    expect(await redis().exists(keys.changeSet(1), drugs.changeSet(3))).to.equal(2);
  });
});
