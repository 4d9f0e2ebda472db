// The rights in Redis that docs/OPERATIONS.md gives to the API and to the importer: enough for each, and not more for the API.

import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { startDashboard } from '../support/dashboard.ts';
import { aheadOfClock } from '../support/importing.ts';
import { productKeys } from '../support/keys.ts';
import { beginMedref, medref } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts';

/** The commands of the page, as words: `ACL SETUSER <name> …`. */
const rights = readFileSync(new URL('../../docs/OPERATIONS.md', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('    ACL SETUSER '))
  .map((line) => line.trim().split(' '));

describe('the rights in Redis that are documented', function () {
  this.timeout(60_000);
  const server = useRedis();
  let redis: Redis;
  let upstream: UpstreamServer;
  let list: readonly object[] = [];

  before(async () => {
    redis = await connectForWriting(server().url);
    const version = /^redis_version:(\d+)/m.exec(await redis.info('server'))?.[1];
    if (Number(version) < 7) this.ctx.skip(); // Older ones know no rights to read alone; the page says so.
    for (const [command = '', ...words] of rights) await redis.call(command, ...words);
    await redis.set(productKeys.next, aheadOfClock);
    await redis.config('SET', 'lazyfree-lazy-expire', 'no'); // So that the importer has it to turn on.
    upstream = await startUpstreamServer((response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(list));
    });
  });
  after(async () => {
    await upstream?.close();
    redis?.disconnect();
  });

  const urlOf = (user: string) => {
    const words = rights.find(([, , name]) => name === user) ?? [];
    const password = words.find((word) => word.startsWith('>'))?.slice(1);
    return server().url.replace('redis://', `redis://${user}:${password}@`);
  };
  const importer = () => ({ REDIS_URL: urlOf('medref-importer'), PRODUCTS_URL: upstream.url().href });

  it('let the importer import without a warning, roll back, compare, resume, and make, rotate and revoke keys', async () => {
    const ran: string[] = [];
    for (const [records, ...args] of [
      [products(300), 'import'],
      [[...products(299), product(301)], 'import'],
      [[], 'import'],
      [[], 'rollback', 'products'],
      [[], 'diff', 'products'],
      [[], 'resume', 'products'],
      [[], 'versions', 'products'],
      [[], 'rejects', 'products'],
      [[], 'status'],
      [[], 'keys', 'create', '--client', 'x'],
      [[], 'keys', 'list'],
    ] as const) {
      list = records;
      const { code, stderr } = await medref([...args], { ...importer(), KEEP_VERSIONS: '2' });
      // An empty list is refused, which is an end in order too.
      ran.push(`${args.join(' ')}: ${code}${stderr.includes('may not') ? ` ${stderr}` : ''}`);
    }
    const made = await medref(['keys', 'create', '--client', 'z', '--json'], importer());
    const { id } = made.json<{ id: string }>();
    ran.push(`keys rotate: ${(await medref(['keys', 'rotate', id], importer())).code}`);
    ran.push(`keys revoke: ${(await medref(['keys', 'revoke', id], importer())).code}`);
    expect(ran).to.deep.equal([
      ...['import: 0', 'import: 0', 'import: 3', 'rollback products: 0', 'diff products: 0'],
      ...['resume products: 0', 'versions products: 0', 'rejects products: 0', 'status: 0'],
      ...['keys create --client x: 0', 'keys list: 0', 'keys rotate: 0', 'keys revoke: 0'],
    ]);
  });

  it('let the API answer every route, hear of publications, and note when a key was used', async () => {
    list = products(450);
    await medref(['import', '--force'], importer());
    const made = await medref(['keys', 'create', '--client', 'y', '--rate', '1000/s', '--json'], importer());
    const { id, key } = made.json<{ id: string; key: string }>();
    const api = beginMedref(['serve', '--json'], { REDIS_URL: urlOf('medref-api'), API_PORT: '0' });
    const [, address = ''] = await api.line(/"address":"([^"]+)"/);
    const ask = async (path: string, headers: Record<string, string> = {}) => {
      const answer = await fetch(address + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
      await answer.text();
      return `${path} ${answer.status}`;
    };
    const version = (
      await fetch(`${address}/products/1`, { headers: { authorization: `Bearer ${key}` } })
    ).headers.get('medref-version');
    for (const path of [
      ...['/products', '/products?per-page=10', '/products/7', '/drugs', '/drugs/7', '/health/ready'],
      ...['/products?name=drug', '/products?barcode=8690000000007', `/products?version=${version}`],
      `/products/changes?since=${version}`,
    ]) {
      expect(await ask(path)).to.equal(`${path} 200`);
    }
    expect(await ask('/products', { accept: 'application/x-ndjson' })).to.equal('/products 200');
    const listening = Number((await redis.pubsub('NUMSUB', 'medref:{products}:published'))[1]);
    expect(listening, 'subscriptions').to.equal(1);
    const dashboard = await startDashboard({ redisUrl: urlOf('medref-api') });
    for (const page of ['', 'imports', 'versions', 'browse', 'record?id=7', 'rejects', 'keys']) {
      expect((await fetch(`${dashboard.origin}/${page}`)).status, page).to.equal(200);
    }
    await dashboard.stop();
    const listed = await medref(['keys', 'list', '--json'], importer());
    const { keys } = listed.json<{ keys: { id: string; lastUsedAt: string | null }[] }>();
    expect(keys.find((it) => it.id === id)?.lastUsedAt).to.be.a('string');
    expect(await redis.exists(`medref:{rate:${id}}`), 'counted').to.equal(1);
    expect((await api.stop()).stderr).to.equal('');
  });

  it('let the API write nothing else, read nothing else, and run scripts on nothing else', async () => {
    const asApi = await connectForWriting(urlOf('medref-api'));
    const refused = async (...[command = '', ...words]: string[]) => {
      const answer = await asApi.call(command, ...words).catch((error: Error) => error.message);
      expect(answer, `${command} ${words.join(' ')}`).to.match(/^NOPERM /);
    };
    try {
      await refused('HSET', 'medref:keys', 'digest', '{}');
      await refused('HSET', 'medref:{products}:1:records', '1', '{}');
      await refused('SET', 'medref:{products}:live', '{}');
      await refused('DEL', 'medref:{products}:live');
      await refused('GET', 'other:key');
      await refused('PUBLISH', 'medref:{products}:published', '9');
      await refused('EVAL', "return redis.call('DEL', KEYS[1])", '1', 'medref:{products}:live');
      await refused('SET', 'medref:key-use', 'x');
      await refused('DEL', 'medref:{rate:x}');
      const hidden = asApi.call('EVAL', "return redis.call('DEL', 'medref:{products}:live')", '0');
      expect(await hidden.catch((error: Error) => error.message)).to.match(/can't run this command|NOPERM/);
      await refused('FLUSHALL');
      await refused('CONFIG', 'GET', '*');
    } finally {
      asApi.disconnect();
    }
  });
});
