import { expect } from 'chai';
import { serverWarnings } from '../../importer/server-warnings.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { useRedis } from '../support/redis-server.ts';

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
