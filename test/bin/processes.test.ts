// Tests the built command line as users run it: each command once as its own process, and each exit code.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { exitCodes } from '../../bin/context.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { aheadOfClock } from '../support/importing.ts';
import { productKeys as keys } from '../support/keys.ts';
import { medref, medrefProcess, startMedref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { withUser } from '../support/redis-users.ts';
import { upstreamServers } from '../support/upstream-server.ts';

const entry = fileURLToPath(new URL('../../dist/bin/medref.js', import.meta.url));

describe('the built command line', function () {
  this.timeout(60_000);
  const server = useRedis();
  const startUpstream = upstreamServers();
  let redis: Redis;
  let list: readonly unknown[];
  let settings: Record<string, string>;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    await redis.set(keys.next, aheadOfClock);
    const upstream = await startUpstream((response) => response.end(JSON.stringify({ data: list })));
    settings = { REDIS_URL: server().url, PRODUCTS_URL: upstream.url('/list').href };
  });

  async function importList(size: number): Promise<void> {
    list = products(size);
    expect((await medref(['import'], settings)).code).to.equal(0);
  }

  /** Returns the stored keys, without the mark of their last change. */
  async function storedKeys() {
    const { generation, ...stored } = await redis.hgetall('medref:keys');
    return stored;
  }

  it('exits with 0, 1, 2, 3 and 4, and prints one JSON document', async () => {
    const run = async (command: string) => {
      const { code, stdout } = await medrefProcess([...command.split(' '), '--json'], settings);
      if (code !== exitCodes.usage) expect(JSON.parse(stdout)).to.be.an('object');
      return code;
    };
    list = products(10);
    expect(await run('import')).to.equal(exitCodes.done);
    expect(await run('status')).to.equal(exitCodes.done);
    list = products(5);
    expect(await run('import')).to.equal(exitCodes.refused);
    expect(await run('import companies')).to.equal(exitCodes.usage);
    await redis.set(keys.lock, '{"holder":"another","since":"now"}');
    expect(await run('import')).to.equal(exitCodes.locked);
    await redis.del(keys.lock);
    settings['PRODUCTS_URL'] = 'file:///none';
    expect(await run('import')).to.equal(exitCodes.failed);
  });

  it('creates a key that serve accepts, lists and revokes it', async () => {
    await importList(3);
    const made = await medrefProcess(['keys', 'create', '--client', 'a', '--json'], settings);
    const { id, key } = made.json<{ id: string; key: string }>();
    const listed = await medrefProcess(['keys', 'list', '--json'], settings);
    expect(listed.json<{ keys: { id: string }[] }>().keys.map((it) => it.id)).to.deep.equal([id]);
    const api = startMedref(['serve', '--json'], { ...settings, API_PORT: '0' });
    const [, address] = await api.line(/"address":"([^"]+)"/);
    const status = async () =>
      (await fetch(`${address}/products/1`, { headers: { authorization: `Bearer ${key}` } })).status;
    expect(await status()).to.equal(200);
    expect((await medrefProcess(['keys', 'revoke', id], settings)).code).to.equal(0);
    const deadline = Date.now() + 1_000;
    while ((await status()) !== 401) {
      expect(Date.now(), 'revoked within a second').to.be.below(deadline);
      await sleep(20);
    }
    api.process.kill('SIGTERM');
    expect((await api.ended).code).to.equal(0);
  });

  const lost: [where: string, redirection: string, line: RegExp][] = [
    [
      'on a disk that is full',
      '> /dev/full',
      /^The key could not be printed and was revoked: .*ENOSPC.*\.\n$/,
    ],
    ['to whoever has gone', '| true', /^The key could not be printed and was revoked: .*EPIPE.*\.\n$/],
    ['where stdout is closed', '>&-', /^The result would be lost: stdout is closed, or is \/dev\/null\.\n$/],
  ];
  for (const [where, redirection, line] of lost) {
    it(`revokes a key that cannot be printed ${where}`, async function () {
      if (redirection.includes('full') && !existsSync('/dev/full')) this.skip(); // Not every system has this file.
      // The reader has ended before the command writes anything.
      const wait = redirection.startsWith('|') ? 'sleep 0.5; ' : '';
      const script = `{ ${wait}"$0" "$@"; echo "ended with $?" >&2; } ${redirection}`;
      const child = spawn('sh', ['-c', script, process.execPath, entry, 'keys', 'create', '--client', 'a'], {
        env: { PATH: process.env['PATH'], LOG_LEVEL: 'warn', ...settings },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let stderr = '';
      child.stderr.on('data', (chunk) => {
        stderr += chunk;
      });
      await once(child, 'close');
      expect(stderr.replace('ended with 1\n', '')).to.match(line);
      expect(stderr).to.match(/ended with 1\n$/);
      expect(await storedKeys()).to.deep.equal({});
    });
  }

  it('keeps the old key if the new one cannot be printed', async function () {
    if (!existsSync('/dev/full')) this.skip(); // Not every system has this file.
    const made = await medrefProcess(['keys', 'create', '--client', 'a', '--json'], settings);
    const before = await storedKeys();
    const { id } = made.json<{ id: string }>();
    const child = spawn(
      'sh',
      ['-c', '"$0" "$@" > /dev/full', process.execPath, entry, 'keys', 'rotate', id],
      {
        env: { PATH: process.env['PATH'], LOG_LEVEL: 'warn', ...settings },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    let stderr = '';
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    expect((await once(child, 'close'))[0]).to.equal(1);
    expect(stderr).to.match(
      /^The new key could not be printed; key [0-9a-f]{12} is unchanged: .*ENOSPC.*\n$/,
    );
    expect(await storedKeys()).to.deep.equal(before);
  });

  it('schedules until SIGTERM, even if its output is closed; if one of two is killed during an import, the other imports', async () => {
    list = products(3);
    let asked = 0;
    const upstream = await startUpstream((response) => {
      asked += 1;
      if (asked === 1) response.write('[');
      else response.end(JSON.stringify(list));
    });
    settings['PRODUCTS_URL'] = upstream.url('/list').href;
    const first = startMedref(['schedule', '--json'], { ...settings, LOG_LEVEL: 'info' });
    first.process.stdout?.destroy();
    first.process.stderr?.destroy();
    while (asked === 0 && first.process.exitCode === null) await sleep(10);
    expect(first.process.exitCode).to.equal(null);
    const second = startMedref(['schedule', '--json'], { ...settings, LOG_LEVEL: 'info' });
    let logged = '';
    second.process.stderr?.on('data', (chunk) => {
      logged += chunk;
    });
    await second.line(/"scheduled":\["products"\]/);
    while (!logged.includes('waiting for the current one to end')) await sleep(10);
    first.process.kill('SIGKILL');
    await first.ended;
    expect(asked).to.equal(1);
    expect(await redis.exists(keys.lock), 'held by the killed process').to.equal(1);
    await redis.pexpire(keys.lock, 100); // It would expire by itself after 30 s.
    while (!(await redis.exists(keys.live)) || (await redis.exists(keys.lock))) await sleep(10);
    second.process.kill('SIGTERM');
    const { code, stderr } = await second.ended;
    expect(code).to.equal(0);
    expect(stderr.match(/waiting for the current one to end/g)).to.have.length(1);
    expect(await redis.xlen(keys.imports), 'the history has only the published import').to.equal(1);
  });

  for (const workers of ['1', '2'])
    it(`logs that serve is at its limit of open files, and reserves some for Redis, with WORKERS=${workers}`, async () => {
      await importList(3);
      const made = await medref(['keys', 'create', '--client', 'x', '--json'], settings);
      const { key } = made.json<{ key: string }>();
      const env = { ...process.env, ...settings, API_PORT: '0', ADMIN_PORT: '0', WORKERS: workers };
      const child = spawn('sh', ['-c', `ulimit -n 200; exec "${process.execPath}" "${entry}" serve --json`], {
        ...{ env: { ...env, REDIS_URL: withUser(server().url, 'api') }, stdio: ['ignore', 'pipe', 'pipe'] },
      });
      let log = '';
      child.stderr.on('data', (text) => {
        log += text;
      });
      const clients: Socket[] = [];
      try {
        const [printed] = (await once(child.stdout, 'data')) as [Buffer];
        const { port } = new URL(JSON.parse(printed.toString()).address);
        for (let n = 0; n < 180 * Number(workers); n += 1) {
          clients.push(connect(Number(port), '127.0.0.1').on('error', () => undefined));
          if (n % 20 === 0) await sleep(20); // The process that distributes connections has the same limit.
        }
        while (!log.includes('near its limit of open files')) await sleep(20);
        await sleep(200);
        const open = clients.find((it) => !it.closed && it.readyState === 'open') as Socket;
        expect(clients.filter((it) => it.closed).length, 'closed').to.be.above(20);
        await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        await sleep(500);
        open.write(`GET /products/1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
        const [reply] = (await once(open, 'data')) as [Buffer];
        expect(reply.toString()).to.match(/^HTTP\/1\.1 200 /);
        const line = log.split('\n').find((it) => it.includes('near its limit of open files')) ?? '';
        expect(JSON.parse(line)).to.deep.include({ level: 50, connections: 136, fileLimit: 200 });
        expect(log.split('near its limit').length - 1, 'lines about the limit').to.be.at.most(
          Number(workers),
        );
      } finally {
        for (const client of clients) client.destroy();
        child.kill('SIGTERM');
        await once(child, 'close');
      }
    });
});
