// Tests deploy/redis/users-replication.acl: a replica copies, a Sentinel fails over, and neither may read the data.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { type PrivateRedis, startPrivateRedis } from '../../demo/private-redis.ts';
import { medref } from '../support/medref.ts';
import { read } from '../support/project-files.ts';
import { products } from '../support/records.ts';
import { majorVersion, usersFile } from '../support/redis-users.ts';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts';
import { masterName, startSentinel, until } from '../topologies/servers.ts';

describe('the Redis users of replicas and Sentinels', function () {
  this.timeout(60_000);
  let folder: string;
  let upstream: UpstreamServer;
  const servers: PrivateRedis[] = [];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-test-replication-'));
    upstream = await startUpstreamServer((response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(products(3)));
    });
  });
  after(async () => {
    await upstream.close();
    await Promise.all(servers.map((server) => server.stop()));
    await rm(folder, { recursive: true });
  });

  async function startServer(name: string): Promise<PrivateRedis> {
    const server = await startPrivateRedis({
      dataFolder: join(folder, name),
      appendOnly: true,
      settings: {
        aclfile: join(folder, 'users.acl'),
        ...{ masteruser: 'replica', masterauth: 'replica-password', 'repl-diskless-sync-delay': '0' },
      },
      login: { user: 'admin', password: 'admin-password' },
    });
    servers.push(server);
    return server;
  }

  const connect = (port: number, user: string) =>
    new Redis(port, { username: user, password: `${user}-password`, maxRetriesPerRequest: 0 }).on(
      'error',
      () => undefined,
    );

  it('replicate a version, and allow a failover', async () => {
    const users = usersFile(majorVersion()) + read('deploy/redis/users-replication.acl');
    await writeFile(join(folder, 'users.acl'), users);
    const primary = await startServer('primary');
    const replica = await startServer('replica');
    const sentinel = await startSentinel(join(folder, 'sentinel.conf'), {
      ...{ masterPort: primary.port, quorum: 1 },
      lines: [
        `sentinel auth-user ${masterName} sentinel`,
        `sentinel auth-pass ${masterName} sentinel-password`,
      ],
    });
    const admin = connect(replica.port, 'admin');
    await admin.replicaof('127.0.0.1', primary.port);
    try {
      const settings = {
        REDIS_URL: `redis+sentinel://importer:importer-password@127.0.0.1:${sentinel.port}/${masterName}`,
        PRODUCTS_URL: upstream.url().href,
      };
      const imported = await medref(['import'], settings);
      expect(imported.code, imported.stdout).to.equal(0);
      await until(async () => {
        const asked = new Redis(sentinel.port);
        const found = await asked.call('SENTINEL', 'REPLICAS', masterName);
        asked.disconnect();
        return JSON.stringify(found).includes('master-link-status","ok');
      }, 'the Sentinel knows the replica');
      primary.process.kill('SIGKILL');
      await until(async () => (await admin.info('replication')).includes('role:master'), 'it takes over');
      // The Sentinel names the new primary a moment later.
      await until(async () => (await medref(['status'], settings)).code === 0, 'the Sentinel names it');
      const { json } = await medref(['versions', 'products', '--json'], settings);
      expect(json<{ versions: unknown[] }>().versions).to.have.length(1);
      expect((await medref(['import'], settings)).stdout).to.match(/^products +unchanged/);
    } finally {
      admin.disconnect();
      await sentinel.child.stop();
    }
  });

  it('cannot read or write the data', async () => {
    const [, replica] = servers as [PrivateRedis, PrivateRedis];
    for (const user of ['replica', 'sentinel']) {
      const redis = connect(replica.port, user);
      for (const command of [['GET', 'medref:keys'], ['SET', 'x', 'y'], ['FLUSHALL'], ['ACL', 'LIST']])
        expect(
          await redis.call(...(command as [string])).catch((error: Error) => error.message),
          `${user}: ${command.join(' ')}`,
        ).to.match(/^NOPERM/);
      redis.disconnect();
    }
  });
});
