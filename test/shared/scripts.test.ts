import { expect } from 'chai';
import { collectionKeys } from '../../shared/keys.ts';
import { connectForWriting, type Redis } from '../../shared/redis.ts';
import * as scripts from '../../shared/scripts.ts';
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
  const stage = (number: number, records: scripts.StagedRecord[], changes = {}) =>
    scripts.stage(redis, { keys, token, number, liveContent: 0, records, lifetimeMs, ...changes });

  describe('stage', () => {
    it('writes records in order, with an expiry from the first write on', async () => {
      expect(await stage(1, [record(1, 9), record(2, 4)])).to.deep.equal({
        added: 2,
        changed: 0,
        duplicates: [],
      });
      const { order, records } = keys.content(1);
      expect(await redis.zrange(order, 0, '-1')).to.deep.equal(['9', '4']);
      expect(await redis.hgetall(records)).to.deep.equal({ 9: '{"id":9}', 4: '{"id":4}' });
      for (const key of [order, records]) expect(await redis.pttl(key)).to.be.within(1, lifetimeMs);
      expect(await redis.smembers(keys.staged)).to.deep.equal(['1']);
    });

    it('keeps the first record of an id and names the later ones, within a batch and across batches', async () => {
      const first = await stage(1, [record(1, 9), record(2, 9, 'second'), record(3, 4)]);
      expect(first.duplicates).to.deep.equal([[1, 1]]);
      const second = await stage(1, [record(4, 5), record(5, 4, 'again'), record(6, 9, 'third')]);
      expect(second).to.deep.equal({
        added: 1,
        changed: 0,
        duplicates: [
          [1, 3],
          [2, 1],
        ],
      });
      expect(await redis.hgetall(keys.content(1).records)).to.deep.equal({
        9: '{"id":9}',
        4: '{"id":4}',
        5: '{"id":5}',
      });
    });

    it('counts what is added and changed against the live content', async () => {
      await stage(1, [record(1, 1), record(2, 2), record(3, 3)]);
      const staged = await stage(2, [record(1, 1), record(2, 2, '{"id":2,"x":0}'), record(3, 4)], {
        liveContent: 1,
      });
      expect(staged).to.deep.equal({ added: 1, changed: 1, duplicates: [] });
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
      expect((await stage(1, [record(12_345_679, id)])).duplicates).to.deep.equal([[0, 12_345_678]]);
    });
  });

  const document = (number: number) => JSON.stringify({ version: number, content: number });
  const publish = (number: number, changes: Partial<scripts.Publication> = {}, conclusion = {}) =>
    scripts.publish(redis, {
      ...{ keys, token },
      publication: {
        ...{ number, document: document(number), expectedLive: '', totalCount: 1, graceMs: 5_000 },
        ...{ leaving: { versions: [], contents: [] }, ...changes },
      },
      conclusion: { report: `{"version":${number}}`, historyCap: 3, rejects: ['{"total":0}'], ...conclusion },
    });

  describe('publish', () => {
    it('moves the pointer, keeps the content for good, writes the history and the rejects', async () => {
      await stage(1, [record(1, 1)]);
      await publish(1, {}, { rejects: ['{"total":2}', 'first', 'second'] });
      expect(await redis.get(keys.live)).to.equal(document(1));
      expect(await redis.zrange(keys.versions, 0, '-1')).to.deep.equal(['1']);
      expect(await redis.hgetall(keys.versionDocuments)).to.deep.equal({ 1: document(1) });
      expect(await redis.pttl(keys.content(1).order)).to.equal(-1);
      expect(await redis.pttl(keys.content(1).records)).to.equal(-1);
      expect(await redis.exists(keys.staged)).to.equal(0);
      expect(await redis.lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":2}', 'first', 'second']);
      expect((await redis.xrange(keys.imports, '-', '+')).map(([, fields]) => fields)).to.deep.equal([
        ['report', '{"version":1}'],
      ]);
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
      await publish(2, { expectedLive: document(1), leaving: { versions: [1], contents: [1] } });
      expect(await redis.zrange(keys.versions, 0, '-1')).to.deep.equal(['2']);
      expect(await redis.hkeys(keys.versionDocuments)).to.deep.equal(['2']);
      expect(await redis.pttl(keys.content(1).records)).to.be.within(1, 5_000);
      expect(await redis.pttl(keys.content(1).order)).to.be.within(1, 5_000);
      expect(await redis.pttl(keys.content(2).records)).to.equal(-1);
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
        const before = await snapshot(redis);
        await expectError(publish(2, { expectedLive: document(1) }), Error);
        expect(await snapshot(redis)).to.deep.equal(before);
      });
    }
  });

  describe('conclude', () => {
    const conclude = (number: number) =>
      scripts.conclude(redis, {
        ...{ keys, token, number },
        conclusion: { report: '{"outcome":"failed"}', historyCap: 3, rejects: ['{"total":1}', 'one'] },
      });

    it('drops what was staged, keeps the history and the rejects', async () => {
      await stage(1, [record(1, 1)]);
      await conclude(1);
      expect((await redis.keys('*')).sort()).to.deep.equal([keys.imports, keys.lock, keys.rejects].sort());
      expect(await redis.lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":1}', 'one']);
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

  describe('renew and release', () => {
    it('renew the lock and what is staged, only for its holder', async () => {
      await stage(1, [record(1, 1)]);
      await redis.pexpire(keys.content(1).records, 50);
      const renewal = { keys, token, number: 1, lockMs: 9_000, lifetimeMs };
      await scripts.renew(redis, renewal);
      expect(await redis.pttl(keys.lock)).to.be.within(8_000, 9_000);
      expect(await redis.pttl(keys.content(1).records)).to.be.within(50_000, lifetimeMs);
      await expectError(scripts.renew(redis, { ...renewal, token: 'another token' }), scripts.LockLostError);
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
    expect(await stage(1, [record(2, 2)])).to.deep.include({ added: 1 });
  });
});

async function expectError(promise: Promise<unknown>, type: new (...args: never[]) => Error): Promise<void> {
  const outcome = await promise.then(
    () => 'it went well',
    (error: unknown) => error,
  );
  expect(outcome).to.be.instanceOf(type);
}

/** Every key with its serialised value. */
async function snapshot(redis: Redis): Promise<Record<string, string | undefined>> {
  const names = (await redis.keys('*')).sort();
  const dumps = await Promise.all(names.map((name) => redis.dumpBuffer(name)));
  return Object.fromEntries(names.map((name, i) => [name, dumps[i]?.toString('hex')]));
}
