import { createHash } from 'node:crypto';
import { expect } from 'chai';
import type { ContentName, PartKeys } from '../../shared/keys.ts';
import { packIds } from '../../shared/list-order.ts';
import { connectForWriting, type Redis } from '../../shared/redis.ts';
import * as scripts from '../../shared/scripts.ts';
import { readKeySpace } from '../support/key-space.ts';
import { contentKeys, productKeys as keys, readOrder, workspaceKeys } from '../support/keys.ts';
import { useRedis } from '../support/redis-server.ts';

const token = 'the token';
const lifetimeMs = 60_000;

describe('the scripts', () => {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    await redis.set(keys.lock, token);
  });

  const record = (position: number, id: number, json = `{"id":${id}}`) => ({ position, id, json });
  const drugs = keys.derived('drugs');
  const staging = (name: ContentName): scripts.Staging => ({ keys, token, name, lifetimeMs });
  const stage = (name: ContentName, records: scripts.StagedRecord[]) =>
    scripts.stage(redis, staging(name), keys, records);
  const arrange = (name: ContentName, blocks: scripts.ArrangedBlock[], part: PartKeys = keys) =>
    scripts.arrange(redis, staging(name), part, blocks);
  const block = (number: number, ids: number[], stored: Buffer | null = Buffer.from('block')) => ({
    ...{ number, stored, order: packIds(ids) },
  });
  /** Stages all that a content has: what is in blocks and in the index does not matter here. */
  const stageWhole = async (name: ContentName, records: scripts.StagedRecord[]) => {
    for (const part of keys.parts) {
      await scripts.stage(redis, staging(name), part, records);
      const ids = records.map(({ id }) => id);
      await arrange(name, [block(0, ids)], part);
      await scripts.sort(redis, staging(name), part, [['0:0', Buffer.from('entry')]]);
      const page = { number: 0, stored: Buffer.from('page'), fence: Buffer.from('entry') };
      await scripts.seal(redis, staging(name), part, [page]);
    }
  };

  describe('stage', () => {
    it('writes records with their positions, with an expiry from the first write on', async () => {
      expect(await stage(1, [record(1, 9), record(2, 4)])).to.deep.equal([]);
      const { records } = keys.content(1);
      const { positions } = keys.workspace(1);
      expect(await redis.hgetall(positions)).to.deep.equal({ 9: '1', 4: '2' });
      expect(await redis.hgetall(records)).to.deep.equal({ 9: '{"id":9}', 4: '{"id":4}' });
      for (const key of [positions, records]) expect(await redis.pttl(key)).to.be.within(1, lifetimeMs);
      expect(await redis.smembers(keys.staged)).to.deep.equal(['1']);
    });

    it('keeps the first record of an id and names the later ones, within a batch and across batches, and whether they are the same', async () => {
      const first = await stage(1, [record(1, 9), record(2, 9, 'second'), record(3, 4)]);
      expect(first).to.deep.equal([{ index: 1, firstPosition: 1, isSame: false }]);
      const second = await stage(1, [record(4, 5), record(5, 4), record(6, 9, 'third')]);
      expect(second).to.deep.equal([
        { index: 1, firstPosition: 3, isSame: true },
        { index: 2, firstPosition: 1, isSame: false },
      ]);
      const stored = await redis.hgetall(keys.content(1).records);
      expect(stored).to.deep.equal({ 9: '{"id":9}', 4: '{"id":4}', 5: '{"id":5}' });
    });

    it('may be repeated when a reply was lost: the outcome is the same', async () => {
      await stage(1, [record(1, 1)]);
      const batch = [record(2, 2), record(3, 1, 'again')];
      const once = await stage(1, batch);
      expect(await stage(1, batch)).to.deep.equal(once);
      expect(await redis.hlen(keys.content(1).records)).to.equal(2);
    });

    it('writes nothing without the lock', async () => {
      await redis.set(keys.lock, 'another token');
      await expectError(stage(1, [record(1, 1)]), scripts.LockLostError);
      await redis.del(keys.lock);
      await expectError(stage(1, [record(1, 1)]), scripts.LockLostError);
      expect(await redis.keys('*')).to.deep.equal([]);
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
      expect(await scripts.stage(redis, staging(1), drugs, [record(2, 9, 'a drug')])).to.deep.equal([]);
      expect(await redis.hgetall(drugs.content(1).records)).to.deep.equal({ 9: 'a drug' });
      expect(await redis.hgetall(keys.content(1).records)).to.deep.equal({ 9: '{"id":9}' });
    });
  });

  describe('begin', () => {
    it('gives a number that was never given before, or stages under a name that takes none', async () => {
      const begin = (name: 'dry-run' | '') => scripts.begin(redis, { keys, token }, { name, lifetimeMs });
      expect(await begin('')).to.equal(1);
      expect(await begin('dry-run')).to.equal('dry-run');
      expect(await begin('')).to.equal(2);
      expect(await redis.smembers(keys.staged)).to.include('2');
      expect(await redis.pttl(keys.staged)).to.be.within(1, lifetimeMs);
      await redis.set(keys.lock, 'another token');
      await expectError(begin(''), scripts.LockLostError);
      expect(await redis.get(keys.next)).to.equal('2');
    });
  });

  describe('arrange', () => {
    it('writes blocks and their part of the order by their number, with an expiry', async () => {
      const ids = Array.from({ length: 200 }, (_, n) => n + 1);
      await arrange(1, [block(1, [Number.MAX_SAFE_INTEGER], Buffer.from([0, 255]))]);
      await arrange(1, [block(0, ids, null)]);
      const { order, blocks } = keys.content(1);
      expect(await readOrder(redis, order)).to.deep.equal([...ids, Number.MAX_SAFE_INTEGER].map(String));
      expect(await redis.hgetallBuffer(blocks)).to.deep.equal({ 1: Buffer.from([0, 255]) });
      for (const key of [order, blocks]) expect(await redis.pttl(key)).to.be.within(1, lifetimeMs);
    });

    it('may be repeated when a reply was lost: the outcome is the same', async () => {
      const blocks = [block(0, [7]), block(1, [8], null)];
      await arrange(1, blocks);
      const once = await readKeySpace(redis);
      await arrange(1, blocks);
      expect(await readKeySpace(redis)).to.deep.equal(once);
    });

    it('writes nothing without the lock', async () => {
      await redis.set(keys.lock, 'another token');
      await expectError(arrange(1, [block(0, [7])]), scripts.LockLostError);
      expect(await redis.keys('*')).to.deep.equal([keys.lock]);
    });
  });

  describe('sort', () => {
    const pieces = [
      ['0:0', Buffer.from([97, 0, 255])],
      ['0:1', Buffer.from([98])],
    ] as const;

    it('keeps pieces by their names, with an expiry, and may be repeated', async () => {
      const { sorting } = keys.workspace(1);
      for (let time = 1; time <= 2; time++) await scripts.sort(redis, staging(1), keys, pieces);
      expect(await redis.hgetallBuffer(sorting)).to.deep.equal(Object.fromEntries(pieces));
      expect(await redis.pttl(sorting)).to.be.within(1, lifetimeMs);
    });

    it('writes nothing without the lock', async () => {
      await redis.set(keys.lock, 'another token');
      await expectError(scripts.sort(redis, staging(1), keys, pieces), scripts.LockLostError);
      expect(await redis.keys('*')).to.deep.equal([keys.lock]);
    });
  });

  describe('seal', () => {
    const pages = [
      { number: 1, stored: Buffer.from([1, 255]), fence: Buffer.from([98]) },
      { number: 0, stored: Buffer.from([0]), fence: Buffer.from([97, 0, 255]) },
    ];

    it('writes pages by their number and what they begin with, with an expiry, and may be repeated', async () => {
      for (let time = 1; time <= 2; time++) await scripts.seal(redis, staging(1), keys, pages);
      const { entries, fences } = keys.content(1);
      expect(await redis.hgetallBuffer(entries)).to.deep.equal({
        0: Buffer.from([0]),
        1: Buffer.from([1, 255]),
      });
      expect(await redis.zrangeBuffer(fences, 0, '-1')).to.deep.equal([
        Buffer.from([97, 0, 255]),
        Buffer.from([98]),
      ]);
      for (const key of [entries, fences]) expect(await redis.pttl(key)).to.be.within(1, lifetimeMs);
    });

    it('writes nothing without the lock', async () => {
      await redis.set(keys.lock, 'another token');
      await expectError(scripts.seal(redis, staging(1), keys, pages), scripts.LockLostError);
      expect(await redis.keys('*')).to.deep.equal([keys.lock]);
    });
  });

  describe('compare', () => {
    const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');
    const whole = { range: 0 };

    it('counts what is added, changed and removed, and writes it as a change set that expires', async () => {
      await stageWhole(1, [record(1, 1), record(2, 2), record(3, 3)]);
      await stageWhole(2, [record(1, 1), record(2, 2, '{"id":2,"x":0}'), record(3, 4)]);
      const after = { part: keys, walked: 2, other: 1, walks: 'after', ...whole } as const;
      expect(await scripts.compare(redis, staging(2), after)).to.deep.equal({ alone: 1, different: 1 });
      const before = { part: keys, walked: 1, other: 2, walks: 'before', ...whole } as const;
      expect(await scripts.compare(redis, staging(2), before)).to.deep.equal({ alone: 1, different: 0 });
      expect(await redis.hgetall(keys.changeSet(2))).to.deep.equal({
        2: `${sha1('{"id":2}')} ${sha1('{"id":2,"x":0}')}`,
        3: `${sha1('{"id":3}')} -`,
        4: `- ${sha1('{"id":4}')}`,
      });
      expect(await redis.pttl(keys.changeSet(2))).to.be.within(1, lifetimeMs);
    });

    it('compares just the part of the order that it is given', async () => {
      await stageWhole(2, [record(1, 1), record(2, 2), record(3, 3)]);
      await arrange(2, [block(1, [2])]);
      const part = { part: keys, walked: 2, other: 1, walks: 'after' } as const;
      expect(await scripts.compare(redis, staging(2), { ...part, range: 1 })).to.deep.equal({
        ...{ alone: 1, different: 0 },
      });
      expect(await redis.hkeys(keys.changeSet(2))).to.deep.equal(['2']);
      expect(await scripts.compare(redis, staging(2), { ...part, range: 2 })).to.deep.equal({
        ...{ alone: 0, different: 0 },
      });
    });

    it('writes nothing without the lock', async () => {
      await stageWhole(2, [record(1, 1)]);
      await redis.set(keys.lock, 'another token');
      const comparison = { part: keys, walked: 2, other: 1, walks: 'after', ...whole } as const;
      await expectError(scripts.compare(redis, staging(2), comparison), scripts.LockLostError);
      expect(await redis.exists(keys.changeSet(2))).to.equal(0);
    });
  });

  const document = (number: number) => JSON.stringify({ version: number, content: number });
  /** Of a content with one record. */
  const sizes = (content: number): scripts.KeySize[] =>
    keys.parts.flatMap((part) => {
      const { records, order, blocks, entries, fences } = part.content(content);
      return [
        ...[records, order, blocks, entries].map((key) => ({ key, command: 'HLEN' as const, size: 1 })),
        { key: fences, command: 'ZCARD', size: 1 },
      ];
    });
  const publish = (
    number: number,
    { content = number, ...changes }: Partial<scripts.Publication> = {},
    rejects: readonly string[] = ['{"total":0}'],
  ) =>
    scripts.publish(
      redis,
      { keys, token },
      {
        ...{ number, content, document: document(number), expectedLive: '' },
        ...{
          sizes: sizes(content),
          changes: [null, null],
          graceMs: 5_000,
          leaving: { versions: [], contents: [], changeSets: [] },
        },
        ...{ hold: '', undone: '', redone: '', checkedAt: 'now', validators: '', ...changes },
      },
      { report: `{"version":${number}}`, historyCap: 3, rejects },
    );

  describe('publish', () => {
    it('moves the pointer, keeps the content for good, drops what was needed to stage it, writes the history and the rejects', async () => {
      await stageWhole(1, [record(1, 1)]);
      for (const { changeSet } of keys.parts) await redis.hset(changeSet(1), '1', '- x');
      for (const { changeSet } of keys.parts) await redis.pexpire(changeSet(1), 1_000);
      const changes = keys.parts.map(() => 1);
      await publish(1, { changes, validators: '{"etag":"x"}' }, ['{"total":2}', 'first', 'second']);
      expect(await redis.hgetall(keys.changeSet(1))).to.deep.equal({ 1: '- x', '#': '1' });
      expect(await redis.get(keys.live)).to.equal(document(1));
      expect(await redis.zrange(keys.versions, 0, '-1')).to.deep.equal(['1']);
      expect(await redis.zrange(keys.changeSets, 0, '-1')).to.deep.equal(['1']);
      expect(await redis.hgetall(keys.versionDocuments)).to.deep.equal({ 1: document(1) });
      for (const key of [...contentKeys(keys, 1), ...keys.parts.map(({ changeSet }) => changeSet(1))]) {
        expect(await redis.pttl(key), key).to.equal(-1);
      }
      expect(await redis.exists(keys.staged, ...workspaceKeys(keys, 1))).to.equal(0);
      expect(await redis.lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":2}', 'first', 'second']);
      expect((await redis.xrange(keys.imports, '-', '+')).map(([, fields]) => fields)).to.deep.equal([
        ['report', '{"version":1}'],
      ]);
      expect(await redis.get(keys.checked)).to.equal('now');
      expect(await redis.get(keys.validators)).to.equal('{"etag":"x"}');
    });

    it('announces the new version', async () => {
      const listener = redis.duplicate();
      await listener.subscribe(keys.announcements);
      const heard = new Promise((resolve) => listener.once('message', (_channel, text) => resolve(text)));
      await stageWhole(1, [record(1, 1)]);
      await publish(1);
      expect(await heard).to.equal('1');
      listener.disconnect();
    });

    it('may be repeated when a reply was lost, even after the lock has gone', async () => {
      await stageWhole(1, [record(1, 1)]);
      await publish(1);
      await redis.del(keys.lock);
      await publish(1);
      expect(await redis.xlen(keys.imports)).to.equal(1);
    });

    it('gives what leaves the kept versions a grace period and forgets its documents', async () => {
      await stageWhole(1, [record(1, 1)]);
      await publish(1);
      await stageWhole(2, [record(1, 2)]);
      for (const { changeSet } of keys.parts) await redis.hset(changeSet(1), '1', '- x');
      const leaving = { versions: [1], contents: [1], changeSets: [1] };
      await publish(2, { expectedLive: document(1), leaving });
      expect(await redis.zrange(keys.versions, 0, '-1')).to.deep.equal(['2']);
      expect(await redis.zrange(keys.changeSets, 0, '-1')).to.deep.equal(['2']);
      expect(await redis.hkeys(keys.versionDocuments)).to.deep.equal(['2']);
      for (const key of [...contentKeys(keys, 1), ...keys.parts.map(({ changeSet }) => changeSet(1))]) {
        expect(await redis.pttl(key), key).to.be.within(1, 5_000);
      }
      for (const key of contentKeys(keys, 2)) expect(await redis.pttl(key), key).to.equal(-1);
    });

    it('publishes a kept content again, holds, remembers what is undone, and leaves the rejects alone', async () => {
      await stageWhole(1, [record(1, 1)]);
      await publish(1);
      await stageWhole(2, [record(1, 2)]);
      await publish(2, { expectedLive: document(1) }, ['{"total":7}']);
      await redis.sadd(keys.undone, 'of 1');
      const rollback = { content: 1, hold: '{"since":"now"}', undone: 'of 2', redone: 'of 1' };
      await publish(3, { expectedLive: document(2), ...rollback }, []);
      expect(await redis.get(keys.live)).to.equal(document(3));
      expect(await redis.get(keys.hold)).to.equal('{"since":"now"}');
      expect(await redis.smembers(keys.undone)).to.deep.equal(['of 2']);
      expect(await redis.lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":7}']);
      await stageWhole(4, [record(1, 4)]);
      await publish(4, { expectedLive: document(3) });
      expect(await redis.exists(keys.hold)).to.equal(0);
    });

    it('sees to it that its number is not given out again by a Redis that has lost that it was', async () => {
      await redis.set(keys.next, 2);
      for (const [number, next] of [
        [1, '2'],
        [4, '4'],
      ] as const) {
        await stageWhole(number, [record(1, number)]);
        await publish(number, { expectedLive: number === 1 ? '' : document(1) });
        expect(await redis.get(keys.next)).to.equal(next);
      }
    });

    it('caps the history', async () => {
      let expectedLive = '';
      for (const number of [1, 2, 3, 4, 5]) {
        await stageWhole(number, [record(1, number)]);
        await publish(number, { expectedLive });
        expectedLive = document(number);
      }
      const reports = (await redis.xrange(keys.imports, '-', '+')).map(([, fields]) => fields[1]);
      expect(reports).to.deep.equal(['{"version":3}', '{"version":4}', '{"version":5}']);
    });

    const refusals: Record<string, () => Promise<unknown>> = {
      'when the lock is not the caller’s': () => redis.set(keys.lock, 'another token'),
      'when the lock is gone': () => redis.del(keys.lock),
      'when another version went live meanwhile': () => redis.set(keys.live, document(7)),
      'when a record is missing': () => redis.hdel(keys.content(2).records, '1'),
      'when the order is missing': () => redis.del(keys.content(2).order),
      'when there is more than there should be': () => redis.hset(keys.content(2).order, '1', '12345678'),
      'when a block is missing': () => redis.del(keys.content(2).blocks),
      'when a page of the search index is missing': () => redis.del(keys.content(2).entries),
      'when what tells the pages apart is missing': () => redis.del(keys.content(2).fences),
      'when a part of what is derived is missing': () => redis.del(drugs.content(2).records),
    };
    for (const [when, happens] of Object.entries(refusals)) {
      it(`changes nothing ${when}`, async () => {
        await stageWhole(1, [record(1, 1)]);
        await publish(1);
        await stageWhole(2, [record(1, 1)]);
        await happens();
        const before = await readKeySpace(redis);
        await expectError(publish(2, { expectedLive: document(1) }), Error);
        expect(await readKeySpace(redis)).to.deep.equal(before);
      });
    }
  });

  describe('conclude', () => {
    const conclude = (name: ContentName, end: Partial<scripts.UnpublishedEnd> = {}) =>
      scripts.conclude(
        redis,
        { keys, token },
        { name, checkedAt: '', validators: 'keep', ...end },
        { report: `{"outcome":"failed","name":${name}}`, historyCap: 3, rejects: ['{"total":1}', 'one'] },
      );

    it('drops what was staged, keeps the history and the rejects', async () => {
      await stageWhole(1, [record(1, 1)]);
      await redis.hset(keys.changeSet(1), '1', '- x');
      await conclude(1);
      expect((await redis.keys('*')).sort()).to.deep.equal([keys.imports, keys.lock, keys.rejects].sort());
      expect(await redis.lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":1}', 'one']);
    });

    it('stores, keeps or deletes the validators, and when upstream was checked', async () => {
      for (const number of [1, 2, 3]) await stageWhole(number, [record(1, 1)]);
      await conclude(1, { checkedAt: 'today', validators: '{"etag":"x"}' });
      expect(await redis.mget(keys.checked, keys.validators)).to.deep.equal(['today', '{"etag":"x"}']);
      await conclude(2);
      expect(await redis.mget(keys.checked, keys.validators)).to.deep.equal(['today', '{"etag":"x"}']);
      await conclude(3, { validators: '' });
      expect(await redis.mget(keys.checked, keys.validators)).to.deep.equal(['today', null]);
    });

    it('does nothing when it is repeated, or when the version was published by a reply that was lost', async () => {
      await stageWhole(1, [record(1, 1)]);
      expect(await conclude(1)).to.equal('dropped');
      expect(await conclude(1)).to.equal('dropped');
      expect(await redis.xlen(keys.imports)).to.equal(1);
      await stageWhole(2, [record(1, 1)]);
      await publish(2);
      const before = await readKeySpace(redis);
      expect(await conclude(2)).to.equal('published');
      expect(await scripts.discard(redis, staging(2), 2)).to.equal('published');
      expect(await readKeySpace(redis)).to.deep.equal(before);
    });

    it('writes nothing once the lock is lost, and only the history for an import that never held it', async () => {
      await stageWhole(1, [record(1, 1)]);
      await redis.set(keys.lock, 'another token');
      await expectError(conclude(1), scripts.LockLostError);
      expect(await redis.exists(keys.content(1).records)).to.equal(1);
      expect(await redis.exists(keys.rejects)).to.equal(0);
      expect(await redis.xlen(keys.imports)).to.equal(0);
      const entry = { report: '{"outcome":"locked"}', historyCap: 3, rejects: [] };
      const end = { name: '', checkedAt: '', validators: 'keep' };
      await scripts.conclude(redis, { keys, token: '' }, end, entry);
      expect(await redis.xlen(keys.imports)).to.equal(1);
      expect(await redis.get(keys.lock)).to.equal('another token');
    });
  });

  describe('retain', () => {
    it('names versions no more and lets what only they hold expire, only for the holder of the lock', async () => {
      await stageWhole(1, [record(1, 1)]);
      await publish(1);
      await stageWhole(2, [record(1, 2)]);
      await publish(2, { expectedLive: document(1) });
      const leaving = { versions: [1], contents: [1] };
      const other = { keys, token: 'another' };
      await expectError(scripts.retain(redis, other, leaving, 5_000), scripts.LockLostError);
      expect(await redis.zrange(keys.versions, 0, '-1')).to.deep.equal(['1', '2']);
      await scripts.retain(redis, { keys, token }, leaving, 5_000);
      expect(await redis.zrange(keys.versions, 0, '-1')).to.deep.equal(['2']);
      expect(await redis.hkeys(keys.versionDocuments)).to.deep.equal(['2']);
      for (const key of contentKeys(keys, 1)) expect(await redis.pttl(key), key).to.be.within(1, 5_000);
      for (const key of contentKeys(keys, 2)) expect(await redis.pttl(key), key).to.equal(-1);
    });
  });

  describe('discard', () => {
    it('leaves no trace of what was staged, only for the holder of the lock', async () => {
      await stageWhole('dry-run', [record(1, 1)]);
      await redis.hset(keys.changeSet('dry-run'), '1', '- x');
      await expectError(scripts.discard(redis, { keys, token: 'another' }, 'dry-run'), scripts.LockLostError);
      expect(await redis.exists(keys.staged)).to.equal(1);
      await scripts.discard(redis, staging('dry-run'), 'dry-run');
      expect(await redis.keys('*')).to.deep.equal([keys.lock]);
    });
  });

  describe('renew and release', () => {
    it('renew the lock and what is staged, only for its holder', async () => {
      await stageWhole(1, [record(1, 1)]);
      const staged = [...contentKeys(keys, 1), ...workspaceKeys(keys, 1)];
      for (const key of staged) await redis.pexpire(key, 50);
      await scripts.renew(redis, staging(1), 9_000);
      expect(await redis.pttl(keys.lock)).to.be.within(8_000, 9_000);
      for (const key of staged) expect(await redis.pttl(key), key).to.be.within(50_000, lifetimeMs);
      const another = { ...staging(1), token: 'another token' };
      await expectError(scripts.renew(redis, another, 9_000), scripts.LockLostError);
    });

    it('renew nothing that was published: it stays for good', async () => {
      await stageWhole(1, [record(1, 1)]);
      await publish(1);
      await scripts.renew(redis, staging(1), 9_000);
      for (const key of contentKeys(keys, 1)) expect(await redis.pttl(key), key).to.equal(-1);
    });

    it('release the lock, only for its holder', async () => {
      await scripts.release(redis, { keys, token: 'another token' });
      expect(await redis.exists(keys.lock)).to.equal(1);
      await scripts.release(redis, { keys, token });
      expect(await redis.exists(keys.lock)).to.equal(0);
    });
  });

  it('are sent again to a Redis that has forgotten them', async () => {
    await stage(1, [record(1, 1)]);
    await redis.script('FLUSH');
    expect(await stage(1, [record(2, 2)])).to.deep.equal([]);
  });
});

async function expectError(promise: Promise<unknown>, type: new (...args: never[]) => Error): Promise<void> {
  const outcome = await promise.then(
    () => 'it went well',
    (error: unknown) => error,
  );
  expect(outcome).to.be.instanceOf(type);
}
