import { expect } from 'chai';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { type StagedRecord, stageRecords } from '../../../importer/scripts/stage-records.ts';
import type { ContentName } from '../../../shared/store/keys.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { begun, drugs, expectError, lifetimeMs, record, useLockedRedis } from './locked-redis.ts';

describe('stage-records.lua', () => {
  const redis = useLockedRedis();
  const stage = (name: ContentName, records: StagedRecord[]) =>
    stageRecords(redis(), begun(name), keys, records);

  it('writes records with their positions, with an expiry from the first write on', async () => {
    expect(await stage(1, [record(1, 9), record(2, 4)])).to.deep.equal([]);
    const { records } = keys.content(1);
    const { positions } = keys.workspace(1);
    expect(await redis().hgetall(positions)).to.deep.equal({ 9: '1', 4: '2' });
    expect(await redis().hgetall(records)).to.deep.equal({ 9: '{"id":9}', 4: '{"id":4}' });
    for (const key of [positions, records]) expect(await redis().pttl(key)).to.be.within(1, lifetimeMs);
    expect(await redis().smembers(keys.staged)).to.deep.equal(['1']);
  });

  it('keeps the first record of an id and names the later ones, within a batch and across batches, and whether they are the same', async () => {
    const first = await stage(1, [record(1, 9), record(2, 9, 'second'), record(3, 4)]);
    expect(first).to.deep.equal([{ index: 1, firstPosition: 1, isSame: false }]);
    const second = await stage(1, [record(4, 5), record(5, 4), record(6, 9, 'third')]);
    expect(second).to.deep.equal([
      { index: 1, firstPosition: 3, isSame: true },
      { index: 2, firstPosition: 1, isSame: false },
    ]);
    const stored = await redis().hgetall(keys.content(1).records);
    expect(stored).to.deep.equal({ 9: '{"id":9}', 4: '{"id":4}', 5: '{"id":5}' });
  });

  it('may be repeated when a reply was lost: the outcome is the same', async () => {
    await stage(1, [record(1, 1)]);
    const batch = [record(2, 2), record(3, 1, 'again')];
    const once = await stage(1, batch);
    expect(await stage(1, batch)).to.deep.equal(once);
    expect(await redis().hlen(keys.content(1).records)).to.equal(2);
  });

  it('writes nothing without the lock', async () => {
    await redis().set(keys.lock, 'another token');
    await expectError(stage(1, [record(1, 1)]), LockLostError);
    await redis().del(keys.lock);
    await expectError(stage(1, [record(1, 1)]), LockLostError);
    expect(await redis().keys('*')).to.deep.equal([]);
  });

  it('takes ids up to 2^53−1 and positions in the millions exactly', async () => {
    const id = Number.MAX_SAFE_INTEGER;
    await stage(1, [record(12_345_678, id)]);
    expect(await stage(1, [record(12_345_679, id)])).to.deep.equal([
      { index: 0, firstPosition: 12_345_678, isSame: true },
    ]);
  });

  it('writes each part by itself', async () => {
    await stage(1, [record(1, 9)]);
    expect(await stageRecords(redis(), begun(1), drugs, [record(2, 9, 'a drug')])).to.deep.equal([]);
    expect(await redis().hgetall(drugs.content(1).records)).to.deep.equal({ 9: 'a drug' });
    expect(await redis().hgetall(keys.content(1).records)).to.deep.equal({ 9: '{"id":9}' });
  });

  it('is sent again to a Redis that has forgotten it', async () => {
    await stage(1, [record(1, 1)]);
    await redis().script('FLUSH');
    expect(await stage(1, [record(2, 2)])).to.deep.equal([]);
  });
});
