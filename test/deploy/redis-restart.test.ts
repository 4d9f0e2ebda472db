// Tests a Redis with the shipped users and an append-only file: a restart loses no publication, rollback or revocation.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { startPrivateRedis } from '../../demo/private-redis.ts';
import { beginMedref, medref } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { majorVersion, withUser } from '../support/redis-users.ts';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts';

// Redis 7 and newer accept both files; Redis 6.2 accepts its own.
const files = majorVersion() < 7 ? ['users-6.2.acl'] : ['users.acl', 'users-6.2.acl'];

describe('a restart of Redis with the shipped users', function () {
  this.timeout(60_000);
  let upstream: UpstreamServer;
  let list: readonly object[] = [];
  before(async () => {
    upstream = await startUpstreamServer((response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(list));
    });
  });
  after(() => upstream.close());

  /** Returns all stored data that operators and clients can see, as JSON. */
  async function seen(url: string, keys: readonly string[]): Promise<object> {
    const operator = { REDIS_URL: withUser(url, 'operator') };
    const json = async (...args: string[]) => (await medref([...args, '--json'], operator)).json<object>();
    const status = await json('status');
    const text = JSON.stringify(status).replaceAll(/"ageSeconds":\d+/g, '"ageSeconds":0');
    const serving = { REDIS_URL: withUser(url, 'api'), API_PORT: '0', BASE_URL: 'https://medref.example' };
    const api = beginMedref(['serve', '--json'], serving);
    const [, address = ''] = await api.line(/"address":"([^"]+)"/);
    const replies = await Promise.all(
      keys.map(async (key) => {
        const reply = await fetch(`${address}/products`, { headers: { authorization: `Bearer ${key}` } });
        return [reply.status, reply.headers.get('etag')];
      }),
    );
    const stopped = await api.stop();
    expect(stopped.stderr).to.equal('');
    const verified = await medref(['verify'], operator);
    return {
      status: JSON.parse(text),
      ...{ versions: await json('versions', 'products'), diff: await json('diff', 'products') },
      rejects: await json('rejects', 'products'),
      keys: JSON.parse(
        JSON.stringify(await json('keys', 'list')).replaceAll(/"lastUsedAt":"[^"]+"/g, '"lastUsedAt":"used"'),
      ),
      ...{ replies, verified: [verified.code, verified.stdout] },
    };
  }

  // The users and the time of a write to disk are independent.
  for (const [n, appendfsync] of ['always', 'everysec'].entries()) {
    const file = files[n % files.length] as string;
    it(`keeps versions, pause, history and keys with ${file} and appendfsync ${appendfsync}`, async () => {
      const dataFolder = await mkdtemp(join(tmpdir(), 'medref-test-restart-'));
      const aclfile = fileURLToPath(new URL(`../../deploy/redis/${file}`, import.meta.url));
      const options = {
        ...{ dataFolder, appendOnly: true, settings: { aclfile, appendfsync } },
        login: { user: 'admin', password: 'admin-password' },
      };
      let redis = await startPrivateRedis(options);
      try {
        const { port, url } = redis;
        const importer = { REDIS_URL: withUser(url, 'importer'), PRODUCTS_URL: upstream.url().href };
        const operator = { REDIS_URL: withUser(url, 'operator') };
        const run = async (args: string, settings: Record<string, string>) => {
          const { code, stderr, stdout } = await medref(args.split(' '), settings);
          expect(code, `${args}: ${stderr}${stdout}`).to.equal(0);
          return stdout;
        };
        list = products(300);
        await run('import', importer);
        list = [...products(299), product(301), { product: { id: 302 } }];
        await run('import', importer);
        await run('rollback products', importer);
        const keys: { id: string; key: string }[] = [];
        for (const client of ['kept', 'revoked', 'rotated'])
          keys.push(JSON.parse(await run(`keys create --client ${client} --json`, operator)));
        await run(`keys revoke ${keys[1]?.id}`, operator);
        keys.push(JSON.parse(await run(`keys rotate ${keys[2]?.id} --json`, operator)));
        const sent = keys.map(({ key }) => key);
        const before = await seen(url, sent);
        expect(before).to.have.nested.property('status.collections[0].pause.since');
        expect((before as { replies: unknown[][] }).replies.map(([status]) => status)).to.deep.equal([
          ...[200, 401, 200, 200],
        ]);

        for (const end of ['in order', 'SIGKILL'] as const) {
          if (end === 'in order') await redis.stop();
          else redis.process.kill('SIGKILL');
          await redis.ended;
          redis = await startPrivateRedis({ ...options, port });
          expect(await seen(url, sent), `after a restart ${end}`).to.deep.equal(before);
          expect(redis.output.stdout).not.to.include('NOPERM');
        }
      } finally {
        await redis.stop();
        await rm(dataFolder, { recursive: true });
      }
    });
  }
});
