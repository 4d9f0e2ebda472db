import { expect } from 'chai';
import { LiveVersions } from '../../../api/read/live-versions.ts';
import { PublicationWaits } from '../../../api/read/publication-waits.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { importRecords } from '../../support/importing.ts';
import { products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('waits for a publication', () => {
  const server = useRedis();
  let redis: Redis;
  let waits: PublicationWaits;
  let since: number;
  before(async () => {
    redis = await connectForWriting(server().url);
    const { version } = await importRecords(products(1), productCollection, { redisUrl: server().url });
    since = version as number;
    const live = new LiveVersions({
      ...{ redis, listener: redis, keyPrefix: 'medref', sources: [productCollection] },
    });
    await live.refresh(productCollection);
    waits = new PublicationWaits(live);
  });
  after(() => redis.disconnect());

  const wait = (onWaiting = (_leave: () => void) => {}) =>
    waits.until({ source: productCollection, since, ms: 60_000, onWaiting });

  it('end when their clients disconnect', async () => {
    expect(await wait((leave) => setImmediate(leave))).to.equal('left');
    expect(waits.count).to.equal(0);
  });

  it('end at once when the process stops, including later ones', async () => {
    const waiting = wait();
    waits.stop();
    expect([await waiting, await wait()]).to.deep.equal(['stopped', 'stopped']);
    expect(waits.count).to.equal(0);
  });
});
