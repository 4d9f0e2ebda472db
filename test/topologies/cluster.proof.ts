import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { serverWarnings } from '../../importer/server-warnings.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { startApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { products } from '../support/records.ts';
import { guarantees } from './guarantees.ts';
import { type Node, patiently, startCluster, until } from './servers.ts';

guarantees('a Cluster of three masters and three replicas', () => startCluster({ masters: 3, replicas: 1 }));

describe('an API on a Cluster', () => {
  it('survives a node that dies while it imports a slot', async () => {
    const cluster = await startCluster({ masters: 3, replicas: 0 });
    const { live } = collectionKeys('medref', productCollection);
    const from = await cluster.masterOf(live);
    const to = cluster.nodes.find((node) => node !== from) as Node;
    const slot = await from.redis.cluster('KEYSLOT', live);
    const [fromId, toId] = await Promise.all([from, to].map(({ redis }) => redis.cluster('MYID')));
    const api = await startApi({ redisUrl: cluster.url });
    try {
      await to.redis.cluster('SETSLOT', slot, 'IMPORTING', String(fromId));
      await from.redis.cluster('SETSLOT', slot, 'MIGRATING', String(toId));
      await sleep(700); // A client asks the other node for missing keys, twice a second.
      await to.server.kill();
      await sleep(2_000);
      expect((await api.get('/health/live')).status).to.equal(200);
      await cluster.revive([to]);
      for (const { redis } of [from, to]) await patiently(() => redis.cluster('SETSLOT', slot, 'STABLE'));
      await cluster.whole();
      const { reason } = await importRecords(products(3), productCollection, { redisUrl: cluster.url });
      expect(reason).to.equal(null);
      await until(async () => (await api.get('/products')).status === 200, 'readers are answered');
    } finally {
      await api.stop();
      await cluster.stop();
    }
  });
});

describe('the importer', () => {
  it('connects to a Cluster at every stage of a failover', async () => {
    const cluster = await startCluster({ masters: 3, replicas: 1 });
    try {
      await (await cluster.masterOf('any')).server.kill();
      const moments = Array.from({ length: 12 }, (_, n) => n * 150);
      const connecting = moments.map(async (ms) => {
        await sleep(ms);
        (await connectForWriting(cluster.url)).disconnect();
      });
      await Promise.all(connecting);
    } finally {
      await cluster.stop();
    }
  });

  it('checks each primary of a Cluster, and names the one with bad settings', async () => {
    const cluster = await startCluster({ masters: 3, replicas: 0 });
    const redis = await connectForWriting(cluster.url);
    try {
      expect(await serverWarnings(redis, 'medref')).to.deep.equal([]);
      await cluster.nodes[1]?.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
      const [warning, ...others] = await serverWarnings(redis, 'medref');
      expect(warning).to.match(
        new RegExp(`allkeys-lru.* This is of 127\\.0\\.0\\.1:${cluster.nodes[1]?.server.port}\\.$`),
      );
      expect(others).to.deep.equal([]);
    } finally {
      redis.disconnect();
      await cluster.stop();
    }
  });
});
