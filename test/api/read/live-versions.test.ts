// Tests which version a process takes as live while another Redis, or something that looks like one, replaces its own.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { LiveVersions } from '../../../api/read/live-versions.ts';
import { Replica } from '../../../api/read/replica.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { contentKeys } from '../../../shared/store/keys.ts';
import { type LiveVersion, readLiveVersion } from '../../../shared/store/versions.ts';
import { startApi, type TestApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { productKeys } from '../../support/keys.ts';
import { products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { send } from '../../support/wire.ts';

describe('the live version', () => {
  const server = useRedis();
  let redis: Redis;
  let other: Redis;
  let api: TestApi;
  const otherUrl = () => `${server().url}/1`;
  before(async () => {
    redis = await connectForWriting(server().url);
    other = await connectForWriting(otherUrl());
  });
  after(() => {
    redis.disconnect();
    other.disconnect();
  });
  beforeEach(async () => {
    await redis.flushall();
    api = await startApi({ redisUrl: server().url });
    await publish(server().url, 3);
    while ((await send(api, '/products')).status !== 200);
    await other.hset('medref:keys', await redis.hgetall('medref:keys'));
  });
  afterEach(() => api.stop());

  async function publish(redisUrl: string, count: number): Promise<number | null> {
    const { outcome, version } = await importRecords(products(count), productCollection, {
      redisUrl,
      force: true,
    });
    expect(outcome).to.equal('published');
    return version;
  }

  it('stays the last known one if its pointer is damaged, which is reported once', async () => {
    const document = (await redis.get(productKeys.live)) as string;
    const until = async (isSo: () => boolean) => {
      while (!isSo()) await sleep(20);
    };
    const stays = 'Until it is repaired, the API serves the last known version.';
    await redis.set(productKeys.live, 'x');
    await until(() => api.damage.length > 0);
    await sleep(1_100); // The API checks it twice a second.
    expect(api.damage).to.deep.equal([`The Redis key ${productKeys.live} holds unexpected text. ${stays}`]);
    expect((await send(api, '/products')).status).to.equal(200);
    const becomeHash = () => redis.multi().del(productKeys.live).hset(productKeys.live, 'x', 'x').exec();
    await becomeHash();
    await until(() => api.damage.length > 1);
    expect(api.damage[1]).to.equal(
      `The Redis key ${productKeys.live} has the unexpected type hash. ${stays}`,
    );
    await redis.set(productKeys.live, document);
    await sleep(1_100);
    await becomeHash();
    await until(() => api.damage.length > 2);
    expect(api.damage[2], 'reported again after a repair').to.equal(api.damage[1]);
  });

  it('never goes back if replies arrive out of order', async () => {
    const older = await readLiveVersion(redis, productKeys);
    await publish(server().url, 4);
    const newer = await readLiveVersion(redis, productKeys);
    /** A replica that replies late, like one that hangs. The reply of the primary is outdated by then. */
    class Late extends Replica {
      readonly replies: ((live: LiveVersion | null) => void)[] = [];
      override readLive = () => new Promise<LiveVersion | null>((resolve) => this.replies.push(resolve));
    }
    const replica = new Late({ master: redis, replica: redis });
    const its = { redis, listener: redis, keyPrefix: 'medref', sources: [productCollection], replica };
    const live = new LiveVersions(its);
    const asked = [live.refresh(productCollection), live.refresh(productCollection)];
    const [first, second] = replica.replies;
    second?.(newer);
    expect(await asked[1]).to.deep.equal(newer);
    first?.(older);
    expect(await asked[0]).to.deep.equal(newer);
    expect(live.known(productCollection)).to.deep.equal(newer);
  });

  it('changes within a second if its content differs under the same number', async () => {
    const ahead = 30_000_101_000_000;
    for (const its of [redis, other]) await its.set(productKeys.next, ahead);
    const version = await publish(server().url, 4);
    expect(await publish(otherUrl(), 5)).to.equal(version);
    while ((await send(api, '/products')).headers['medref-version'] !== String(version));
    await redis.swapdb(0, 1);
    const deadline = Date.now() + 1_000;
    let totalCount = 0;
    while (totalCount !== 5 && Date.now() < deadline) {
      totalCount = JSON.parse((await send(api, '/products')).body.toString())._meta.totalCount;
    }
    const { headers, body } = await send(api, '/products');
    const { data, _meta } = JSON.parse(body.toString());
    expect([headers['medref-version'], _meta.totalCount, data.length]).to.deep.equal([String(version), 5, 5]);
  });

  it('is compared only within its own Redis, even if another has the same number and date', async () => {
    await redis.set(productKeys.next, 30_000_101_000_000);
    // These dates are ahead of the clock, so the next versions get equal dates.
    const [since] = [await publish(server().url, 4), await publish(server().url, 5)];
    for (const key of await redis.keys('*')) await redis.copy(key, key, 'DB', 1, 'REPLACE');
    const version = await publish(server().url, 6);
    expect(await publish(otherUrl(), 9)).to.equal(version);
    const [its, others] = await Promise.all([redis, other].map((it) => readLiveVersion(it, productKeys)));
    expect(its?.publishedAt).to.equal(others?.publishedAt);
    const list = async (path: string) => JSON.parse((await send(api, path)).body.toString());
    const counts = async () => {
      const { data, _meta } = await list('/products');
      const changes = await list(`/products/changes?since=${since}`);
      return [_meta.totalCount, data.length, changes._meta?.totalCount];
    };
    const deadline = Date.now() + 2_000;
    while ((await counts())[0] !== 6 && Date.now() < deadline);
    expect(await counts()).to.deep.equal([6, 6, 2]);
    await redis.swapdb(0, 1);
    while ((await counts())[0] !== 9 && Date.now() < deadline);
    expect(await counts()).to.deep.equal([9, 9, 5]);
  });

  for (const path of ['/products?ids=1,2', '/products?name=drug', '/products/2']) {
    it(`is read again if the previous one expired, and the response to ${path} is consistent, including its ETag`, async () => {
      const gone = await publish(otherUrl(), 3);
      const version = await publish(otherUrl(), 5);
      await other.unlink(...contentKeys(productKeys, gone as number));
      const before = await send(api, path);
      expect(before.headers['medref-version']).not.to.equal(String(version));
      await redis.swapdb(0, 1);
      const first = await send(api, path);
      expect([first.status, first.headers['medref-version']]).to.deep.equal([200, String(version)]);
      const second = await send(api, path);
      for (const name of ['etag', 'last-modified', 'medref-version']) {
        expect(first.headers[name], name).to.equal(second.headers[name]);
      }
      expect(first.headers.etag).not.to.equal(before.headers.etag);
      expect(first.body.equals(second.body)).to.equal(true);
    });
  }
});
