import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type ContentName, contentKeys } from '../../../shared/store/keys.ts';
import {
  begin,
  conclude,
  discard,
  discardAll,
  LockLostError,
  release,
  renew,
  replaceKey,
  retain,
  type UnpublishedEnd,
  writeLocked,
} from '../../../shared/store/scripts.ts';
import { readKeySpace } from '../../support/key-space.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { oneServer } from '../../support/one-server.ts';
import {
  begun,
  document,
  expectError,
  lifetimeMs,
  lock,
  publishOne,
  stage,
  token,
  useLockedRedis,
} from './locked-redis.ts';

const folder = new URL('../../../shared/store/', import.meta.url);
const textOf = (script: string) => readFileSync(new URL(`${script}.lua`, folder), 'utf8');

describe('a Lua script', () => {
  const redis = useLockedRedis();

  // A Cluster runs a script only if all its keys are declared.
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.lua'))) {
    it(`touches only declared keys: ${file}`, () => {
      const code = readFileSync(new URL(file, folder), 'utf8').replaceAll(/--.*/g, '');
      const calls = [...code.matchAll(/redis\.p?call\(([^,)]+)(?:, *([^,)]+))?/g)];
      expect(calls).not.to.have.length(0);
      // setOrDelete is the only function that takes a key.
      const isDeclared = ([, command = '', key = '']: RegExpMatchArray) =>
        ["'TIME'", "'PUBLISH'"].includes(command) || /^KEYS\[/.test(key) || key === 'key';
      expect(calls.filter((call) => !isDeclared(call)).map(([call]) => call)).to.deep.equal([]);
      for (const [, key] of code.matchAll(/setOrDelete\(([^,]+),/g))
        expect(key).to.match(/^(KEYS\[\d+\]|key)$/);
      expect(code).not.to.match(/redis\.(setresp|set_repl|replicate_commands)/);
    });
  }

  it('is sent again if Redis has forgotten it', async () => {
    for (let i = 0; i < 2; i += 1) {
      await begin(redis(), lock, { name: `dry-run-${i}`, lifetimeMs });
      await redis().script('FLUSH');
    }
    expect(await redis().scard(keys.staged)).to.equal(2);
  });
});

describe('begin', () => {
  const redis = useLockedRedis();

  const beginOnce = (name = '') => begin(redis(), lock, { name, lifetimeMs });
  /** Returns the time as a number, calculated in another way than in the script. */
  const timeAsNumber = (time: Date) => Number(time.toISOString().replace(/\D/g, '').slice(0, 14));

  it('numbers versions by the UTC time in seconds', async () => {
    const before = timeAsNumber(new Date());
    const number = Number(await beginOnce());
    expect(number).to.be.within(before, timeAsNumber(new Date()));
    expect(await redis().get(keys.next)).to.equal(String(number));
    expect(await redis().smembers(keys.staged)).to.deep.equal([String(number)]);
    expect(await redis().pttl(keys.staged)).to.be.within(1, lifetimeMs);
  });

  it('follows the calendar', async () => {
    const days = [
      '1970-01-01',
      '1999-12-31',
      '2000-02-29',
      '2000-03-01',
      '2023-02-28',
      '2024-02-29',
      '2024-12-31',
    ];
    const later = ['2027-01-01', '2027-03-01', '2036-02-29', '2099-12-31', '2100-02-28', '2100-03-01'];
    const text = textOf('begin');
    const calendar = text.slice(text.indexOf('local function timeAsNumber'), text.indexOf('local name'));
    for (const day of [...days, ...later]) {
      for (const clock of ['00:00:00', '09:08:07', '23:59:59']) {
        const time = new Date(`${day}T${clock}Z`);
        const lua = `${calendar} return string.format('%.0f', timeAsNumber(tonumber(ARGV[1])))`;
        const found = await redis().eval(lua, 0, time.getTime() / 1000);
        expect(Number(found), `${day} ${clock}`).to.equal(timeAsNumber(time));
      }
    }
  });

  it('returns the last number + 1 if the time is not greater', async () => {
    const first = Number(await beginOnce());
    expect(Number(await beginOnce())).to.be.within(first + 1, first + 2);
    const ahead = 30_000_101_000_000;
    const sources: Record<string, () => Promise<unknown>> = {
      'the number given out last': () => redis().set(keys.next, ahead),
      'a kept version': () => redis().zadd(keys.versions, ahead, ahead, 5, 5),
      'a version with changes': () => redis().zadd(keys.changeSets, ahead, ahead, 5, 5),
      'a version, if the number given out last is none': async () => {
        await redis().set(keys.next, 'damaged');
        await redis().zadd(keys.versions, ahead, ahead);
      },
    };
    for (const [what, store] of Object.entries(sources)) {
      await redis().del(keys.next, keys.versions, keys.changeSets);
      await store();
      expect([await beginOnce(), await beginOnce()].map(Number), what).to.deep.equal([ahead + 1, ahead + 2]);
    }
  });

  it('stages under a given name without a number', async () => {
    expect(await beginOnce('dry-run-1')).to.equal('dry-run-1');
    expect(await redis().exists(keys.next)).to.equal(0);
    expect(await redis().smembers(keys.staged)).to.deep.equal(['dry-run-1']);
  });

  it('returns nothing without the lock', async () => {
    await redis().set(keys.lock, 'another token');
    await expectError(beginOnce(), LockLostError);
    expect(await redis().exists(keys.next, keys.staged)).to.equal(0);
  });
});

describe('renew, release and locked writes', () => {
  const redis = useLockedRedis();
  const other = { ...begun(1), token: 'another token' };

  it('renew the lock and staged keys only for its holder', async () => {
    await stage(redis(), 1);
    const staged = [keys.staged, ...contentKeys(keys, 1)];
    for (const key of staged) await redis().pexpire(key, 5_000);
    await renew(redis(), begun(1), 9_000);
    expect(await redis().pttl(keys.lock)).to.be.within(8_000, 9_000);
    for (const key of staged) expect(await redis().pttl(key), key).to.be.within(50_000, lifetimeMs);
    await expectError(renew(redis(), other, 9_000), LockLostError);
  });

  it('do not renew a published version, which stays', async () => {
    await stage(redis(), 1);
    await publishOne(redis(), 1);
    await renew(redis(), begun(1), 9_000);
    for (const key of contentKeys(keys, 1)) expect(await redis().pttl(key), key).to.equal(-1);
  });

  it('release the lock only for its holder', async () => {
    await release(redis(), other);
    expect(await redis().exists(keys.lock)).to.equal(1);
    await release(redis(), lock);
    expect(await redis().exists(keys.lock)).to.equal(0);
  });

  it('write in one step only for the holder', async () => {
    const writes = [
      ['SET', keys.next, 7],
      ['HSET', keys.damaged, 1, 'It is "damaged".'],
    ] as const;
    await expectError(writeLocked(redis(), other, writes), LockLostError);
    expect(await redis().exists(keys.next, keys.damaged)).to.equal(0);
    await writeLocked(redis(), lock, writes);
    expect(await redis().get(keys.next)).to.equal('7');
    expect(await redis().hgetall(keys.damaged)).to.deep.equal({ 1: 'It is "damaged".' });
  });

  it('delete kept versions and let their data expire, only for the holder', async () => {
    await stage(redis(), 1);
    await publishOne(redis(), 1);
    await stage(redis(), 2);
    await publishOne(redis(), 2, { expectedLive: document(1) });
    await redis().hset(keys.damaged, { 1: 'a', 20261122030000: 'b', '20261122030000.1': 'c', 2: 'd' });
    const leaving = { versions: [1], contents: [1, 20_261_122_030_000, '20261122030000.1'] };
    await expectError(retain(redis(), other, leaving, 5_000), LockLostError);
    expect(await redis().zrange(keys.versions, 0, '-1')).to.deep.equal(['1', '2']);
    await retain(redis(), lock, leaving, 5_000);
    expect(await redis().zrange(keys.versions, 0, '-1')).to.deep.equal(['2']);
    expect(await redis().hkeys(keys.versionDocuments)).to.deep.equal(['2']);
    for (const key of contentKeys(keys, 1)) expect(await redis().pttl(key), key).to.be.within(1, 5_000);
    expect(await redis().hkeys(keys.damaged)).to.deep.equal(['2']);
    for (const key of contentKeys(keys, 2)) expect(await redis().pttl(key), key).to.equal(-1);
  });
});

describe('conclude', () => {
  const redis = useLockedRedis();

  const end = (name: ContentName, facts: Partial<UnpublishedEnd> = {}) =>
    conclude(
      redis(),
      lock,
      { name, checkedAt: '', validators: { kind: 'keep' }, ...facts },
      { report: `{"outcome":"failed","name":${name}}`, historyCap: 3, rejects: ['{"total":1}', 'one'] },
    );

  it('deletes staged keys, stores the history and the rejects', async () => {
    await stage(redis(), 1);
    await redis().hset(keys.changeSet(1), '1', '- x');
    await end(1);
    expect((await redis().keys('*')).sort()).to.deep.equal([keys.imports, keys.lock, keys.rejects].sort());
    expect(await redis().lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":1}', 'one']);
  });

  it('stores, keeps or deletes the validators and the time of the check', async () => {
    const stored = () => redis().mget(keys.checked, keys.validators);
    await end(1, { checkedAt: 'today', validators: { kind: 'set', text: '{"etag":"x"}' } });
    expect(await stored()).to.deep.equal(['today', '{"etag":"x"}']);
    await end(2);
    expect(await stored()).to.deep.equal(['today', '{"etag":"x"}']);
    await end(3, { validators: { kind: 'delete' } });
    expect(await stored()).to.deep.equal(['today', null]);
  });

  it('limits the history to the given length', async () => {
    for (const number of [1, 2, 3, 4, 5]) await end(number);
    const history = await redis().xrange(keys.imports, '-', '+');
    expect(history.map(([, [, report = '']]) => JSON.parse(report).name)).to.deep.equal([3, 4, 5]);
  });

  it('does nothing when repeated, or if the version was published and only the reply was lost', async () => {
    await stage(redis(), 1);
    expect(await end(1)).to.equal('dropped');
    expect(await end(1)).to.equal('dropped');
    expect(await redis().xlen(keys.imports)).to.equal(1);
    await stage(redis(), 2);
    await publishOne(redis(), 2);
    const before = await readKeySpace(redis());
    expect(await end(2)).to.equal('published');
    expect(await discard(redis(), begun(2), 2)).to.equal('published');
    expect(await readKeySpace(redis())).to.deep.equal(before);
  });

  it('writes nothing after the lock is lost; an import without a lock only enters the history', async () => {
    await stage(redis(), 1);
    await redis().set(keys.lock, 'another token');
    await expectError(end(1), LockLostError);
    expect(await redis().exists(keys.content(1).records)).to.equal(1);
    expect(await redis().exists(keys.rejects, keys.imports)).to.equal(0);
    await redis().mset(keys.checked, 'before', keys.validators, 'before');
    const entry = { report: '{"outcome":"locked"}', historyCap: 3, rejects: ['{"total":1}', 'one'] };
    const facts = { name: '', checkedAt: 'now', validators: { kind: 'delete' } } as const;
    await conclude(redis(), { keys, token: '' }, facts, entry);
    expect(await redis().xlen(keys.imports)).to.equal(1);
    expect(await redis().get(keys.lock)).to.equal('another token');
    expect(await redis().mget(keys.checked, keys.validators)).to.deep.equal(['before', 'before']);
    expect(await redis().exists(keys.rejects)).to.equal(0);
  });

  it('discards staged keys without a trace, only for the holder of the lock', async () => {
    const before = await readKeySpace(redis());
    for (const name of ['dry-run-1', 2]) await stage(redis(), name);
    await expectError(discard(redis(), { ...lock, token: 'another' }, 2), LockLostError);
    expect(await redis().get(keys.lock)).to.equal(token);
    await discardAll(redis(), lock);
    expect(await readKeySpace(redis())).to.deep.equal(before);
  });
});

describe('publish', () => {
  const redis = useLockedRedis();

  it('moves the pointer, keeps the content, deletes staging data, writes history and rejects', async () => {
    await stage(redis(), 1);
    for (const { changeSet } of keys.parts) await redis().hset(changeSet(1), '1', '- x');
    for (const { changeSet } of keys.parts) await redis().pexpire(changeSet(1), 1_000);
    const changes = keys.parts.map(() => ({ size: 1, sum: 7, previous: 3, previousMs: 0 }));
    await publishOne(redis(), 1, { changes, validators: '{"etag":"x"}' }, ['{"total":2}', 'first', 'second']);
    expect(await redis().hgetall(keys.changeSet(1))).to.deep.equal({ 1: '- x', '#': '1 7 3 0' });
    expect(await redis().get(keys.live)).to.equal(document(1));
    expect(await redis().zrange(keys.versions, 0, '-1')).to.deep.equal(['1']);
    expect(await redis().zrange(keys.changeSets, 0, '-1')).to.deep.equal(['1']);
    expect(await redis().hgetall(keys.versionDocuments)).to.deep.equal({ 1: document(1) });
    for (const key of [...contentKeys(keys, 1), ...keys.parts.map(({ changeSet }) => changeSet(1))]) {
      expect(await redis().pttl(key), key).to.equal(-1);
    }
    expect(await redis().exists(keys.staged)).to.equal(0);
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
    await stage(redis(), 1);
    await publishOne(redis(), 1);
    expect(await heard).to.equal('1');
    listener.disconnect();
  });

  it('may be repeated after a lost reply, even without the lock', async () => {
    await stage(redis(), 1);
    await publishOne(redis(), 1);
    await redis().del(keys.lock);
    await publishOne(redis(), 1);
    expect(await redis().xlen(keys.imports)).to.equal(1);
  });

  it('announces again when repeated: replicas and disk confirm only what a connection wrote', async () => {
    await stage(redis(), 1);
    await publishOne(redis(), 1);
    const listener = oneServer(redis()).duplicate();
    await listener.subscribe(keys.announcements);
    const heard = new Promise((resolve) => listener.once('message', (_channel, text) => resolve(text)));
    await publishOne(redis(), 1);
    expect(await heard).to.equal('1');
    listener.disconnect();
  });

  it('lets old contents expire after a grace period and deletes their documents', async () => {
    await stage(redis(), 1);
    await publishOne(redis(), 1);
    await stage(redis(), 2);
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

  it('publishes a kept content again, pauses, remembers the rollback, and keeps the rejects', async () => {
    await stage(redis(), 1);
    await publishOne(redis(), 1);
    await stage(redis(), 2);
    await publishOne(redis(), 2, { expectedLive: document(1) }, ['{"total":7}']);
    await redis().sadd(keys.rolledBack, 'of 1');
    const rollback = { stored: 1, pause: '{"since":"now"}', rolledBack: 'of 2', reinstated: 'of 1' };
    await publishOne(redis(), 3, { expectedLive: document(2), ...rollback }, []);
    expect(await redis().get(keys.live)).to.equal(document(3));
    expect(await redis().get(keys.pause)).to.equal('{"since":"now"}');
    expect(await redis().smembers(keys.rolledBack)).to.deep.equal(['of 2']);
    expect(await redis().lrange(keys.rejects, 0, -1)).to.deep.equal(['{"total":7}']);
    await stage(redis(), 4);
    await publishOne(redis(), 4, { expectedLive: document(3) });
    expect(await redis().exists(keys.pause)).to.equal(0);
  });

  it('never uses a number again, even if Redis has lost its last writes', async () => {
    await redis().set(keys.next, 2);
    for (const [number, next] of [
      [1, '2'],
      [4, '4'],
    ] as const) {
      await stage(redis(), number);
      await publishOne(redis(), number, { expectedLive: number === 1 ? '' : document(1) });
      expect(await redis().get(keys.next)).to.equal(next);
    }
  });

  it('caps the history', async () => {
    let expectedLive = '';
    for (const number of [1, 2, 3, 4, 5]) {
      await stage(redis(), number);
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
    'when a key of the content is missing': () => redis().del(contentKeys(keys, 2)[0] as string),
    'when a key of a derived content is missing': () => redis().del(contentKeys(keys, 2).at(-1) as string),
    'when there is more than there should be': () => redis().hset(keys.content(2).order, '2', 'x'),
    'when a change set is missing': () => redis().del(keys.changeSet(2)),
    'when a part of a derived change set is missing': () =>
      redis().hdel(keys.derived('drugs').changeSet(2), '2'),
  };
  for (const [when, happens] of Object.entries(refusals)) {
    it(`changes nothing ${when}`, async () => {
      await stage(redis(), 1);
      await publishOne(redis(), 1);
      await stage(redis(), 2);
      for (const { changeSet } of keys.parts) await redis().hset(changeSet(2), { 1: '- x', 2: '- y' });
      await happens();
      const before = await readKeySpace(redis());
      const changes = keys.parts.map(() => ({ size: 2, sum: 7, previous: 1, previousMs: 0 }));
      await expectError(publishOne(redis(), 2, { expectedLive: document(1), changes }), Error);
      expect(await readKeySpace(redis())).to.deep.equal(before);
    });
  }
});

describe('replaceKey', () => {
  const redis = useLockedRedis();
  const hash = 'medref:keys';
  const replaced = { digest: 'a', from: 'old', to: 'new', also: ['b', 'made', '#', '7'] };

  it('replaces a value and sets further fields, and may be repeated', async () => {
    await redis().hset(hash, 'a', 'old');
    for (let i = 0; i < 2; i += 1) expect(await replaceKey(redis(), hash, replaced)).to.equal(true);
    expect(await redis().hgetall(hash)).to.deep.equal({ a: 'new', b: 'made', '#': '7' });
  });

  it('does nothing if the value has changed or is gone', async () => {
    expect(await replaceKey(redis(), hash, replaced)).to.equal(false);
    await redis().hset(hash, 'a', 'changed');
    expect(await replaceKey(redis(), hash, replaced)).to.equal(false);
    expect(await redis().hgetall(hash)).to.deep.equal({ a: 'changed' });
  });
});
