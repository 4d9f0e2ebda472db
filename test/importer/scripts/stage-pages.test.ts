import { expect } from 'chai';

import { LockLostError } from '../../../importer/scripts/held.ts';
import { stagePages } from '../../../importer/scripts/stage-pages.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { begun, expectError, lifetimeMs, useLockedRedis } from './locked-redis.ts';

describe('stage-pages.lua', () => {
  const redis = useLockedRedis();

  const pages = [
    { number: 1, stored: Buffer.from([1, 255]), fence: Buffer.from([98]) },
    { number: 0, stored: Buffer.from([0]), fence: Buffer.from([97, 0, 255]) },
  ];

  it('writes pages by their number and what they begin with, with an expiry, and may be repeated', async () => {
    for (let time = 1; time <= 2; time++) await stagePages(redis(), begun(1), keys, pages);
    const { entries, fences } = keys.content(1);
    expect(await redis().hgetallBuffer(entries)).to.deep.equal({
      0: Buffer.from([0]),
      1: Buffer.from([1, 255]),
    });
    expect(await redis().zrangeBuffer(fences, 0, '-1')).to.deep.equal([
      Buffer.from([97, 0, 255]),
      Buffer.from([98]),
    ]);
    for (const key of [keys.staged, entries, fences])
      expect(await redis().pttl(key), key).to.be.within(1, lifetimeMs);
  });

  it('writes nothing without the lock', async () => {
    await redis().set(keys.lock, 'another token');
    await expectError(stagePages(redis(), begun(1), keys, pages), LockLostError);
    expect(await redis().keys('*')).to.deep.equal([keys.lock]);
  });
});
