// Tests commands on a real terminal, which the program `script` makes, and with readers that disconnect.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { onPath } from '../../bench/installed.ts';
import { eraseLine } from '../../bin/output.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { aheadOfClock } from '../support/importing.ts';
import { productKeys as keys } from '../support/keys.ts';
import { medref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { type Responder, sending, upstreamServers } from '../support/upstream-server.ts';

const entry = fileURLToPath(new URL('../../dist/bin/medref.js', import.meta.url));

/** On other systems, `script` takes different arguments. */
const whyNoTerminal =
  onPath('script') !== undefined && process.platform === 'linux' ? null : 'there is no script of util-linux';

const esc = '\x1b';

/** Returns the text of the screen, with a mark for each erased line. */
function erased(text: string): string {
  return text.replaceAll(eraseLine, '⌫');
}

describe('commands on a terminal', function () {
  this.timeout(60_000);
  const server = useRedis();
  const startUpstream = upstreamServers();
  let redis: Redis;
  let settings: Record<string, string>;
  const started: ChildProcess[] = [];
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    await redis.set(keys.next, aheadOfClock);
    settings = { REDIS_URL: server().url, LOG_LEVEL: 'silent' };
  });
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
  });

  /** Starts a command on a terminal, and collects its output. */
  function onTerminal(command: string, others: Record<string, string> = {}) {
    const line = `stty cols 80; exec '${process.execPath}' '${entry}' ${command}`;
    const child = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], {
      env: { PATH: process.env['PATH'], TERM: 'xterm', SHELL: '/bin/sh', ...settings, ...others },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    started.push(child);
    const screen = { text: '' };
    child.stdout.on('data', (chunk) => {
      screen.text += chunk;
    });
    return { child, screen, ended: once(child, 'close').then(([code]) => code as number) };
  }

  /** Sends a list in pieces, half a second apart. */
  const slowly =
    (headers: Record<string, string>): Responder =>
    (response) => {
      const body = JSON.stringify(products(400));
      const length = headers['content-length'] === undefined ? {} : { 'content-length': body.length };
      response.writeHead(200, { ...headers, ...length });
      const pieces = [0, 1, 2, 3].map((n) => body.slice((n * body.length) / 4, ((n + 1) * body.length) / 4));
      void (async () => {
        for (const piece of pieces) {
          response.write(piece);
          await sleep(500);
        }
        response.end();
      })();
    };

  const its = (title: string, test: () => Promise<void>) =>
    whyNoTerminal ? it.skip(`${title} (left out: ${whyNoTerminal})`) : it(title, test);

  its('show how far an import has come, with the time left where the length is known', async () => {
    const upstream = await startUpstream(slowly({ 'content-length': 'of the body' }));
    const { screen, ended } = onTerminal('import', { PRODUCTS_URL: upstream.url().href });
    expect(await ended).to.equal(0);
    const line = /⌫products: \[={4,}[ ]+\] \d\d %, \d+ records, [\d,]+\/s, \d s left⌫/;
    expect(erased(screen.text)).to.match(line);
    expect(screen.text.split('\x1b[K').at(-1), 'the progress is erased').to.match(
      /^products {3}published \d{14} {3}/,
    );
  });

  its('show no time left where the length is not known', async () => {
    const upstream = await startUpstream(slowly({}));
    const { screen, ended } = onTerminal('import', { PRODUCTS_URL: upstream.url().href });
    expect(await ended).to.equal(0);
    expect(erased(screen.text)).to.match(/⌫products: \d+ records, [\d,]+\/s⌫/);
    expect(screen.text).not.to.include('left');
  });

  its('write a line of the log in the place of the progress, and not behind it', async () => {
    const upstream = await startUpstream((response) => {
      response
        .writeHead(200, { 'content-length': '1000000' })
        .write(JSON.stringify(products(50)).slice(0, -1));
      setTimeout(() => response.write(`,${JSON.stringify(products(99).slice(50)).slice(1)}`), 600);
      setTimeout(() => response.destroy(), 1_000);
    });
    const { screen, ended } = onTerminal('import', { PRODUCTS_URL: upstream.url().href, LOG_LEVEL: 'error' });
    expect(await ended).to.equal(1);
    expect(erased(screen.text)).to.match(/ left⌫\{"level":50/);
  });

  its('colour what is wrong, and nothing with NO_COLOR', async () => {
    await medref(['import'], { ...settings, PRODUCTS_URL: 'file:///none/here' });
    const coloured = onTerminal('status');
    expect(await coloured.ended).to.equal(0);
    expect(coloured.screen.text).to.include(`${esc}[31mfailed${esc}[39m`);
    expect(coloured.screen.text).to.include(`${esc}[1mmedref import products${esc}[22m`);
    for (const others of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
      const plain = onTerminal('status', others);
      expect(await plain.ended).to.equal(0);
      expect(plain.screen.text).to.include('medref import products').and.not.to.include(esc);
    }
    expect((await medref(['status'], settings)).stdout)
      .to.include('failed')
      .and.not.to.include(esc);
  });

  its('end an import in order where the terminal is closed: its lock is free at once', async () => {
    const upstream = await startUpstream((response) => {
      response.write(JSON.stringify(products(50)).slice(0, -1)); // The list never ends.
    });
    const { child } = onTerminal('import', { PRODUCTS_URL: upstream.url().href });
    while (!(await redis.exists(keys.lock)) || upstream.requests.length === 0) await sleep(20);
    child.kill('SIGKILL');
    const deadline = Date.now() + 10_000;
    while (await redis.exists(keys.lock)) {
      expect(Date.now(), 'the lock still exists').to.be.below(deadline);
      await sleep(20);
    }
    const [entryOfImport] = await redis.xrevrange(keys.imports, '+', '-', 'COUNT', 1);
    const report = JSON.parse(entryOfImport?.[1][1] ?? '{}');
    expect(report).to.include({ outcome: 'interrupted', reason: 'Stopped by SIGHUP.' });
  });
});

describe('commands whose reader stops early', function () {
  this.timeout(60_000);
  const server = useRedis();
  const startUpstream = upstreamServers();

  it('exit with 0, silently', async () => {
    const REDIS_URL = server().url;
    for (const list of [products(1), products(2_500)]) {
      const upstream = await startUpstream(sending(list));
      await medref(['import', '--force'], { REDIS_URL, PRODUCTS_URL: upstream.url().href });
    }
    for (const command of ['diff products', 'diff products --json', 'status']) {
      const line = `set -o pipefail; '${process.execPath}' '${entry}' ${command} | head -c 1`;
      const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', line], {
        env: { PATH: process.env['PATH'], REDIS_URL },
      });
      expect(stdout, command).to.have.length(1);
      expect(stderr, command).to.equal('');
    }
  });
});
