import { expect } from 'chai';
import { begin } from '../../../importer/scripts/begin.ts';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { contentKeys, stagedKeys, workspaceKeys } from '../../../importer/scripts/key-lists.ts';
import { NotPublishedError, StagedLostError } from '../../../importer/scripts/publish.ts';
import { type Replacement, replaceContent } from '../../../importer/scripts/replace-content.ts';
import { connectForListening, type Redis } from '../../../shared/redis/connections.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { oneServer } from '../../support/one-server.ts';
import {
  begun,
  document,
  expectError,
  held,
  lifetimeMs,
  publishOne,
  record,
  sizes,
  stageWhole,
  useLockedRedis,
} from './locked-redis.ts';

describe('replace-content.lua', () => {
  const redis = useLockedRedis();
  const name = '1.1';
  let listener: Redis | undefined;
  afterEach(() => listener?.disconnect());
  const anew = (version: number) => JSON.stringify({ version, content: 1, stored: name });
  const replace = (changes: Partial<Replacement> = {}) =>
    replaceContent(redis(), begun(name), {
      ...{ was: 1, documents: [[1, anew(1)] as const, [2, anew(2)] as const], live: anew(2) },
      ...{ expectedLive: document(2), sizes: sizes(name), graceMs: 5_000, ...changes },
    });

  beforeEach(async () => {
    await stageWhole(redis(), 1, [record(1, 1)]);
    await publishOne(redis(), 1);
    await publishOne(redis(), 2, { stored: 1, expectedLive: document(1) });
    await begin(redis(), held, { name, lifetimeMs });
    await stageWhole(redis(), name, [record(1, 1)]);
    await redis().hset(keys.damaged, { 1: 'a record', 3: 'another content' });
  });

  const isAsBefore = async () => {
    expect(await redis().get(keys.live)).to.equal(document(2));
    expect(await redis().hvals(keys.versionDocuments)).to.have.members([document(1), document(2)]);
    for (const key of contentKeys(keys, 1)) expect(await redis().pttl(key), key).to.equal(-1);
    expect(await redis().hlen(keys.damaged)).to.equal(2);
  };

  it('is held by all versions that held the damaged one, which is let go with its mark; and it is announced', async () => {
    const { host, port } = oneServer(redis()).options;
    listener = connectForListening(`redis://${host}:${port}`);
    const heard = new Promise((resolve) => listener?.on('message', (_channel, text) => resolve(text)));
    await listener.subscribe(keys.announcements);
    await replace();
    expect(await redis().get(keys.live)).to.equal(anew(2));
    expect(await redis().hgetall(keys.versionDocuments)).to.deep.equal({ 1: anew(1), 2: anew(2) });
    for (const key of contentKeys(keys, name)) expect(await redis().pttl(key), key).to.equal(-1);
    for (const key of contentKeys(keys, 1)) expect(await redis().pttl(key), key).to.be.within(1, 5_000);
    expect(await redis().exists(...workspaceKeys(keys, name))).to.equal(0);
    expect(await redis().sismember(keys.staged, name)).to.equal(0);
    expect(await redis().hgetall(keys.damaged)).to.deep.equal({ 3: 'another content' });
    expect(await heard).to.equal('1');
  });

  it('leaves the pointer alone where another content is live', async () => {
    await redis().set(keys.live, 'another');
    await replace({ live: '', expectedLive: '' });
    expect(await redis().get(keys.live)).to.equal('another');
  });

  it('may be repeated when a reply was lost, even after the lock has gone', async () => {
    await replace();
    await redis().del(keys.lock);
    await replace();
    expect(await redis().get(keys.live)).to.equal(anew(2));
  });

  it('does nothing once the lock is lost, another version is live, or a part of it is lost', async () => {
    await redis().set(keys.lock, 'another');
    await expectError(replace(), LockLostError);
    await redis().set(keys.lock, held.token);
    await expectError(replace({ expectedLive: document(9) }), NotPublishedError);
    await isAsBefore();
    for (const key of contentKeys(keys, name)) {
      const stored = await redis().dumpBuffer(key);
      await redis().del(key);
      await expectError(replace(), StagedLostError);
      await redis().restore(key, lifetimeMs, stored);
    }
    await isAsBefore();
    expect(await redis().exists(...stagedKeys(keys, name))).to.be.above(0);
    await replace();
  });
});
