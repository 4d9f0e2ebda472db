// Tests the users of deploy/redis/: each may do what it must, and nothing else.

import { expect } from 'chai';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { startDashboard } from '../support/dashboard.ts';
import { aheadOfClock } from '../support/importing.ts';
import { productKeys } from '../support/keys.ts';
import { beginMedref, medref } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { type RedisUser, usersFile, withUser } from '../support/redis-users.ts';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts';

describe('the users of Redis', function () {
  this.timeout(60_000);
  const server = useRedis({ appendOnly: true, settings: { appendfsync: 'always' } });
  let redis: Redis;
  let version: number;
  let upstream: UpstreamServer;
  let list: readonly object[] = [];

  before(async () => {
    redis = await connectForWriting(server().url);
    version = Number(/^redis_version:(\d+)/m.exec(await redis.info('server'))?.[1]);
    await redis.set(productKeys.next, aheadOfClock);
    upstream = await startUpstreamServer((response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(list));
    });
  });
  after(async () => {
    await upstream?.close();
    redis?.disconnect();
  });

  const urlOf = (user: RedisUser) => withUser(server().url, user);
  const importer = () => ({ REDIS_URL: urlOf('importer'), PRODUCTS_URL: upstream.url().href });
  const operator = () => ({ ...importer(), REDIS_URL: urlOf('operator') });

  it('let the importer import without warnings, roll back, compare and resume, and the operator also manage keys', async () => {
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
      [[], 'verify'],
    ] as const) {
      list = records;
      const { code, stderr } = await medref([...args], { ...importer(), KEEP_VERSIONS: '2' });
      // The import refuses an empty list, which is also a regular end.
      ran.push(`${args.join(' ')}: ${code}${stderr.includes('may not') ? ` ${stderr}` : ''}`);
    }
    list = products(302);
    for (const args of ['import --force', 'rollback products', 'verify --repair', 'status', 'keys list']) {
      const { code, stderr } = await medref(args.split(' '), operator());
      ran.push(`operator: ${args}: ${code}${stderr.includes('may not') ? ` ${stderr}` : ''}`);
    }
    const made = await medref(['keys', 'create', '--client', 'z', '--json'], operator());
    const { id } = made.json<{ id: string }>();
    ran.push(`keys rotate: ${(await medref(['keys', 'rotate', id], operator())).code}`);
    ran.push(`keys revoke: ${(await medref(['keys', 'revoke', id], operator())).code}`);
    expect(ran).to.deep.equal([
      ...['import: 0', 'import: 0', 'import: 3', 'rollback products: 0', 'diff products: 0'],
      ...['resume products: 0', 'versions products: 0', 'rejects products: 0', 'status: 0', 'verify: 0'],
      ...['operator: import --force: 0', 'operator: rollback products: 0', 'operator: verify --repair: 0'],
      ...['operator: status: 0', 'operator: keys list: 0', 'keys rotate: 0', 'keys revoke: 0'],
    ]);
  });

  it('let the API serve every route, receive announcements, and record the use of keys', async () => {
    list = products(450);
    await medref(['import', '--force'], importer());
    const made = await medref(['keys', 'create', '--client', 'y', '--rate', '1000/s', '--json'], operator());
    const { id, key } = made.json<{ id: string; key: string }>();
    const api = beginMedref(['serve', '--json'], { REDIS_URL: urlOf('api'), API_PORT: '0' });
    const [, address = ''] = await api.line(/"address":"([^"]+)"/);
    const ask = async (path: string, headers: Record<string, string> = {}) => {
      const response = await fetch(address + path, {
        headers: { authorization: `Bearer ${key}`, ...headers },
      });
      await response.text();
      return `${path} ${response.status}`;
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
    expect(await redis.exists(`medref:{rate:${id}}`), 'counted').to.equal(1);
    const listening = Number((await redis.pubsub('NUMSUB', 'medref:{products}:published'))[1]);
    expect(listening, 'subscriptions').to.equal(1);
    const dashboard = await startDashboard({ redisUrl: urlOf('api') });
    for (const page of ['', 'imports', 'versions', 'browse', 'record?id=7', 'rejects', 'keys']) {
      expect((await fetch(`${dashboard.origin}/${page}`)).status, page).to.equal(200);
    }
    await dashboard.stop();
    const listed = await medref(['keys', 'list', '--json'], operator());
    const { keys } = listed.json<{ keys: { id: string; lastUsedAt: string | null }[] }>();
    expect(keys.find((it) => it.id === id)?.lastUsedAt).to.be.a('string');
    expect((await api.stop()).stderr).to.equal('');
  });

  /** Expects that a user may not run these commands. */
  async function refuse(name: string, url: string, attempts: readonly (readonly string[])[]): Promise<void> {
    const client = await connectForWriting(url);
    try {
      for (const [command = '', ...words] of attempts) {
        const response = await client.call(command, ...words).catch((error: Error) => error.message);
        expect(response, `${name}: ${command} ${words.join(' ')}`).to.match(
          /^NOPERM |^ERR (Error running script.*)?The user executing the script can't |^ERR ACL failure in script: /,
        );
      }
    } finally {
      client.disconnect();
    }
  }

  it('let the API read and write nothing else', async function () {
    if (version < 7) this.skip(); // Older versions have no read-only rights to keys; the page says so.
    await refuse('api', urlOf('api'), [
      ['HSET', 'medref:keys', 'digest', '{}'],
      ['HSET', 'medref:{products}:1:records', '1', '{}'],
      ['SET', 'medref:{products}:live', '{}'],
      ['DEL', 'medref:{products}:live'],
      ['PUBLISH', 'medref:{products}:published', '9'],
      ['EVAL', "return redis.call('DEL', KEYS[1])", '1', 'medref:{products}:live'],
      ['EVAL', "return redis.call('DEL', 'medref:{products}:live')", '0'],
      ['SET', 'medref:key-use', 'x'],
      ['DEL', 'medref:{rate:x}'],
    ]);
  });

  it('do not let the importer read or create keys', async () => {
    await refuse('importer', urlOf('importer'), [
      ['HGETALL', 'medref:keys'],
      ['HSET', 'medref:keys', 'digest', '{}'],
      ['HSET', 'medref:key-use', 'x', '1'],
      ['DEL', 'medref:keys'],
      ['SET', 'medref:{rate:x}', '1'],
      ['PUBLISH', 'medref:key-changes', 'x'],
      ['EVAL', "return redis.call('DEL', 'medref:keys')", '0'],
    ]);
  });

  it('are named by the key commands, which only the operator may run', async () => {
    for (const args of ['keys list', 'keys create --client x', 'keys revoke x', 'keys rotate x']) {
      const { code, stdout, stderr } = await medref(args.split(' '), importer());
      expect([code, stdout, stderr], args).to.deep.equal([
        1,
        '',
        'Redis user "importer" may not read and change API keys. Run this with the REDIS_URL of the user "operator".\n',
      ]);
    }
  });

  it('do not let any of them empty Redis, list keys or change settings', async () => {
    const common = [
      ...[['FLUSHALL'], ['FLUSHDB'], ['KEYS', '*'], ['GET', 'other:key'], ['SET', 'other:key', 'x']],
      ...[
        ['CONFIG', 'SET', 'maxmemory', '1mb'],
        ['CONFIG', 'REWRITE'],
        ['ACL', 'LIST'],
        ['ACL', 'SAVE'],
        ['ACL', 'SETUSER', 'api', '+@all'],
      ],
      ...[['SHUTDOWN', 'NOSAVE'], ['REPLICAOF', '127.0.0.1', '1'], ['MONITOR']],
      ...[
        ['CLIENT', 'LIST'],
        ['MIGRATE', '127.0.0.1', '1', 'medref:keys', '0', '1'],
        ['SWAPDB', '0', '1'],
      ],
      ...[
        ['PUBLISH', 'other', 'x'],
        ['SUBSCRIBE', 'other'],
      ],
    ];
    if (version >= 7) common.push(['FUNCTION', 'LIST']);
    for (const user of ['api', 'importer', 'operator'] as const) await refuse(user, urlOf(user), common);
    for (const user of ['api', 'importer'] as const) await refuse(user, urlOf(user), [['SCAN', '0']]);
    await refuse('api', urlOf('api'), [['CONFIG', 'GET', '*']]);
  });

  it('refuse user "default", limit "health" to PING, and allow "admin" everything', async () => {
    const redisOf = (file: string) => {
      const users = new Map(file.split('\n').map((line) => [line.split(' ')[1], line.split(' ').slice(2)]));
      return users as Map<string, string[]>;
    };
    for (const major of [7, 6]) {
      const users = redisOf(usersFile(major));
      expect([...users].slice(0, 3).map(([name, rules]) => `${name} ${rules.join(' ')}`)).to.deep.equal([
        'default off resetpass resetkeys ~* resetchannels +@all',
        'health on nopass resetkeys resetchannels -@all +ping',
        'admin on >admin-password resetkeys ~* resetchannels &* +@all',
      ]);
    }
    const health = await connectForWriting(urlOf('health').replace('-password', ''));
    expect(await health.ping()).to.equal('PONG');
    health.disconnect();
    await refuse('health', urlOf('health'), [
      ['GET', 'x'],
      ['SET', 'x', 'y'],
      ['INFO'],
      ['CONFIG', 'GET', '*'],
    ]);
  });

  it('are equal in both files, except for rights that older servers lack', () => {
    const [newer, older] = [usersFile(7), usersFile(6)];
    expect(
      newer
        .replace('%R~medref:* %W~medref:key-use', '~medref:*')
        .replace(' (~medref:{rate:* +eval +evalsha +set +incrby +pttl +expire)', '')
        .replaceAll(' -function -fcall -fcall_ro', '')
        .replaceAll('+acl|dryrun', '+acl|getuser'),
    ).to.equal(older.replace(' +set +incrby +expire +eval +evalsha', ''));
  });

  it('are recommended by status if medref connects as user "default"', async () => {
    const open = { REDIS_URL: server().url, KEY_PREFIX: 'other' };
    const { code, json } = await medref(['status', '--json'], open);
    expect(code).to.equal(0);
    expect(json<{ warnings: string[] }>().warnings.slice(1), 'the prefix is empty').to.deep.equal([
      'medref connects to Redis as user "default". Give each process its own user: deploy/redis/users.acl has them.',
    ]);
    const own = await medref(['status', '--json'], importer());
    expect(own.json<{ warnings: string[] }>().warnings).to.deep.equal([]);
    await redis.call('ACL', 'SETUSER', 'silent', 'on', '>p', '~*', '&*', '+@all', '-acl');
    const silent = { REDIS_URL: server().url.replace('://', '://silent:p@') };
    expect((await medref(['status'], silent)).stdout).not.to.include('as user');
  });
});
