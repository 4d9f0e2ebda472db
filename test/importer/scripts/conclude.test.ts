import { expect } from 'chai';
import { conclude, type UnpublishedEnd } from '../../../importer/scripts/conclude.ts';
import { discard } from '../../../importer/scripts/discard.ts';
import { LockLostError } from '../../../importer/scripts/held.ts';
import type { ContentName } from '../../../shared/store/keys.ts';
import { readKeySpace } from '../../support/key-space.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { begun, expectError, held, publishOne, record, stageWhole, useLockedRedis } from './locked-redis.ts';

describe('conclude.lua', () => {
  const redis = useLockedRedis();

  const end = (name: ContentName, facts: Partial<UnpublishedEnd> = {}) =>
    conclude(
      redis(),
      held,
      { name, checkedAt: '', validators: { kind: 'keep' }, ...facts },
      { report: `{"outcome":"failed","name":${name}}`, historyCap: 3, rejects: ['{"total":1}', 'one'] },
    );

  it('drops what was staged, keeps the history and the rejects', async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    await redis().hset(keys.changeSet(1), '1', '- x');
    await end(1);
    expect((await redis().keys('*')).sort()).to.deep.equal([keys.imports, keys.lock, keys.rejects].sort());
    expect(await redis().lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":1}', 'one']);
  });

  it('stores, keeps or deletes the validators, and when upstream was checked', async () => {
    for (const number of [1, 2, 3]) await stageWhole(redis(), number, [record(1, 1)]);
    await end(1, { checkedAt: 'today', validators: { kind: 'set', text: '{"etag":"x"}' } });
    expect(await redis().mget(keys.checked, keys.validators)).to.deep.equal(['today', '{"etag":"x"}']);
    await end(2);
    expect(await redis().mget(keys.checked, keys.validators)).to.deep.equal(['today', '{"etag":"x"}']);
    await end(3, { validators: { kind: 'delete' } });
    expect(await redis().mget(keys.checked, keys.validators)).to.deep.equal(['today', null]);
  });

  it('keeps the latest of the history, as many as it is told to', async () => {
    for (const number of [1, 2, 3, 4, 5]) await end(number);
    const history = await redis().xrange(keys.imports, '-', '+');
    expect(history.map(([, [, report = '']]) => JSON.parse(report).name)).to.deep.equal([3, 4, 5]);
  });

  it('does nothing when it is repeated, or when the version was published by a reply that was lost', async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    expect(await end(1)).to.equal('dropped');
    expect(await end(1)).to.equal('dropped');
    expect(await redis().xlen(keys.imports)).to.equal(1);
    await stageWhole(redis(), 2, [record(1, 1)]);
    await publishOne(redis(), 2);
    const before = await readKeySpace(redis());
    expect(await end(2)).to.equal('published');
    expect(await discard(redis(), begun(2), 2)).to.equal('published');
    expect(await readKeySpace(redis())).to.deep.equal(before);
  });

  it('writes nothing once the lock is lost, and only the history for an import that never held it', async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    await redis().set(keys.lock, 'another token');
    await expectError(end(1), LockLostError);
    expect(await redis().exists(keys.content(1).records)).to.equal(1);
    expect(await redis().exists(keys.rejects)).to.equal(0);
    expect(await redis().xlen(keys.imports)).to.equal(0);
    await redis().mset(keys.checked, 'before', keys.validators, 'before');
    const entry = { report: '{"outcome":"locked"}', historyCap: 3, rejects: ['{"total":1}', 'one'] };
    const facts = { name: '', checkedAt: 'now', validators: { kind: 'delete' } } as const;
    await conclude(redis(), { keys, token: '' }, facts, entry);
    expect(await redis().xlen(keys.imports)).to.equal(1);
    expect(await redis().get(keys.lock)).to.equal('another token');
    expect(await redis().mget(keys.checked, keys.validators)).to.deep.equal(['before', 'before']);
    expect(await redis().exists(keys.rejects)).to.equal(0);
  });
});
