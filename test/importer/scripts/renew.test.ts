import { expect } from 'chai';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { contentKeys, workspaceKeys } from '../../../importer/scripts/key-lists.ts';
import { release } from '../../../importer/scripts/release.ts';
import { renew } from '../../../importer/scripts/renew.ts';
import { productKeys as keys } from '../../support/keys.ts';
import {
  begun,
  expectError,
  held,
  lifetimeMs,
  publishOne,
  record,
  stageWhole,
  useLockedRedis,
} from './locked-redis.ts';

describe('renew.lua and release.lua', () => {
  const redis = useLockedRedis();

  it('renew the lock and what is staged, only for its holder', async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    const staged = [keys.staged, ...contentKeys(keys, 1), ...workspaceKeys(keys, 1)];
    for (const key of staged) await redis().pexpire(key, 5_000);
    await renew(redis(), begun(1), 9_000);
    expect(await redis().pttl(keys.lock)).to.be.within(8_000, 9_000);
    for (const key of staged) expect(await redis().pttl(key), key).to.be.within(50_000, lifetimeMs);
    const another = { ...begun(1), token: 'another token' };
    await expectError(renew(redis(), another, 9_000), LockLostError);
  });

  it('renew nothing that was published: it stays for good', async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    await publishOne(redis(), 1);
    await renew(redis(), begun(1), 9_000);
    for (const key of contentKeys(keys, 1)) expect(await redis().pttl(key), key).to.equal(-1);
  });

  it('release the lock, only for its holder', async () => {
    await release(redis(), { keys, token: 'another token' });
    expect(await redis().exists(keys.lock)).to.equal(1);
    await release(redis(), held);
    expect(await redis().exists(keys.lock)).to.equal(0);
  });
});
