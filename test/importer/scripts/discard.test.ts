import { expect } from 'chai';
import { discard } from '../../../importer/scripts/discard.ts';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { begun, expectError, record, stageWhole, useLockedRedis } from './locked-redis.ts';

describe('discard.lua', () => {
  const redis = useLockedRedis();

  it('leaves no trace of what was staged, only for the holder of the lock', async () => {
    await stageWhole(redis(), 'dry-run', [record(1, 1)]);
    await redis().hset(keys.changeSet('dry-run'), '1', '- x');
    await expectError(discard(redis(), { keys, token: 'another' }, 'dry-run'), LockLostError);
    expect(await redis().exists(keys.staged)).to.equal(1);
    await discard(redis(), begun('dry-run'), 'dry-run');
    expect(await redis().keys('*')).to.deep.equal([keys.lock]);
  });
});
