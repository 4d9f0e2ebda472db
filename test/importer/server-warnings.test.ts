import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { serverWarnings } from '../../importer/server-warnings.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { RedisUnavailableError } from '../../shared/redis/failures.ts';
import { beginMedref, medref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { majorVersion, withUser } from '../support/redis-users.ts';
import { startUpstreamServer } from '../support/upstream-server.ts';

/** Starts a proxy to the Redis on a port. It reports a different version of Redis, such as 6.1.9. */
async function startTelling(version: string, redisPort: number) {
  const server = createServer((client) => {
    const redis = connect(redisPort, '127.0.0.1');
    for (const socket of [client, redis]) socket.on('error', () => socket.destroy());
    client.pipe(redis);
    redis.on('data', (bytes) => {
      // The text has the original length, because the reply states its length first.
      const telling = (_: string, its: string) => `redis_version:${`${version}.`.padEnd(its.length, '9')}`;
      client.write(bytes.toString('latin1').replace(/redis_version:(\S+)/, telling), 'latin1');
    });
    client.on('close', () => redis.destroy());
    redis.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

describe('warnings about the settings of Redis', () => {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());

  it('are none with the settings of REDIS.md', async () => {
    expect(await serverWarnings(redis, 'medref')).to.deep.equal([]);
  });

  it('are an error for versions before 6.2', async () => {
    const found = async (version: string) => {
      const older = await startTelling(version, server().port);
      const seen = await connectForWriting(`redis://127.0.0.1:${older.port}`);
      try {
        return await serverWarnings(seen, 'medref').catch((error: Error) => error);
      } finally {
        seen.disconnect();
        await older.close();
      }
    };
    for (const version of ['5.9', '6.1']) {
      const error = await found(version);
      expect(error, version).to.be.instanceOf(RedisUnavailableError);
      expect((error as Error).message.replace(/9+;/, '9;')).to.equal(
        `This Redis is version ${version}.9; medref needs 6.2 or newer, or Valkey.`,
      );
    }
    for (const version of ['6.2', '7.0']) expect(await found(version), version).to.deep.equal([]);
  });

  it('name the eviction policy', async () => {
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await serverWarnings(redis, 'medref')).to.deep.equal([
      'Redis may evict live data and API keys (maxmemory-policy allkeys-lru). Set maxmemory-policy to noeviction.',
    ]);
  });

  it('appear in status, the log of serve and /health/ready, which stays ready', async () => {
    await redis.config('SET', 'maxmemory-policy', 'volatile-lru');
    const warning =
      'Redis may evict live data and API keys (maxmemory-policy volatile-lru). Set maxmemory-policy to noeviction.';
    const url = withUser(server().url, 'importer');
    const upstream = await startUpstreamServer((response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(products(3)));
    });
    await medref(['import'], { REDIS_URL: url, PRODUCTS_URL: upstream.url().href });
    await upstream.close();
    const { json } = await medref(['status', '--json'], { REDIS_URL: url });
    expect(json<{ warnings: string[] }>().warnings).to.include(warning);
    const api = beginMedref(['serve', '--json'], { REDIS_URL: withUser(server().url, 'api'), API_PORT: '0' });
    const [, address] = await api.line(/"address":"([^"]+)"/);
    while (!api.stderr.text.includes(warning)) await sleep(20);
    const ready = await fetch(`${address}/health/ready`);
    const { data } = (await ready.json()) as { data: { warnings: string[] } };
    expect([ready.status, data.warnings]).to.deep.equal([200, [warning]]);
    await api.stop();
  });

  it('omit lazy expiry, which is turned on at once', async () => {
    await redis.config('SET', 'maxmemory-policy', 'noeviction');
    await redis.config('SET', 'lazyfree-lazy-expire', 'no');
    expect(await serverWarnings(redis, 'medref')).to.deep.equal([]);
    expect(await redis.config('GET', 'lazyfree-lazy-expire')).to.deep.equal(['lazyfree-lazy-expire', 'yes']);
  });

  it('name a setting that the user may not change', async () => {
    await redis.config('SET', 'maxmemory-policy', 'noeviction');
    await redis.call('ACL', 'SETUSER', 'reader', 'on', '>secret', '~*', '+@all', '-config');
    const url = new URL(server().url);
    Object.assign(url, { username: 'reader', password: 'secret' });
    const reader = await connectForWriting(url.href);
    try {
      expect(await serverWarnings(reader, 'medref')).to.deep.equal([
        'The Redis user may not set lazyfree-lazy-expire. Turn it on, or Redis blocks while large contents expire.',
      ]);
    } finally {
      reader.disconnect();
    }
  });

  describe('about an append-only file that user default may not replay', () => {
    const may = [
      ['user default off resetpass ~* +@all', 'off', 'resetpass', '~*', '+@all'],
      [
        'user default off ~medref:* +@all -@dangerous',
        'off',
        'resetkeys',
        '~medref:*',
        '+@all',
        '-@dangerous',
      ],
    ].slice(0, majorVersion() < 7 ? 1 : 2); // Redis 6.2 reports only rules, so medref requires all rights there.
    const mayNot = [
      ['user default off', 'reset', 'off'],
      ['user default on nopass -@all +ping', 'reset', 'on', 'nopass', '+ping'],
      ['user default off ~medref:{products}* +@all', 'off', 'resetkeys', '~medref:{products}*', '+@all'],
      ['user default off ~* +@all -xadd', 'off', '~*', '+@all', '-xadd'],
    ];
    const withFile = useRedis({ appendOnly: true });

    for (const [line = '', ...rules] of [...may, ...mayNot])
      it(`${may.some(([it]) => it === line) ? 'are absent' : 'appear'} with "${line}", in import, status and serve`, async () => {
        const admin = await connectForWriting(withUser(withFile().url, 'admin'));
        try {
          await admin.call('ACL', 'SETUSER', 'default', ...rules);
          const found = await serverWarnings(admin, 'medref');
          const { json } = await medref(['status', '--json'], {
            REDIS_URL: withUser(withFile().url, 'importer'),
          });
          const shown = json<{ warnings: string[] }>().warnings;
          const api = beginMedref(['serve', '--json'], {
            ...{ REDIS_URL: withUser(withFile().url, 'api'), API_PORT: '0' },
          });
          await api.line(/"address"/);
          if (mayNot.some(([it]) => it === line)) {
            while (!api.stderr.text.includes('A restart of Redis loses')) await sleep(20);
            expect(found).to.have.length(1);
            expect(found[0]).to.match(
              /^A restart of Redis loses versions, rollbacks and revoked keys: .* may not run /,
            );
            expect(shown).to.include(found[0]);
          } else expect([found, shown.filter((it) => it.includes('restart'))]).to.deep.equal([[], []]);
          const { stderr } = await api.stop();
          expect(stderr.includes('A restart of Redis loses')).to.equal(found.length > 0);
        } finally {
          await admin.call('ACL', 'SETUSER', 'default', 'reset', 'on', 'nopass', '~*', '&*', '+@all');
          admin.disconnect();
        }
      });

    it('say so if the user may not check it', async () => {
      await redis.config('SET', 'appendonly', 'yes');
      await redis.call('ACL', 'SETUSER', 'other', 'on', '>p', '~*', '&*', '+@all', '-acl');
      const other = await connectForWriting(server().url.replace('://', '://other:p@'));
      expect(await serverWarnings(other, 'medref')).to.deep.equal([
        'The Redis user may not run ACL DRYRUN, so medref cannot check whether a restart of Redis keeps the data. Give it +acl|dryrun; on Redis 6.2, +acl|getuser.',
      ]);
      other.disconnect();
      await redis.config('SET', 'appendonly', 'no');
    });
  });
});
