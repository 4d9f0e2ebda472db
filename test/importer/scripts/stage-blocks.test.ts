import { expect } from 'chai';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { stageBlocks } from '../../../importer/scripts/stage-blocks.ts';
import { readKeySpace } from '../../support/key-space.ts';
import { productKeys as keys, readOrder } from '../../support/keys.ts';
import { begun, block, expectError, lifetimeMs, useLockedRedis } from './locked-redis.ts';

describe('stage-blocks.lua', () => {
  const redis = useLockedRedis();

  it('writes blocks and their part of the order by their number, with an expiry', async () => {
    const ids = Array.from({ length: 200 }, (_, n) => n + 1);
    await stageBlocks(redis(), begun(1), keys, [block(1, [Number.MAX_SAFE_INTEGER], Buffer.from([0, 255]))]);
    await stageBlocks(redis(), begun(1), keys, [block(0, ids, null)]);
    const { order, blocks } = keys.content(1);
    expect(await readOrder(redis(), order)).to.deep.equal([...ids, Number.MAX_SAFE_INTEGER].map(String));
    expect(await redis().hgetallBuffer(blocks)).to.deep.equal({ 1: Buffer.from([0, 255]) });
    for (const key of [order, blocks]) expect(await redis().pttl(key)).to.be.within(1, lifetimeMs);
  });

  it('may be repeated when a reply was lost: the outcome is the same', async () => {
    const blocks = [block(0, [7]), block(1, [8], null)];
    await stageBlocks(redis(), begun(1), keys, blocks);
    const once = await readKeySpace(redis());
    await stageBlocks(redis(), begun(1), keys, blocks);
    expect(await readKeySpace(redis())).to.deep.equal(once);
  });

  it('writes nothing without the lock', async () => {
    await redis().set(keys.lock, 'another token');
    await expectError(stageBlocks(redis(), begun(1), keys, [block(0, [7])]), LockLostError);
    expect(await redis().keys('*')).to.deep.equal([keys.lock]);
  });
});
