import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { serverWarnings } from '../../importer/server-warnings.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { promises } from './promises.ts';
import { startCluster } from './servers.ts';

promises('a Cluster of three masters and three replicas', () => startCluster({ masters: 3, replicas: 1 }));

describe('the importer', () => {
  it('can connect to a Cluster at any moment of a failover', async () => {
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

  it('looks at each master of a Cluster, and names the one that is not set up well', async () => {
    const cluster = await startCluster({ masters: 3, replicas: 0 });
    const redis = await connectForWriting(cluster.url);
    try {
      expect(await serverWarnings(redis)).to.deep.equal([]);
      await cluster.nodes[1]?.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
      const [warning, ...others] = await serverWarnings(redis);
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
