import { expect } from 'chai';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { stageRuns } from '../../../importer/scripts/stage-runs.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { begun, expectError, lifetimeMs, useLockedRedis } from './locked-redis.ts';

describe('stage-runs.lua', () => {
  const redis = useLockedRedis();

  const pieces = [
    ['0:0', Buffer.from([97, 0, 255])],
    ['0:1', Buffer.from([98])],
  ] as const;

  it('keeps pieces by their names, with an expiry, and may be repeated', async () => {
    const { sorting } = keys.workspace(1);
    for (let time = 1; time <= 2; time++) await stageRuns(redis(), begun(1), keys, pieces);
    expect(await redis().hgetallBuffer(sorting)).to.deep.equal(Object.fromEntries(pieces));
    expect(await redis().pttl(sorting)).to.be.within(1, lifetimeMs);
  });

  it('writes nothing without the lock', async () => {
    await redis().set(keys.lock, 'another token');
    await expectError(stageRuns(redis(), begun(1), keys, pieces), LockLostError);
    expect(await redis().keys('*')).to.deep.equal([keys.lock]);
  });
});
