import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { connectForServing, connectForWriting } from '../../shared/redis/connections.ts';
import { startMedref } from '../support/medref.ts';
import { useRedis } from '../support/redis-server.ts';
import { guarantees } from './guarantees.ts';
import { masterName, startSentinel, startSentinels } from './servers.ts';

guarantees('a master with two replicas and three Sentinels', startSentinels);

describe('a primary that was demoted without notice', () => {
  const server = useRedis();
  let url: string;
  let stop: () => Promise<void>;
  before(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'medref-test-sentinel-'));
    const watched = { masterPort: server().port, quorum: 1 };
    const { child, port } = await startSentinel(join(folder, 'sentinel.conf'), watched);
    url = `redis+sentinel://127.0.0.1:${port}/${masterName}`;
    stop = async () => {
      await child.stop();
      await rm(folder, { recursive: true, force: true });
    };
  });
  after(() => stop());

  it('accepts writes once there is a primary again; serving fails at once and then finds it', async () => {
    const [writing, serving] = [await connectForWriting(url), connectForServing(url)];
    await new Promise((resolve) => serving.once('ready', resolve));
    const itself = await connectForWriting(server().url);
    await itself.call('REPLICAOF', '127.0.0.1', '1');
    const written = writing.set('a', 'b');
    const refused = await serving.set('a', 'c').catch((error: Error) => error.message);
    expect(refused).to.match(/^READONLY /);
    await sleep(300);
    await itself.call('REPLICAOF', 'NO', 'ONE');
    expect(await written).to.equal('OK');
    while ((await serving.get('a').catch(() => null)) !== 'b') await sleep(20);
    for (const redis of [writing, serving, itself]) redis.disconnect();
  });

  it('is served from without its Sentinel, and no library writes to stderr', async () => {
    const REDIS_URL = url.replace(/\/([^/]+)$/, ',127.0.0.1:1/$1'); // A second Sentinel that does not run.
    const api = startMedref(['serve', '--json'], { REDIS_URL, API_PORT: '0', LOG_LEVEL: 'info' });
    const [, address] = await api.line(/"address":"([^"]+)"/);
    await stop();
    await sleep(500);
    expect((await fetch(`${address}/products`)).status).to.equal(401);
    api.process.kill('SIGTERM');
    const { stderr } = await api.ended;
    for (const line of stderr.trim().split('\n')) expect(() => JSON.parse(line), line).not.to.throw();
  });
});
