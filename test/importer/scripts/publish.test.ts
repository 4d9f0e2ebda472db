import { expect } from 'chai';
import { contentKeys, workspaceKeys } from '../../../importer/scripts/key-lists.ts';
import { readKeySpace } from '../../support/key-space.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { oneServer } from '../../support/one-server.ts';
import {
  document,
  drugs,
  expectError,
  publishOne,
  record,
  stageWhole,
  useLockedRedis,
} from './locked-redis.ts';

describe('publish.lua', () => {
  const redis = useLockedRedis();

  it('moves the pointer, keeps the content for good, drops what was needed to stage it, writes the history and the rejects', async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    for (const { changeSet } of keys.parts) await redis().hset(changeSet(1), '1', '- x');
    for (const { changeSet } of keys.parts) await redis().pexpire(changeSet(1), 1_000);
    const changes = keys.parts.map(() => ({ size: 1, sum: 7, previous: 3 }));
    await publishOne(redis(), 1, { changes, validators: '{"etag":"x"}' }, ['{"total":2}', 'first', 'second']);
    expect(await redis().hgetall(keys.changeSet(1))).to.deep.equal({ 1: '- x', '#': '1 7 3' });
    expect(await redis().get(keys.live)).to.equal(document(1));
    expect(await redis().zrange(keys.versions, 0, '-1')).to.deep.equal(['1']);
    expect(await redis().zrange(keys.changeSets, 0, '-1')).to.deep.equal(['1']);
    expect(await redis().hgetall(keys.versionDocuments)).to.deep.equal({ 1: document(1) });
    for (const key of [...contentKeys(keys, 1), ...keys.parts.map(({ changeSet }) => changeSet(1))]) {
      expect(await redis().pttl(key), key).to.equal(-1);
    }
    expect(await redis().exists(keys.staged, ...workspaceKeys(keys, 1))).to.equal(0);
    expect(await redis().lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":2}', 'first', 'second']);
    expect((await redis().xrange(keys.imports, '-', '+')).map(([, fields]) => fields)).to.deep.equal([
      ['report', '{"version":1}'],
    ]);
    expect(await redis().get(keys.checked)).to.equal('now');
    expect(await redis().get(keys.validators)).to.equal('{"etag":"x"}');
  });

  it('announces the new version', async () => {
    const listener = oneServer(redis()).duplicate();
    await listener.subscribe(keys.announcements);
    const heard = new Promise((resolve) => listener.once('message', (_channel, text) => resolve(text)));
    await stageWhole(redis(), 1, [record(1, 1)]);
    await publishOne(redis(), 1);
    expect(await heard).to.equal('1');
    listener.disconnect();
  });

  it('may be repeated when a reply was lost, even after the lock has gone', async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    await publishOne(redis(), 1);
    await redis().del(keys.lock);
    await publishOne(redis(), 1);
    expect(await redis().xlen(keys.imports)).to.equal(1);
  });

  it('announces it again when it is repeated: replicas and the disk are waited for by what a connection wrote', async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    await publishOne(redis(), 1);
    const listener = oneServer(redis()).duplicate();
    await listener.subscribe(keys.announcements);
    const heard = new Promise((resolve) => listener.once('message', (_channel, text) => resolve(text)));
    await publishOne(redis(), 1);
    expect(await heard).to.equal('1');
    listener.disconnect();
  });

  it('gives what leaves the kept versions a grace period and forgets its documents', async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    await publishOne(redis(), 1);
    await stageWhole(redis(), 2, [record(1, 2)]);
    for (const { changeSet } of keys.parts) await redis().hset(changeSet(1), '1', '- x');
    await redis().hset(keys.damaged, { 1: 'a', 20261122030000: 'b', '20261122030000.1': 'c', 2: 'd' });
    const contents = [1, 20_261_122_030_000, '20261122030000.1'];
    const leaving = { versions: [1], contents, changeSets: [1] };
    await publishOne(redis(), 2, { expectedLive: document(1), leaving });
    expect(await redis().zrange(keys.versions, 0, '-1')).to.deep.equal(['2']);
    expect(await redis().zrange(keys.changeSets, 0, '-1')).to.deep.equal(['2']);
    expect(await redis().hkeys(keys.versionDocuments)).to.deep.equal(['2']);
    expect(await redis().hkeys(keys.damaged), 'marks of damage').to.deep.equal(['2']);
    for (const key of [...contentKeys(keys, 1), ...keys.parts.map(({ changeSet }) => changeSet(1))]) {
      expect(await redis().pttl(key), key).to.be.within(1, 5_000);
    }
    for (const key of contentKeys(keys, 2)) expect(await redis().pttl(key), key).to.equal(-1);
  });

  it('publishes a kept content again, holds, remembers what is undone, and leaves the rejects alone', async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    await publishOne(redis(), 1);
    await stageWhole(redis(), 2, [record(1, 2)]);
    await publishOne(redis(), 2, { expectedLive: document(1) }, ['{"total":7}']);
    await redis().sadd(keys.undone, 'of 1');
    const rollback = { stored: 1, hold: '{"since":"now"}', undone: 'of 2', redone: 'of 1' };
    await publishOne(redis(), 3, { expectedLive: document(2), ...rollback }, []);
    expect(await redis().get(keys.live)).to.equal(document(3));
    expect(await redis().get(keys.hold)).to.equal('{"since":"now"}');
    expect(await redis().smembers(keys.undone)).to.deep.equal(['of 2']);
    expect(await redis().lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":7}']);
    await stageWhole(redis(), 4, [record(1, 4)]);
    await publishOne(redis(), 4, { expectedLive: document(3) });
    expect(await redis().exists(keys.hold)).to.equal(0);
  });

  it('sees to it that its number is not given out again by a Redis that has lost that it was', async () => {
    await redis().set(keys.next, 2);
    for (const [number, next] of [
      [1, '2'],
      [4, '4'],
    ] as const) {
      await stageWhole(redis(), number, [record(1, number)]);
      await publishOne(redis(), number, { expectedLive: number === 1 ? '' : document(1) });
      expect(await redis().get(keys.next)).to.equal(next);
    }
  });

  it('caps the history', async () => {
    let expectedLive = '';
    for (const number of [1, 2, 3, 4, 5]) {
      await stageWhole(redis(), number, [record(1, number)]);
      await publishOne(redis(), number, { expectedLive });
      expectedLive = document(number);
    }
    const reports = (await redis().xrange(keys.imports, '-', '+')).map(([, fields]) => fields[1]);
    expect(reports).to.deep.equal(['{"version":3}', '{"version":4}', '{"version":5}']);
  });

  const refusals: Record<string, () => Promise<unknown>> = {
    'when the lock is not the caller’s': () => redis().set(keys.lock, 'another token'),
    'when the lock is gone': () => redis().del(keys.lock),
    'when another version went live meanwhile': () => redis().set(keys.live, document(7)),
    'when a record is missing': () => redis().hdel(keys.content(2).records, '1'),
    'when the order is missing': () => redis().del(keys.content(2).order),
    'when there is more than there should be': () => redis().hset(keys.content(2).order, '1', '12345678'),
    'when a block is missing': () => redis().del(keys.content(2).blocks),
    'when a page of the search index is missing': () => redis().del(keys.content(2).entries),
    'when what tells the pages apart is missing': () => redis().del(keys.content(2).fences),
    'when a part of what is derived is missing': () => redis().del(drugs.content(2).records),
    'when a change set is missing': () => redis().del(keys.changeSet(2)),
    'when a part of a derived change set is missing': () => redis().hdel(drugs.changeSet(2), '2'),
  };
  for (const [when, happens] of Object.entries(refusals)) {
    it(`changes nothing ${when}`, async () => {
      await stageWhole(redis(), 1, [record(1, 1)]);
      await publishOne(redis(), 1);
      await stageWhole(redis(), 2, [record(1, 1)]);
      for (const { changeSet } of keys.parts) await redis().hset(changeSet(2), { 1: '- x', 2: '- y' });
      await happens();
      const before = await readKeySpace(redis());
      const changes = keys.parts.map(() => ({ size: 2, sum: 7, previous: 1 }));
      await expectError(publishOne(redis(), 2, { expectedLive: document(1), changes }), Error);
      expect(await readKeySpace(redis())).to.deep.equal(before);
    });
  }
});
