// Tests medref keys: how operators see keys from their creation to their end.

import { expect } from 'chai';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { revokeApiKey, rotateApiKey } from '../../shared/store/api-keys.ts';
import { medref as run } from '../support/medref.ts';
import { useRedis } from '../support/redis-server.ts';

interface Key {
  id: string;
  client: string;
  key: string;
  createdAt: string;
  expiresAt: string | null;
  rate: string | null;
  lastUsedAt: string | null;
  collections?: string[];
  rotatedTo?: string;
}

describe('medref keys', () => {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(() => redis.flushall());

  const medref = (...args: string[]) => run(['keys', ...args], { REDIS_URL: server().url });
  const create = async (...args: string[]) =>
    (await medref('create', '--client', 'Pharmacy 7', '--json', ...args)).json<Key>();
  const list = async () => (await medref('list', '--json')).json<{ keys: Key[] }>().keys;
  const usual = ['id', 'client', 'createdAt', 'expiresAt', 'rate', 'lastUsedAt', 'versions'];

  it('creates keys, lists them without secrets, and revokes them', async () => {
    const made = await create();
    expect(Object.keys(made)).to.deep.equal(['id', 'client', 'key', 'expiresAt', 'rate']);
    expect(made).to.deep.include({ client: 'Pharmacy 7', expiresAt: null, rate: null });
    expect(made.key).to.match(/^medref_[0-9A-Za-z]{49}$/);
    expect((await medref('list', '--json')).stdout).not.to.include(made.key);
    const [key] = await list();
    expect(Object.keys(key ?? {})).to.deep.equal(usual);
    expect(key).to.deep.include({ id: made.id, client: 'Pharmacy 7', lastUsedAt: null, versions: {} });
    expect((await medref('revoke', made.id)).code).to.equal(0);
    expect(await list()).to.deep.equal([]);
    for (const command of ['revoke', 'rotate']) {
      const { code, stderr } = await medref(command, made.id);
      expect([code, stderr]).to.deep.equal([
        1,
        `No key has the id "${made.id}". "medref keys list" shows all keys.\n`,
      ]);
    }
  });

  it('creates keys with expiry, rate and collections', async () => {
    const made = await create(
      ...['--expires', '2099-01-31T12:00:00+03:00', '--rate', '10/s', '--collections', 'companies,products'],
    );
    const terms = {
      expiresAt: '2099-01-31T09:00:00.000Z',
      rate: '10/s',
      collections: ['products', 'companies'],
    };
    expect(made).to.deep.include(terms);
    const [key] = await list();
    expect(key).to.deep.include(terms);
    expect(Object.keys(key ?? {})).to.deep.equal([...usual, 'collections']);
    expect((await medref('list')).stdout).to.match(/ never +10\/s +Pharmacy 7\n +only products, companies\n/);
    await create();
    expect((await run(['keys', 'list'], { REDIS_URL: server().url, DEFAULT_RATE: '7/s' })).stdout).to.match(
      / never +7\/s +Pharmacy 7\n/,
    );
    expect((await medref('list')).stdout).to.match(/ never +no limit +Pharmacy 7\n/);
  });

  it('rotates a key: a new key with the same properties, and an expiry for the old one', async () => {
    const old = await create('--expires', '2099-01-31', '--rate', '10/s', '--collections', 'drugs');
    const from = Date.now();
    const rotated = await medref('rotate', old.id, '--overlap', '2h', '--json');
    const made = rotated.json<Key>();
    expect(Object.keys(made)).to.deep.equal(['id', 'client', 'key', 'expiresAt', 'rate', 'collections']);
    const { client, expiresAt, rate, collections } = old;
    expect(made).to.deep.include({ client, expiresAt, rate, collections });
    expect([made.id, made.key]).not.to.include.members([old.id]).and.not.include(old.key);
    const [first, second] = await list();
    expect(second).to.deep.include({ id: made.id, expiresAt });
    expect(second).not.to.have.property('rotatedTo');
    expect(Object.keys(first ?? {})).to.deep.equal([...usual, 'collections', 'rotatedTo', 'rotatedAt']);
    expect(first).to.deep.include({ id: old.id, rotatedTo: made.id });
    expect(Date.parse(first?.expiresAt ?? '') - from).to.be.within(7_200_000, 7_210_000);
    const again = await medref('rotate', old.id);
    expect([again.code, again.stderr]).to.deep.equal([
      1,
      `The key ${old.id} was already rotated to ${made.id}. Rotate that key, or create a new one with "medref keys create".\n`,
    ]);
  });

  it('ends the old key at once with an overlap of 0s', async () => {
    const { id } = await create();
    expect((await medref('rotate', id, '--overlap', '0s', '--json')).code).to.equal(0);
    const [old] = await list();
    expect(Date.parse(old?.expiresAt ?? '')).to.be.within(Date.now() - 10_000, Date.now());
  });

  it('lets a rotated key work for a day by default, and never longer than before', async () => {
    const [day, soon] = [
      await create(),
      await create('--expires', new Date(Date.now() + 3_600_000).toISOString()),
    ];
    for (const { id } of [day, soon]) expect((await medref('rotate', id, '--json')).code).to.equal(0);
    const keys = await list();
    const ends = (id: string) => keys.find((key) => key.id === id)?.expiresAt;
    expect(Date.parse(ends(day.id) ?? '') - Date.now()).to.be.within(86_390_000, 86_400_000);
    expect(ends(soon.id)).to.equal(soon.expiresAt);
    expect(keys.find(({ id, expiresAt }) => id !== soon.id && expiresAt === soon.expiresAt)).to.be.an(
      'object',
    );
  });

  it('refuses to rotate an expired key', async () => {
    const { id } = await create('--expires', new Date(Date.now() + 300).toISOString());
    await new Promise((resolve) => setTimeout(resolve, 350));
    const { code, stderr, stdout } = await medref('rotate', id);
    expect([code, stdout]).to.deep.equal([1, '']);
    expect(stderr).to.match(
      /^The key [0-9a-f]{12} expired at .*Z\. Create a new one with "medref keys create"\.\n$/,
    );
    expect(await list()).to.have.length(1);
  });

  it('does not restore a key revoked during its rotation, and rotates it once', async () => {
    const [one, other] = [await create(), await create()];
    const rotate = (id: string) => rotateApiKey(redis, 'medref', { id, overlapS: 60 });
    // Each call sends its first query before either call continues.
    const rotations = await Promise.allSettled([rotate(one.id), rotate(one.id)]);
    expect(rotations.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected']);
    const [revoked, late] = await Promise.allSettled([
      revokeApiKey(redis, 'medref', other.id),
      rotate(other.id),
    ]);
    expect([revoked, late?.status]).to.deep.equal([{ status: 'fulfilled', value: true }, 'rejected']);
    expect((await list()).map(({ id }) => id))
      .to.have.length(2)
      .and.include(one.id);
  });

  it('shows whether a rotated key is still used', async () => {
    const old = await create();
    await redis.hset('medref:key-use', old.id, new Date().toISOString());
    const { id } = (await medref('rotate', old.id, '--json')).json<Key>();
    expect((await medref('list')).stdout).to.include(`to ${id}, unused since\n`);
    await redis.hset('medref:key-use', old.id, new Date(Date.now() + 1).toISOString());
    expect((await medref('list')).stdout).to.include(`rotated to ${id}, still used\n`);
    expect((await medref('revoke', old.id)).code).to.equal(0);
    expect(await redis.hkeys('medref:key-use'), 'nothing remains of a removed key').to.deep.equal([]);
  });
});
