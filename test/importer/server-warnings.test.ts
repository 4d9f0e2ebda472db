import { type AddressInfo, connect, createServer } from 'node:net';
import { expect } from 'chai';
import { serverWarnings } from '../../importer/server-warnings.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { RedisUnavailableError } from '../../shared/redis/failures.ts';
import { useRedis } from '../support/redis-server.ts';

/** Starts what passes everything on to the Redis on a port, but for its version: it tells another one, such as 6.1.9. */
async function startTelling(version: string, redisPort: number) {
  const server = createServer((client) => {
    const redis = connect(redisPort, '127.0.0.1');
    for (const socket of [client, redis]) socket.on('error', () => socket.destroy());
    client.pipe(redis);
    redis.on('data', (bytes) => {
      // As long as its own, since the length of the reply is told before it.
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

describe('the warnings about how a Redis is set up', () => {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());

  it('are none for one that is set up as OPERATIONS.md says', async () => {
    expect(await serverWarnings(redis)).to.deep.equal([]);
  });

  it('are an error where it is older than 6.2, and none where it is not', async () => {
    const found = async (version: string) => {
      const older = await startTelling(version, server().port);
      const seen = await connectForWriting(`redis://127.0.0.1:${older.port}`);
      try {
        return await serverWarnings(seen).catch((error: Error) => error);
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

  it('name what evicts keys', async () => {
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await serverWarnings(redis)).to.deep.equal([
      'Redis may evict keys that are live (maxmemory-policy allkeys-lru); set it to noeviction.',
    ]);
  });

  it('leave out what is mended at once: that it stands still while a version expires', async () => {
    await redis.config('SET', 'maxmemory-policy', 'noeviction');
    await redis.config('SET', 'lazyfree-lazy-expire', 'no');
    expect(await serverWarnings(redis)).to.deep.equal([]);
    expect(await redis.config('GET', 'lazyfree-lazy-expire')).to.deep.equal(['lazyfree-lazy-expire', 'yes']);
  });

  it('name what a user may not mend', async () => {
    await redis.config('SET', 'maxmemory-policy', 'noeviction');
    await redis.call('ACL', 'SETUSER', 'reader', 'on', '>secret', '~*', '+@all', '-config');
    const url = new URL(server().url);
    Object.assign(url, { username: 'reader', password: 'secret' });
    const reader = await connectForWriting(url.href);
    try {
      expect(await serverWarnings(reader)).to.deep.equal([
        'The Redis user may not set lazyfree-lazy-expire; see that it is on, or large contents stop Redis as they expire.',
      ]);
    } finally {
      reader.disconnect();
    }
  });
});
