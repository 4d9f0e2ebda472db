import { expect } from 'chai';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { contentKeys } from '../../../importer/scripts/key-lists.ts';
import { retain } from '../../../importer/scripts/retain.ts';
import { productKeys as keys } from '../../support/keys.ts';
import {
  document,
  expectError,
  held,
  publishOne,
  record,
  stageWhole,
  useLockedRedis,
} from './locked-redis.ts';

describe('retain.lua', () => {
  const redis = useLockedRedis();

  it('names versions no more and lets what only they hold expire, only for the holder of the lock', async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    await publishOne(redis(), 1);
    await stageWhole(redis(), 2, [record(1, 2)]);
    await publishOne(redis(), 2, { expectedLive: document(1) });
    await redis().hset(keys.damaged, { 1: 'a', 20261122030000: 'b', '20261122030000.1': 'c', 2: 'd' });
    const leaving = { versions: [1], contents: [1, 20_261_122_030_000, '20261122030000.1'] };
    const other = { keys, token: 'another' };
    await expectError(retain(redis(), other, leaving, 5_000), LockLostError);
    expect(await redis().zrange(keys.versions, 0, '-1')).to.deep.equal(['1', '2']);
    await retain(redis(), held, leaving, 5_000);
    expect(await redis().zrange(keys.versions, 0, '-1')).to.deep.equal(['2']);
    expect(await redis().hkeys(keys.versionDocuments)).to.deep.equal(['2']);
    for (const key of contentKeys(keys, 1)) expect(await redis().pttl(key), key).to.be.within(1, 5_000);
    expect(await redis().hkeys(keys.damaged), 'marks of damage').to.deep.equal(['2']);
    for (const key of contentKeys(keys, 2)) expect(await redis().pttl(key), key).to.equal(-1);
  });
});
