import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { compare } from '../../../importer/scripts/compare.ts';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { stageBlocks } from '../../../importer/scripts/stage-blocks.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { begun, block, expectError, lifetimeMs, record, stageWhole, useLockedRedis } from './locked-redis.ts';

describe('compare.lua', () => {
  const redis = useLockedRedis();

  const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');
  const whole = { range: 0 };
  const content = (name: number, checkLength = 0) => ({ name, checkLength });
  const sumOf = (...entries: string[]) =>
    entries.reduce((sum, entry) => sum + Number.parseInt(sha1(entry).slice(0, 8), 16), 0) % 2 ** 32;

  it('counts what is added, changed and removed, and writes it as a change set that expires', async () => {
    await stageWhole(redis(), 1, [record(1, 1), record(2, 2), record(3, 3)]);
    await stageWhole(redis(), 2, [record(1, 1), record(2, 2, '{"id":2,"x":0}'), record(3, 4)]);
    const after = { part: keys, walked: content(2), other: content(1), walks: 'after', ...whole } as const;
    const [changed, removed, added] = [
      `${sha1('{"id":2}')} ${sha1('{"id":2,"x":0}')}`,
      `${sha1('{"id":3}')} -`,
      `- ${sha1('{"id":4}')}`,
    ];
    expect(await compare(redis(), begun(2), after)).to.deep.equal({
      ...{ alone: 1, different: 1, sum: sumOf(`2 ${changed}`, `4 ${added}`) },
    });
    const before = { part: keys, walked: content(1), other: content(2), walks: 'before', ...whole } as const;
    expect(await compare(redis(), begun(2), before)).to.deep.equal({
      ...{ alone: 1, different: 0, sum: sumOf(`3 ${removed}`) },
    });
    expect(await redis().hgetall(keys.changeSet(2))).to.deep.equal({
      ...{ 2: changed, 3: removed, 4: added },
    });
    expect(await redis().pttl(keys.changeSet(2))).to.be.within(1, lifetimeMs);
  });

  it('compares records without the checks behind them, which not every format has', async () => {
    await stageWhole(redis(), 1, [record(1, 1), record(2, 2)]);
    await stageWhole(redis(), 2, [record(1, 1, '{"id":1}1234'), record(2, 2, '{"id":2,"x":0}1234')]);
    const after = { part: keys, walked: content(2, 4), other: content(1), walks: 'after', ...whole } as const;
    expect(await compare(redis(), begun(2), after)).to.include({ alone: 0, different: 1 });
    expect(await redis().hgetall(keys.changeSet(2))).to.deep.equal({
      2: `${sha1('{"id":2}')} ${sha1('{"id":2,"x":0}')}`,
    });
    await stageWhole(redis(), 3, [record(1, 2, '{"id":2,"x":0}abcd')]);
    const equal = { ...after, walked: content(3, 4), other: content(2, 4) } as const;
    expect(await compare(redis(), begun(3), equal)).to.include({ alone: 0, different: 1 });
  });

  it('compares just the part of the order that it is given', async () => {
    await stageWhole(redis(), 2, [record(1, 1), record(2, 2), record(3, 3)]);
    await stageBlocks(redis(), begun(2), keys, [block(1, [2])]);
    const part = { part: keys, walked: content(2), other: content(1), walks: 'after' } as const;
    expect(await compare(redis(), begun(2), { ...part, range: 1 })).to.deep.equal({
      ...{ alone: 1, different: 0, sum: sumOf(`2 - ${sha1('{"id":2}')}`) },
    });
    expect(await redis().hkeys(keys.changeSet(2))).to.deep.equal(['2']);
    expect(await compare(redis(), begun(2), { ...part, range: 2 })).to.deep.equal({
      ...{ alone: 0, different: 0, sum: 0 },
    });
  });

  it('compares all of a part in several steps, where it has more records than one takes', async () => {
    const list = (count: number, text: string) =>
      Array.from({ length: count }, (_, n) => record(n + 1, n + 1, `{"id":${n + 1}${text}}`));
    await stageWhole(redis(), 1, list(101, ''));
    await stageWhole(redis(), 2, [...list(50, ''), ...list(120, ',"x":0').slice(50)]);
    const after = { part: keys, walked: content(2), other: content(1), walks: 'after', ...whole } as const;
    await redis().config('RESETSTAT');
    const { alone, different, sum } = await compare(redis(), begun(2), after);
    expect(await redis().info('commandstats'), '3 steps of 50 at most').to.include('cmdstat_hmget:calls=6,');
    const written = await redis().hgetall(keys.changeSet(2));
    expect([alone, different, Object.keys(written).length]).to.deep.equal([19, 51, 70]);
    expect(sum).to.equal(sumOf(...Object.entries(written).map(([id, its]) => `${id} ${its}`)));
  });

  it('writes nothing without the lock', async () => {
    await stageWhole(redis(), 2, [record(1, 1)]);
    await redis().set(keys.lock, 'another token');
    const comparison = {
      part: keys,
      walked: content(2),
      other: content(1),
      walks: 'after',
      ...whole,
    } as const;
    await expectError(compare(redis(), begun(2), comparison), LockLostError);
    expect(await redis().exists(keys.changeSet(2))).to.equal(0);
  });
});
