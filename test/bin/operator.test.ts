// Tests that the log says who made and revoked keys, imported manually, rolled back and resumed, and contains no key.

import { hostname, userInfo } from 'node:os';
import { expect } from 'chai';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { medref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

describe('the log of manual actions', function () {
  this.timeout(60_000);
  const server = useRedis();
  const startUpstream = upstreamServers();
  beforeEach(async () => {
    const redis = await connectForWriting(server().url);
    await redis.flushall();
    redis.disconnect();
  });

  const by = `${userInfo().username}@${hostname()}`;
  const run = async (command: string, settings: Record<string, string> = {}) => {
    const result = await medref(command.split(' '), {
      ...{ REDIS_URL: server().url, LOG_LEVEL: 'info', ...settings },
    });
    const lines = result.stderr
      .trim()
      .split('\n')
      .filter((line) => line.startsWith('{'));
    return { ...result, log: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
  };

  it('names the operator of created, rotated and revoked keys, and never shows a key', async () => {
    const made = await run('keys create --client Pharmacy --json');
    const { id, key } = made.json<{ id: string; key: string }>();
    expect(made.log).to.have.length(1);
    expect(made.log[0]).to.deep.include({ level: 30, by, id, client: 'Pharmacy', msg: 'A key was made.' });
    const rotated = await run(`keys rotate ${id} --json`);
    const { id: rotatedTo, key: newKey } = rotated.json<{ id: string; key: string }>();
    expect(rotated.log).to.have.length(1);
    expect(rotated.log[0]).to.deep.include({
      ...{ level: 30, by, id, rotatedTo, client: 'Pharmacy', msg: 'A key was rotated.' },
    });
    const revoked = await run(`keys revoke ${id}`);
    expect(revoked.log).to.have.length(1);
    expect(revoked.log[0]).to.deep.include({
      level: 30,
      by,
      id,
      client: 'Pharmacy',
      msg: 'A key was revoked.',
    });
    for (const it of [key, newKey]) expect(made.stderr + rotated.stderr + revoked.stderr).not.to.include(it);
  });

  it('names the operator of imports, rollbacks and resumes', async () => {
    let count = 3;
    const upstream = await startUpstream((response) => response.end(JSON.stringify(products(count))));
    const settings = { PRODUCTS_URL: upstream.url().href };
    const first = await run('import products --force', settings);
    expect(first.log[0]).to.deep.include({
      ...{ by, collections: ['products'], force: true, dryRun: false, msg: 'Manual import started.' },
    });
    expect(first.log.at(-1)).to.deep.include({ by, msg: 'Import of products: published.' });
    const [before] = first.log.filter(({ outcome }) => outcome === 'published');
    count = 4;
    await run('import', settings);
    const rolledBack = await run('rollback products', settings);
    expect(rolledBack.log[0]).to.deep.include({
      by,
      collection: 'products',
      to: null,
      msg: 'A rollback begins.',
    });
    expect(rolledBack.log[1]).to.deep.include({
      ...{ by, collection: 'products', outcome: 'rolled-back', contentOf: before?.['version'] },
    });
    const resumed = await run('resume products', settings);
    expect(resumed.log[0]).to.deep.include({ by, collection: 'products', wasPaused: true });
  });
});
