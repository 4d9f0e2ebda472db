import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { type ContentName, collectionKeys } from '../../shared/keys.ts';
import { connectForWriting, type Redis } from '../../shared/redis.ts';
import * as scripts from '../../shared/scripts.ts';
import { readKeySpace } from '../support/key-space.ts';
import { useRedis } from '../support/redis-server.ts';

const keys = collectionKeys('medref', 'products');
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
  const staging = (name: ContentName): scripts.Staging => ({ keys, token, name, lifetimeMs });
  const stage = (name: ContentName, records: scripts.StagedRecord[]) =>
    scripts.stage(redis, staging(name), records);

  describe('stage', () => {
    it('writes records in order, with an expiry from the first write on', async () => {
      expect(await stage(1, [record(1, 9), record(2, 4)])).to.deep.equal([]);
      const { order, records } = keys.content(1);
      expect(await redis.zrange(order, 0, '-1')).to.deep.equal(['9', '4']);
      expect(await redis.hgetall(records)).to.deep.equal({ 9: '{"id":9}', 4: '{"id":4}' });
      for (const key of [order, records]) expect(await redis.pttl(key)).to.be.within(1, lifetimeMs);
      expect(await redis.smembers(keys.staged)).to.deep.equal(['1']);
    });

    it('keeps the first record of an id and names the later ones, within a batch and across batches', async () => {
      const first = await stage(1, [record(1, 9), record(2, 9, 'second'), record(3, 4)]);
      expect(first).to.deep.equal([{ index: 1, firstPosition: 1 }]);
      const second = await stage(1, [record(4, 5), record(5, 4, 'again'), record(6, 9, 'third')]);
      expect(second).to.deep.equal([
        { index: 1, firstPosition: 3 },
        { index: 2, firstPosition: 1 },
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
      expect(await redis.exists(keys.content(1).order, keys.content(1).records, keys.staged)).to.equal(0);
    });

    it('takes ids up to 2^53−1 and positions in the millions exactly', async () => {
      const id = Number.MAX_SAFE_INTEGER;
      await stage(1, [record(12_345_678, id)]);
      expect(await stage(1, [record(12_345_679, id)])).to.deep.equal([
        { index: 0, firstPosition: 12_345_678 },
      ]);
    });
  });

  describe('compare', () => {
    const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');
    const whole = { first: 0, last: 9 };

    it('counts what is added, changed and removed, and writes it as a change set that expires', async () => {
      await stage(1, [record(1, 1), record(2, 2), record(3, 3)]);
      await stage(2, [record(1, 1), record(2, 2, '{"id":2,"x":0}'), record(3, 4)]);
      const after = { walked: 2, other: 1, walks: 'after', ...whole } as const;
      expect(await scripts.compare(redis, staging(2), after)).to.deep.equal({ alone: 1, different: 1 });
      const before = { walked: 1, other: 2, walks: 'before', ...whole } as const;
      expect(await scripts.compare(redis, staging(2), before)).to.deep.equal({ alone: 1, different: 0 });
      expect(await redis.hgetall(keys.changeSet(2))).to.deep.equal({
        2: `${sha1('{"id":2}')} ${sha1('{"id":2,"x":0}')}`,
        3: `${sha1('{"id":3}')} -`,
        4: `- ${sha1('{"id":4}')}`,
      });
      expect(await redis.pttl(keys.changeSet(2))).to.be.within(1, lifetimeMs);
    });

    it('compares just the ranks it is given', async () => {
      await stage(2, [record(1, 1), record(2, 2), record(3, 3)]);
      const part = { walked: 2, other: 1, walks: 'after', first: 1, last: 1 } as const;
      expect(await scripts.compare(redis, staging(2), part)).to.deep.equal({ alone: 1, different: 0 });
      expect(await redis.hkeys(keys.changeSet(2))).to.deep.equal(['2']);
    });

    it('writes nothing without the lock', async () => {
      await stage(2, [record(1, 1)]);
      await redis.set(keys.lock, 'another token');
      const comparison = { walked: 2, other: 1, walks: 'after', ...whole } as const;
      await expectError(scripts.compare(redis, staging(2), comparison), scripts.LockLostError);
      expect(await redis.exists(keys.changeSet(2))).to.equal(0);
    });
  });

  const document = (number: number) => JSON.stringify({ version: number, content: number });
  const publish = (
    number: number,
    changes: Partial<scripts.Publication> = {},
    rejects: readonly string[] = ['{"total":0}'],
  ) =>
    scripts.publish(
      redis,
      { keys, token },
      {
        ...{ number, content: number, document: document(number), expectedLive: '', totalCount: 1 },
        ...{ graceMs: 5_000, leaving: { versions: [], contents: [], changeSets: [] } },
        ...{ hold: '', undone: '', redone: '', checkedAt: 'now', validators: '', ...changes },
      },
      { report: `{"version":${number}}`, historyCap: 3, rejects },
    );

  describe('publish', () => {
    it('moves the pointer, keeps the content for good, writes the history and the rejects', async () => {
      await stage(1, [record(1, 1)]);
      await redis.hset(keys.changeSet(1), '1', '- x');
      await redis.pexpire(keys.changeSet(1), 1_000);
      await publish(1, { validators: '{"etag":"x"}' }, ['{"total":2}', 'first', 'second']);
      expect(await redis.get(keys.live)).to.equal(document(1));
      expect(await redis.zrange(keys.versions, 0, '-1')).to.deep.equal(['1']);
      expect(await redis.zrange(keys.changeSets, 0, '-1')).to.deep.equal(['1']);
      expect(await redis.hgetall(keys.versionDocuments)).to.deep.equal({ 1: document(1) });
      for (const key of [keys.content(1).order, keys.content(1).records, keys.changeSet(1)]) {
        expect(await redis.pttl(key)).to.equal(-1);
      }
      expect(await redis.exists(keys.staged)).to.equal(0);
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
      await stage(1, [record(1, 1)]);
      await publish(1);
      expect(await heard).to.equal('1');
      listener.disconnect();
    });

    it('may be repeated when a reply was lost, even after the lock has gone', async () => {
      await stage(1, [record(1, 1)]);
      await publish(1);
      await redis.del(keys.lock);
      await publish(1);
      expect(await redis.xlen(keys.imports)).to.equal(1);
    });

    it('gives what leaves the kept versions a grace period and forgets its documents', async () => {
      await stage(1, [record(1, 1)]);
      await publish(1);
      await stage(2, [record(1, 2)]);
      await redis.hset(keys.changeSet(1), '1', '- x');
      const leaving = { versions: [1], contents: [1], changeSets: [1] };
      await publish(2, { expectedLive: document(1), leaving });
      expect(await redis.zrange(keys.versions, 0, '-1')).to.deep.equal(['2']);
      expect(await redis.zrange(keys.changeSets, 0, '-1')).to.deep.equal(['2']);
      expect(await redis.hkeys(keys.versionDocuments)).to.deep.equal(['2']);
      expect(await redis.pttl(keys.content(1).records)).to.be.within(1, 5_000);
      expect(await redis.pttl(keys.content(1).order)).to.be.within(1, 5_000);
      expect(await redis.pttl(keys.changeSet(1))).to.be.within(1, 5_000);
      expect(await redis.pttl(keys.content(2).records)).to.equal(-1);
    });

    it('publishes a kept content again, holds, remembers what is undone, and leaves the rejects alone', async () => {
      await stage(1, [record(1, 1)]);
      await publish(1);
      await stage(2, [record(1, 2)]);
      await publish(2, { expectedLive: document(1) }, ['{"total":7}']);
      await redis.sadd(keys.undone, 'of 1');
      const rollback = { content: 1, hold: '{"since":"now"}', undone: 'of 2', redone: 'of 1' };
      await publish(3, { expectedLive: document(2), ...rollback }, []);
      expect(await redis.get(keys.live)).to.equal(document(3));
      expect(await redis.get(keys.hold)).to.equal('{"since":"now"}');
      expect(await redis.smembers(keys.undone)).to.deep.equal(['of 2']);
      expect(await redis.lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":7}']);
      await stage(4, [record(1, 4)]);
      await publish(4, { expectedLive: document(3) });
      expect(await redis.exists(keys.hold)).to.equal(0);
    });

    it('caps the history', async () => {
      let expectedLive = '';
      for (const number of [1, 2, 3, 4, 5]) {
        await stage(number, [record(1, number)]);
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
      'when there is more than there should be': () => redis.zadd(keys.content(2).order, 9, '9'),
    };
    for (const [when, happens] of Object.entries(refusals)) {
      it(`changes nothing ${when}`, async () => {
        await stage(1, [record(1, 1)]);
        await publish(1);
        await stage(2, [record(1, 1)]);
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
      await stage(1, [record(1, 1)]);
      await redis.hset(keys.changeSet(1), '1', '- x');
      await conclude(1);
      expect((await redis.keys('*')).sort()).to.deep.equal([keys.imports, keys.lock, keys.rejects].sort());
      expect(await redis.lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":1}', 'one']);
    });

    it('stores, keeps or deletes the validators, and when upstream was checked', async () => {
      for (const number of [1, 2, 3]) await stage(number, [record(1, 1)]);
      await conclude(1, { checkedAt: 'today', validators: '{"etag":"x"}' });
      expect(await redis.mget(keys.checked, keys.validators)).to.deep.equal(['today', '{"etag":"x"}']);
      await conclude(2);
      expect(await redis.mget(keys.checked, keys.validators)).to.deep.equal(['today', '{"etag":"x"}']);
      await conclude(3, { validators: '' });
      expect(await redis.mget(keys.checked, keys.validators)).to.deep.equal(['today', null]);
    });

    it('does nothing when it is repeated, or when the version was published by a reply that was lost', async () => {
      await stage(1, [record(1, 1)]);
      expect(await conclude(1)).to.equal('dropped');
      expect(await conclude(1)).to.equal('dropped');
      expect(await redis.xlen(keys.imports)).to.equal(1);
      await stage(2, [record(1, 1)]);
      await publish(2);
      const before = await readKeySpace(redis);
      expect(await conclude(2)).to.equal('published');
      expect(await scripts.discard(redis, staging(2))).to.equal('published');
      expect(await readKeySpace(redis)).to.deep.equal(before);
    });

    it('writes nothing but the history once the lock is lost', async () => {
      await stage(1, [record(1, 1)]);
      await redis.set(keys.lock, 'another token');
      await expectError(conclude(1), scripts.LockLostError);
      expect(await redis.exists(keys.content(1).records)).to.equal(1);
      expect(await redis.exists(keys.rejects)).to.equal(0);
      expect(await redis.xlen(keys.imports)).to.equal(1);
    });
  });

  describe('discard', () => {
    it('leaves no trace of what was staged, only for the holder of the lock', async () => {
      await stage('dry-run', [record(1, 1)]);
      await redis.hset(keys.changeSet('dry-run'), '1', '- x');
      await expectError(
        scripts.discard(redis, { ...staging('dry-run'), token: 'another' }),
        scripts.LockLostError,
      );
      expect(await redis.exists(keys.staged)).to.equal(1);
      await scripts.discard(redis, staging('dry-run'));
      expect(await redis.keys('*')).to.deep.equal([keys.lock]);
    });
  });

  describe('renew and release', () => {
    it('renew the lock and what is staged, only for its holder', async () => {
      await stage(1, [record(1, 1)]);
      await redis.pexpire(keys.content(1).records, 50);
      await scripts.renew(redis, staging(1), 9_000);
      expect(await redis.pttl(keys.lock)).to.be.within(8_000, 9_000);
      expect(await redis.pttl(keys.content(1).records)).to.be.within(50_000, lifetimeMs);
      const another = { ...staging(1), token: 'another token' };
      await expectError(scripts.renew(redis, another, 9_000), scripts.LockLostError);
    });

    it('renew nothing that was published: it stays for good', async () => {
      await stage(1, [record(1, 1)]);
      await publish(1);
      await scripts.renew(redis, staging(1), 9_000);
      expect(await redis.pttl(keys.content(1).records)).to.equal(-1);
      expect(await redis.pttl(keys.content(1).order)).to.equal(-1);
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
