import { expect } from 'chai';
import { begin } from '../../../importer/scripts/begin.ts';
import { compare } from '../../../importer/scripts/compare.ts';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { StagedLostError } from '../../../importer/scripts/publish.ts';
import { replaceChanges } from '../../../importer/scripts/replace-changes.ts';
import { changeSetText } from '../../../shared/store/change-sets.ts';
import { productKeys as keys } from '../../support/keys.ts';
import {
  begun,
  drugs,
  expectError,
  held,
  lifetimeMs,
  record,
  stageWhole,
  useLockedRedis,
} from './locked-redis.ts';

describe('replace-changes.lua', () => {
  const redis = useLockedRedis();
  const name = 'changes-2';
  const facts = { size: 1, sum: 7, previous: 1 };
  const replace = () => replaceChanges(redis(), begun(name), { version: 2, facts: [facts, null] });

  beforeEach(async () => {
    await begin(redis(), held, { name, lifetimeMs });
    await stageWhole(redis(), 1, [record(1, 1)]);
    await stageWhole(redis(), 2, [record(1, 1), record(2, 2)]);
    const content = (number: number) => ({ name: number, checkLength: 0 });
    await compare(redis(), begun(name), {
      ...{ part: keys, walked: content(2), other: content(1), walks: 'after', range: 0 },
    });
    for (const part of [keys, drugs])
      await redis().hset(part.changeSet(2), { '#': 'damaged', 5: 'x', 6: 'x' });
  });

  it('puts what was staged in the place of what is damaged, for good, and says what it is', async () => {
    const staged = await redis().hgetall(keys.changeSet(name));
    await replace();
    expect(await redis().hgetall(keys.changeSet(2))).to.deep.equal({ ...staged, '#': changeSetText(facts) });
    expect(await redis().pttl(keys.changeSet(2))).to.equal(-1);
    expect(await redis().sismember(keys.staged, name)).to.equal(0);
    const gone = [keys.changeSet(name), drugs.changeSet(2), drugs.changeSet(name)];
    expect(await redis().exists(...gone), 'of a part without a set').to.equal(0);
  });

  it('puts nothing but what it says of itself where nothing differs', async () => {
    await redis().del(keys.changeSet(name));
    const none = { size: 0, sum: 0, previous: 1 };
    await replaceChanges(redis(), begun(name), { version: 2, facts: [none, none] });
    for (const part of [keys, drugs])
      expect(await redis().hgetall(part.changeSet(2))).to.deep.equal({ '#': '0 0 1' });
  });

  it('may be repeated when a reply was lost, even after the lock has gone', async () => {
    await replace();
    const after = await redis().hgetall(keys.changeSet(2));
    await redis().del(keys.lock);
    await replace();
    expect(await redis().hgetall(keys.changeSet(2))).to.deep.equal(after);
  });

  it('does nothing where a part of what was staged is lost, or all of it', async () => {
    const before = await redis().hgetall(keys.changeSet(2));
    await redis().hset(keys.changeSet(name), 'another', 'x');
    await expectError(replace(), StagedLostError);
    await redis().del(keys.changeSet(name), keys.staged);
    await expectError(replace(), StagedLostError);
    await redis().hset(keys.changeSet(2), { '#': changeSetText({ ...facts, sum: 8 }), 5: 'x' });
    await redis().hdel(keys.changeSet(2), '6');
    await redis().del(drugs.changeSet(2));
    await expectError(replace(), StagedLostError);
    await redis().hset(keys.changeSet(2), '#', changeSetText(facts));
    await redis().hdel(keys.changeSet(2), '5');
    await expectError(replace(), StagedLostError);
    expect(before['#']).to.equal('damaged');
  });

  it('writes nothing once the lock is lost', async () => {
    const before = await redis().hgetall(keys.changeSet(2));
    await redis().set(keys.lock, 'another');
    await expectError(replace(), LockLostError);
    expect(await redis().hgetall(keys.changeSet(2))).to.deep.equal(before);
  });
});
