import { expect } from 'chai';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import {
  createApiKey,
  findApiKey,
  listApiKeys,
  type MadeApiKey,
  revokeApiKey,
  rotateApiKey,
} from '../../shared/store/api-keys.ts';
import { startRedisProxy, strikeOnce } from '../support/redis-proxy.ts';
import { useRedis } from '../support/redis-server.ts';

describe('API keys, when a lost reply makes a command run twice', () => {
  const server = useRedis();
  let redis: Redis;
  let made: MadeApiKey;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  beforeEach(async () => {
    await redis.flushall();
    made = await createApiKey(redis, 'medref', { client: 'pharmacy', expiresAt: null, rate: null });
  });
  after(() => redis.disconnect());

  /** Runs an action on a connection that is cut after Redis has executed a command and before its reply. */
  async function withoutReply<Result>(to: string, act: (cut: Redis) => Promise<Result>): Promise<Result> {
    const proxy = await startRedisProxy(
      server().port,
      strikeOnce(({ name }) => name === to, { moment: 'after', act: (link) => link.cut() }),
    );
    const cut = await connectForWriting(proxy.url);
    try {
      return await act(cut);
    } finally {
      cut.disconnect();
      await proxy.close();
    }
  }

  it('are rotated once, and the new key is returned', async () => {
    const rotation = await withoutReply('replace-key', (cut) =>
      rotateApiKey(cut, 'medref', { id: made.id, overlapS: 60 }),
    );
    const keys = await listApiKeys(redis, 'medref');
    expect(keys.map(({ id, rotatedTo }) => [id, rotatedTo])).to.have.deep.members([
      [made.id, rotation?.made.id],
      [rotation?.made.id, undefined],
    ]);
  });

  it('are reported as revoked', async () => {
    expect(await withoutReply('HDEL', (cut) => revokeApiKey(cut, 'medref', made.id))).to.equal(true);
    expect(await findApiKey(redis, 'medref', made.id)).to.equal(null);
  });

  it('are not rotated if another process has changed or revoked them', async () => {
    const proxy = await startRedisProxy(
      server().port,
      strikeOnce(({ name }) => name === 'replace-key', {
        moment: 'before',
        act: () => revokeApiKey(redis, 'medref', made.id),
      }),
    );
    const late = await connectForWriting(proxy.url);
    try {
      const failure = await rotateApiKey(late, 'medref', { id: made.id, overlapS: 60 }).catch(
        ({ message }: Error) => message,
      );
      expect(failure).to.equal(`The key ${made.id} was changed or revoked meanwhile; it was not rotated.`);
      expect(await listApiKeys(redis, 'medref')).to.deep.equal([]);
    } finally {
      late.disconnect();
      await proxy.close();
    }
  });
});
