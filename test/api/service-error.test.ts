// Tests service errors: 503 if a retry may help, 500 if an operator must repair something. All are reported.

import { expect } from 'chai';
import { type ServiceError, serviceErrorOf } from '../../api/errors.ts';
import { TooManyJoinsError } from '../../api/read/changes.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { productKeys as keys } from '../support/keys.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';

describe('a service error', function () {
  this.timeout(60_000);
  const server = useRedis();
  let redis: Redis;
  let api: TestApi;
  let troubles: ServiceError[];
  let unauthorized: number;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    await redis.call('ACL', 'SETUSER', 'api', 'reset', 'on', '>p', '~*', '&*', '+@all');
    await start(server().url.replace('redis://', 'redis://api:p@'));
  });
  afterEach(() => api.stop());

  async function start(redisUrl: string): Promise<void> {
    troubles = [];
    unauthorized = 0;
    api = await startApi({
      redisUrl,
      onServiceError: (trouble) => void troubles.push(trouble),
      onUnauthorized: () => {
        unauthorized += 1;
      },
    });
  }

  const publish = (records: readonly unknown[]) =>
    importRecords(records, productCollection, { redisUrl: server().url, force: true });
  const forbid = (command: string) => redis.call('ACL', 'SETUSER', 'api', `-${command}`);
  const met = () => troubles.map(({ cause, status }) => [cause, status]);

  it('is 503 before anything is published, and reported', async () => {
    const { status, headers } = await api.get('/products');
    expect([status, headers.get('retry-after')]).to.deep.equal([503, '5']);
    expect(met()).to.deep.equal([['nothing-published', 503]]);
    expect(troubles[0]?.reason).to.equal('No version of products has been published yet.');
  });

  it('is 500 without advice to retry if Redis refuses a required command', async () => {
    await publish(products(3));
    await forbid('hmget');
    const { status, headers, text } = await api.get('/products/1');
    expect([status, headers.get('retry-after')]).to.deep.equal([500, null]);
    expect(JSON.parse(text)).to.deep.equal({
      success: false,
      data: {
        name: 'Internal Server Error',
        message: 'The service cannot read its data. The error has been logged.',
        ...{ code: 0, status: 500 },
      },
    });
    expect(met()).to.deep.equal([['forbidden', 500]]);
    expect(troubles[0]?.reason).to.match(/^Redis refuses a command of the API: NOPERM .*hmget/);
  });

  it('keeps /health/ready at 503 with a plain reason', async () => {
    await publish(products(3));
    await forbid('get');
    const { status, text, headers } = await api.get('/health/ready');
    expect([status, headers.get('retry-after')]).to.deep.equal([503, '5']);
    expect((JSON.parse(text) as { data: { message: string } }).data.message).to.equal(
      'Not ready: The Redis user lacks a right that medref needs. docs/REDIS.md lists the rights.',
    );
    expect(met()).to.deep.equal([['forbidden', 503]]);
  });

  it('is 503 for a Redis key of the wrong type, and reported as damage', async () => {
    const { version } = await publish(products(3));
    await redis.set(keys.content(version as number).records, 'x');
    expect((await api.get('/products/1')).status).to.equal(503);
    expect(met()).to.deep.equal([['damaged', 503]]);
    expect(troubles[0]?.reason, 'the damage was already reported').to.equal(null);
    expect(api.damage).to.have.length(1);
  });

  it('is 503 if too many joins are queued, or Redis is temporarily unavailable', () => {
    expect(serviceErrorOf(new TooManyJoinsError())).to.deep.include({
      cause: 'busy',
      status: 503,
      retryAfter: 1,
    });
    for (const reply of ['LOADING', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'BUSY']) {
      const error = Object.assign(new Error(`${reply} x`), { name: 'ReplyError' });
      expect(serviceErrorOf(error), reply).to.deep.include({ cause: 'away', status: 503, retryAfter: 1 });
    }
  });

  it('does not include 401, which is counted separately', async () => {
    expect((await api.get('/products', { headers: { authorization: 'Bearer x' } })).status).to.equal(401);
    expect([unauthorized, met()]).to.deep.equal([1, []]);
  });
});
