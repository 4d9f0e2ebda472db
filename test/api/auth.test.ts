// Tests API keys from a client's view: which requests are refused, and that all refusals are the same.

import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { companies as companyCollection } from '../../shared/collections/companies.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import {
  listApiKeys,
  type MadeApiKey,
  makeKeyText,
  revokeApiKey,
  rotateApiKey,
} from '../../shared/store/api-keys.ts';
import { startApi, useApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { companies } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { send, sendWithoutKey, type WireAnswer } from '../support/wire.ts';

describe('bearer keys', () => {
  const redis = useRedis();
  const api = useApi(redis);
  let connection: Redis;
  before(async () => {
    connection = await connectForWriting(redis().url);
    await importRecords(companies(3), companyCollection, { redisUrl: redis().url });
  });
  after(() => connection.disconnect());

  function makeKey(changes: { expiresAt?: Date; collections?: readonly string[] } = {}): Promise<MadeApiKey> {
    return api().makeKey(changes);
  }

  function ask(authorization?: string, path = '/companies/1'): Promise<WireAnswer> {
    return sendWithoutKey(api(), path, { headers: authorization === undefined ? {} : { authorization } });
  }

  function expectRefusal({ status, headers, body }: WireAnswer): void {
    expect(status).to.equal(401);
    expect(headers['www-authenticate']).to.equal('Bearer realm="medref"');
    expect(headers['content-type']).to.equal('application/json');
    expect(body.toString()).to.equal(
      '{"success":false,"data":{"name":"Unauthorized","message":"A valid key is required. Send it as \\"Authorization: Bearer <key>\\".","code":0,"status":401}}',
    );
  }

  describe('refuses with the same body and headers', () => {
    const refused: [what: string, authorization: () => Promise<string | undefined> | string | undefined][] = [
      ['no key', () => undefined],
      ['an empty header', () => ''],
      ['the scheme alone', () => 'Bearer'],
      ['the scheme and a space', () => 'Bearer '],
      ['a key without a scheme', () => api().key],
      ['a key as another scheme', () => `Basic ${api().key}`],
      ['a key as Basic credentials', () => `Basic ${Buffer.from(`${api().key}:`).toString('base64')}`],
      ['a scheme that only begins like ours', () => `Bearers ${api().key}`],
      ['no space after the scheme', () => `Bearer${api().key}`],
      ['a colon after the scheme', () => `Bearer: ${api().key}`],
      ['a key in quotes', () => `Bearer "${api().key}"`],
      ['a key in angle brackets', () => `Bearer <${api().key}>`],
      ['two keys', () => `Bearer ${api().key} ${api().key}`],
      ['two keys in a list', () => `Bearer ${api().key}, Bearer ${api().key}`],
      ['a key as a parameter', () => `Bearer key=${api().key}`],
      ['a key with another letter', () => `Bearer ${api().key}x`],
      ['a key without its last letter', () => `Bearer ${api().key.slice(0, -1)}`],
      ['a key in other letter case', () => `Bearer ${api().key.toUpperCase()}`],
      ['a key with padding', () => `Bearer ${api().key}=`],
      ['letters that are not ASCII', () => 'Bearer \u00e7\u00f6\u00fc'],
      ['a key of 10,000 letters', () => `Bearer ${'a'.repeat(10_000)}`],
      ['a key never made', () => `Bearer ${makeKeyText()}`],
      ['a key of the first release never made', () => `Bearer medref_${'A'.repeat(43)}`],
      ['the id of a key', async () => `Bearer ${(await makeKey()).id}`],
      ['a member of every object', () => 'Bearer __proto__'],
      [
        'an expired key',
        async () => `Bearer ${(await makeKey({ expiresAt: new Date(Date.now() - 1) })).key}`,
      ],
      [
        'a revoked key',
        async () => {
          const { id, key } = await makeKey();
          await revokeApiKey(connection, 'medref', id);
          await api().refreshKeys();
          return `Bearer ${key}`;
        },
      ],
    ];
    for (const [what, authorization] of refused) {
      it(what, async () => expectRefusal(await ask(await authorization())));
    }

    it('a stored digest in place of its key', async () => {
      const digest = (await connection.hkeys('medref:keys')).find((field) => field !== 'generation');
      expect(digest).to.match(/^[0-9a-f]{64}$/);
      expectRefusal(await ask(`Bearer ${digest}`));
    });

    it('a key in the query', async () => {
      for (const name of ['access_token', 'key', 'api_key', 'authorization']) {
        expectRefusal(await ask(undefined, `/companies/1?${name}=${api().key}`));
        const withHeader = await send(api(), `/companies/1?${name}=${api().key}`);
        expect(withHeader.status).to.equal(400);
        expect(withHeader.body.toString()).to.include(name).and.not.include(api().key);
      }
    });

    it('a key in another header', async () => {
      for (const name of ['x-api-key', 'cookie', 'proxy-authorization']) {
        expectRefusal(
          await sendWithoutKey(api(), '/companies/1', { headers: { [name]: `Bearer ${api().key}` } }),
        );
      }
    });

    it('a request without a key on every data route', async () => {
      for (const path of [
        '/products',
        '/companies',
        '/products/1',
        '/companies/1',
        '/companies/99',
        '/companies/x',
      ]) {
        expectRefusal(await ask('Bearer unknown', path));
      }
    });
  });

  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
    it(`accepts the scheme as ${scheme}`, async () => {
      expect((await ask(`${scheme} ${api().key}`)).status).to.equal(200);
    });
  }

  it('accepts several spaces after the scheme', async () => {
    expect((await ask(`Bearer   ${api().key}`)).status).to.equal(200);
  });

  it('accepts a key until it expires, and not after', async () => {
    const { key } = await makeKey({ expiresAt: new Date(Date.now() + 600) });
    expect((await ask(`Bearer ${key}`)).status).to.equal(200);
    await sleep(650);
    expectRefusal(await ask(`Bearer ${key}`));
  });

  it('refuses a key within a second of its revocation, also on open connections', async () => {
    const [one, other] = [await makeKey(), await makeKey()];
    const get = (key: string) =>
      fetch(`${api().origin}/companies/1`, { headers: { authorization: `Bearer ${key}` } }).then(
        async (response) => (await response.text()) && response.status,
      );
    for (let i = 0; i < 3; i++) expect(await get(one.key)).to.equal(200);
    await revokeApiKey(connection, 'medref', one.id);
    const deadline = Date.now() + 1_000;
    let status = await get(one.key);
    while (status !== 401 && Date.now() < deadline) status = await get(one.key);
    expect(status).to.equal(401);
    for (let i = 0; i < 5; i++) expect(await get(one.key)).to.equal(401);
    expect(await get(other.key)).to.equal(200);
  });

  it('refuses a revoked key at once if the announcement arrives, and soon if it does not', async () => {
    const [one, other] = [await makeKey(), await makeKey()];
    for (const { key } of [one, other]) expect((await ask(`Bearer ${key}`)).status).to.equal(200);
    await revokeApiKey(connection, 'medref', one.id);
    await sleep(100); // This is well before the API asks Redis again by itself.
    expectRefusal(await ask(`Bearer ${one.key}`));
    const digest = createHash('sha256').update(other.key).digest('hex');
    await connection.multi().hdel('medref:keys', digest).hset('medref:keys', 'generation', 'x').exec();
    await sleep(600);
    expectRefusal(await ask(`Bearer ${other.key}`));
  });

  it('accepts a rotated key until its overlap ends, and its new key', async () => {
    const { id, key } = await makeKey();
    expect((await ask(`Bearer ${key}`)).status).to.equal(200);
    const rotation = await rotateApiKey(connection, 'medref', { id, overlapS: 1 });
    await api().refreshKeys();
    expect((await ask(`Bearer ${key}`)).status).to.equal(200);
    await sleep(1_050);
    expectRefusal(await ask(`Bearer ${key}`));
    expect((await ask(`Bearer ${rotation?.made.key}`)).status).to.equal(200);
  });

  it('accepts keys of the first release, and several keys of a client', async () => {
    const older = `medref_${randomBytes(32).toString('base64url')}`;
    const stored = { id: '0123456789ab', client: 'pharmacy', createdAt: new Date().toISOString() };
    await connection.hset(
      'medref:keys',
      createHash('sha256').update(older).digest('hex'),
      JSON.stringify({ ...stored, expiresAt: null, rate: null }),
    );
    await connection.hset('medref:keys', 'generation', 'first');
    await api().refreshKeys();
    for (const key of [older, (await makeKey()).key, (await makeKey()).key])
      expect((await ask(`Bearer ${key}`)).status).to.equal(200);
  });

  it('responds with 403 for another collection, after the key check and before all others', async () => {
    const { key } = await makeKey({ collections: ['companies', 'drugs'] });
    const get = (path: string, method = 'GET') =>
      sendWithoutKey(api(), path, { method, headers: { authorization: `Bearer ${key}` } });
    expect((await get('/companies/1')).status).to.equal(200);
    expect((await get('/drugs')).status, 'nothing is published there').to.equal(503);
    for (const path of [
      '/products',
      '/products/1',
      '/products/changes',
      '/products/versions',
      '/products?x=',
    ]) {
      const { status, body } = await get(path);
      expect(status, path).to.equal(403);
      expect(body.toString()).to.equal(
        '{"success":false,"data":{"name":"Forbidden","message":"This key is valid for companies and drugs, not for products.","code":0,"status":403}}',
      );
    }
    expect((await get('/products', 'POST')).status).to.equal(403);
    expect((await get('/companies', 'POST')).status).to.equal(405);
    expect((await get('/nothing')).status).to.equal(404);
    expect((await get('/health/live')).status).to.equal(200);
    expect((await api().get('/products/1', { headers: { authorization: `Bearer ${key}` } })).status).to.equal(
      403,
    );
  });

  it('responds to a flood of unknown keys with 401 without asking Redis', async () => {
    await connection.config('RESETSTAT');
    const from = Date.now();
    const keys = Array.from({ length: 200 }, makeKeyText);
    const statuses = await Promise.all(keys.map(async (key) => (await ask(`Bearer ${key}`)).status));
    expect(new Set(statuses)).to.deep.equal(new Set([401]));
    const [, calls = '0'] = /^cmdstat_hget:calls=(\d+)/m.exec(await connection.info('commandstats')) ?? [];
    // The API asks Redis twice a second if keys or the live version have changed.
    expect(Number(calls)).to.be.at.most(10 + (Date.now() - from) / 50);
    expect((await ask(`Bearer ${api().key}`)).status).to.equal(200);
  });

  it('accepts a new key within half a second if its announcement is lost', async () => {
    const before = await connection.hgetall('medref:keys');
    const { key } = await makeKey();
    const after = await connection.hgetall('medref:keys');
    await connection.del('medref:keys');
    await connection.hset('medref:keys', { ...before, generation: 'a' });
    await api().refreshKeys();
    expectRefusal(await ask(`Bearer ${key}`));
    await connection.hset('medref:keys', { ...after, generation: 'b' });
    await sleep(600);
    expect((await ask(`Bearer ${key}`)).status).to.equal(200);
  });

  it('responds with 503 if Redis has not confirmed the keys for 5 s, until it has', async function () {
    this.timeout(20_000);
    const stalled = await startApi({ redisUrl: redis().url });
    try {
      expect((await send(stalled, '/companies/1')).status).to.equal(200);
      redis().pause();
      const from = Date.now();
      expect((await send(stalled, '/nothing')).status).to.equal(404);
      while (Date.now() - from < 5_600) await sleep(100);
      const refused = await send({ ...stalled, key: makeKeyText() }, '/companies/1');
      expect([refused.status, refused.headers['retry-after']]).to.deep.equal([503, '1']);
    } finally {
      redis().resume();
    }
    await sleep(1_500);
    expect((await send(stalled, '/companies/1')).status).to.equal(200);
    await stalled.stop();
  });

  it('responds with 503 for a key with a damaged document, and reports it once', async () => {
    const [made, other] = [await makeKey(), await makeKey()];
    const digest = createHash('sha256').update(made.key).digest('hex');
    await connection.hset('medref:keys', digest, 'x', 'generation', 'c');
    await api().refreshKeys();
    for (let n = 0; n < 2; n += 1) expect((await ask(`Bearer ${made.key}`)).status).to.equal(503);
    expect((await ask(`Bearer ${other.key}`)).status).to.equal(200);
    expect(api().damage.filter((it) => it.includes('medref:keys'))).to.deep.equal([
      'The Redis key medref:keys holds unexpected text.',
    ]);
    await connection.hdel('medref:keys', digest);
    await api().refreshKeys();
  });

  it('accepts a key made while the API runs', async () => {
    expect((await ask(`Bearer ${(await makeKey()).key}`)).status).to.equal(200);
  });

  const lastUseOf = async (id: string) =>
    (await listApiKeys(connection, 'medref')).find((key) => key.id === id)?.lastUsedAt ?? null;

  /** Returns the noted time of a key's last use; `null` if none is noted within a second. */
  async function notedUseOf(id: string): Promise<string | null> {
    const deadline = Date.now() + 1_000;
    let used = await lastUseOf(id);
    while (used === null && Date.now() < deadline) used = await lastUseOf(id);
    return used;
  }

  it('records when a key was last used', async () => {
    const made = await makeKey();
    expect(await lastUseOf(made.id)).to.equal(null);
    const from = Date.now();
    await ask(`Bearer ${made.key}`);
    expect(Date.parse((await notedUseOf(made.id)) ?? '')).to.be.within(from, Date.now());
  });

  it('does not record the use of a refused key', async () => {
    const [refused, accepted] = [await makeKey({ expiresAt: new Date(Date.now() - 1) }), await makeKey()];
    expectRefusal(await ask(`Bearer ${refused.key}`));
    expect((await ask(`Bearer ${accepted.key}`)).status).to.equal(200);
    // Uses are noted in the order of the requests.
    expect(await notedUseOf(accepted.id)).not.to.equal(null);
    expect(await lastUseOf(refused.id)).to.equal(null);
  });

  it('accepts a key although Redis has no memory to record its use, and records it later', async () => {
    const made = await makeKey();
    await connection.config('SET', 'maxmemory', '1');
    try {
      for (let n = 0; n < 3; n += 1) expect((await ask(`Bearer ${made.key}`)).status).to.equal(200);
      await sleep(100);
      expect(await lastUseOf(made.id)).to.equal(null);
    } finally {
      await connection.config('SET', 'maxmemory', '0');
    }
    expect((await ask(`Bearer ${made.key}`)).status).to.equal(200);
    expect(await notedUseOf(made.id)).not.to.equal(null);
  });

  it('stores no key in plain text, in no Redis key and no value', async () => {
    const made = await makeKey();
    await ask(`Bearer ${made.key}`);
    await sleep(50);
    const everything = await readEverything(connection);
    for (const stored of ['medref:keys', made.id, 'pharmacy', 'FIRM 1 LTD.'])
      expect(everything).to.include(stored);
    for (const key of [made.key, api().key]) {
      const secret = key.replace(/^medref_/, '');
      const encodings = [secret, Buffer.from(key).toString('base64'), Buffer.from(key).toString('hex')];
      for (const text of encodings) expect(everything).not.to.include(text);
    }
  });

  it('responds with 503, never 401, after Redis evicted the keys, until there are keys again', async () => {
    const stored = await connection.hgetall('medref:keys');
    const [, used] = /^used_memory:(\d+)/m.exec(await connection.info('memory')) ?? [];
    await connection.config('SET', 'maxmemory-policy', 'allkeys-random');
    await connection.config('SET', 'maxmemory', String(Number(used) - 1));
    try {
      while (await connection.exists('medref:keys'))
        await connection.set('other', 'x').catch(() => undefined);
      await connection.config('SET', 'maxmemory', '0');
      for (const policy of ['allkeys-random', 'noeviction']) {
        await connection.config('SET', 'maxmemory-policy', policy);
        const keys = [api().key, ...Array.from({ length: 20 }, makeKeyText)];
        await sleep(600);
        const replies = await Promise.all(keys.map((key) => ask(`Bearer ${key}`)));
        expect([...new Set(replies.map(({ status }) => status))], policy).to.deep.equal([503]);
        expect(replies[0]?.headers['retry-after']).to.be.a('string');
        expect(api().damage.at(-1)).to.include(
          `medref:keys is missing, and Redis evicts keys (maxmemory-policy ${policy}). Set `,
        );
      }
      await connection.hset('medref:keys', stored);
      await sleep(600);
      expectRefusal(await ask(`Bearer ${makeKeyText()}`));
    } finally {
      await connection.config('SET', 'maxmemory', '0');
      await connection.config('SET', 'maxmemory-policy', 'noeviction');
      await connection.hset('medref:keys', stored);
    }
  });
});

/** Returns every Redis key with every value, as one text. */
async function readEverything(redis: Redis): Promise<string> {
  const parts: unknown[] = [];
  for (const key of await redis.keys('*')) {
    const type = await redis.type(key);
    if (type === 'string') parts.push(key, await redis.get(key));
    else if (type === 'hash') parts.push(key, await redis.hgetall(key));
    else if (type === 'list') parts.push(key, await redis.lrange(key, 0, -1));
    else if (type === 'set') parts.push(key, await redis.smembers(key));
    else if (type === 'zset') parts.push(key, await redis.zrange(key, 0, '-1'));
    else if (type === 'stream') parts.push(key, await redis.xrange(key, '-', '+'));
    else throw new Error(`${key} is a ${type}, which this test cannot read.`);
  }
  return JSON.stringify(parts);
}
