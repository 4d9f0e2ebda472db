import { expect } from 'chai';
import { begin } from '../../../importer/scripts/begin.ts';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { expectError, held, lifetimeMs, useLockedRedis } from './locked-redis.ts';

describe('begin.lua', () => {
  const redis = useLockedRedis();

  it('gives a number that was never given before, or stages under a name that takes none', async () => {
    const beginOnce = (name: 'dry-run' | '') => begin(redis(), held, { name, lifetimeMs });
    expect(await beginOnce('')).to.equal(1);
    expect(await beginOnce('dry-run')).to.equal('dry-run');
    expect(await beginOnce('')).to.equal(2);
    expect(await redis().smembers(keys.staged)).to.include('2');
    expect(await redis().pttl(keys.staged)).to.be.within(1, lifetimeMs);
    await redis().set(keys.lock, 'another token');
    await expectError(beginOnce(''), LockLostError);
    expect(await redis().get(keys.next)).to.equal('2');
  });
});
