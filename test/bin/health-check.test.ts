// The health check of a container, as a process, beside the process that it is about.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { freePort } from '../../bench/ports.ts';
import { type Beating, readHeartbeat, startHeartbeat } from '../../bin/heartbeat.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { aheadOfClock, importRecords } from '../support/importing.ts';
import { beginMedref, startMedref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

const program = fileURLToPath(new URL('../../dist/bin/health-check.js', import.meta.url));

describe('the health check of a container', function () {
  this.timeout(60_000);
  const server = useRedis();
  const startUpstream = upstreamServers();
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-health-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function check(word: string | null, settings: Record<string, string> = {}) {
    const child = spawn(process.execPath, [program, ...(word === null ? [] : [word])], {
      env: { PATH: process.env['PATH'], TMPDIR: folder, ...settings },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    child.stdout.on('data', (chunk) => {
      said += chunk;
    });
    const [code] = await once(child, 'close');
    return { code, said };
  }

  it('of the API says that it is ready, or what it waits for, or that it does not answer', async () => {
    const port = String(await freePort());
    const settings = { REDIS_URL: server().url, API_PORT: port, API_HOST: '0.0.0.0' };
    const gone = await check('serve', settings);
    expect(gone.code).to.equal(1);
    expect(gone.said).to.match(/^http:\/\/127\.0\.0\.1:\d+\/health\/ready does not answer: .*ECONNREFUSED/);

    const serving = beginMedref(['serve'], settings);
    try {
      await serving.line(/answers at/);
      expect(await check('serve', settings)).to.deep.equal({
        code: 1,
        said: 'Not ready: nothing has been published yet of: products, drugs, companies.\n',
      });
      const { version } = await importRecords(products(3), productCollection, { redisUrl: server().url });
      const ready = `Ready: {"products":${version},"drugs":${version},"companies":null}\n`;
      for (const word of ['serve', null])
        expect(await check(word, settings), String(word)).to.deep.equal({ code: 0, said: ready });
      await server().kill();
      const away = await check('serve', settings);
      expect(away.code).to.equal(1);
      expect(away.said).to.match(/^Not ready: Redis/);
    } finally {
      await serving.stop();
      await server().restart();
    }
  });

  it('of the schedule says when it last did something, and that it is gone', async () => {
    const upstream = await startUpstream((response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ data: products(4) }));
    });
    const settings = { REDIS_URL: server().url, KEY_PREFIX: 'h', PRODUCTS_URL: upstream.url().href };
    expect(await check('schedule', settings)).to.deep.equal({
      code: 1,
      said: `The schedule does not run: there is no heartbeat at ${folder}/medref-schedule-h.json.\n`,
    });
    const redis = await connectForWriting(server().url);
    await redis.set(collectionKeys('h', productCollection).next, aheadOfClock);
    redis.disconnect();
    const schedule = startMedref(['schedule'], { ...settings, TMPDIR: folder });
    try {
      await schedule.line(/Importing products/);
      let said = '';
      for (const deadline = Date.now() + 20_000; Date.now() < deadline && !said.includes('done'); ) {
        const { code, said: line } = await check(null, settings);
        expect(code, line).to.equal(0);
        said = line;
      }
      expect(said).to.match(
        /^The schedule runs; it last did something at \d{4}-\S+Z: was done with the products \(ended\)\.\n$/,
      );
    } finally {
      schedule.process.kill('SIGTERM');
      await schedule.ended;
    }
    expect(await readdir(folder), 'what it leaves').to.deep.equal([]);
  });

  it('of the API does not wait without end for one that stands still', async () => {
    const { port } = (await startUpstream(() => undefined)).url();
    const { code, said } = await check('serve', { API_PORT: port });
    expect(code).to.equal(1);
    expect(said).to.match(/\/health\/ready does not answer: .*timeout\.\n$/);
  });

  it('says which setting is bad', async () => {
    expect(await check('serve', { API_PORT: 'x' })).to.deep.equal({
      code: 1,
      said: 'API_PORT is "x"; it takes an integer from 0 (any free port) to 65535.\n',
    });
  });

  it('of the schedule says that it hangs, where its heartbeat is older than a minute', async () => {
    const file = join(folder, 'medref-schedule-medref.json');
    const did = { did: 'began with the products', didAt: '2026-11-22T03:00:00.000Z' };
    let said = '';
    for (const [seconds, code] of [
      [50, 0],
      [75, 1],
    ] as const) {
      const at = new Date(Date.now() - seconds * 1000).toISOString();
      await writeFile(file, JSON.stringify({ at, ...did }));
      const health = await check('schedule');
      expect(health.code, health.said).to.equal(code);
      expect(health.said).to.include('at 2026-11-22T03:00:00.000Z: began with the products.');
      said = health.said;
    }
    expect(said).to.match(/^The schedule hangs, or is gone: it has been silent for (7[5-9]|[89]\d|1\d\d) s;/);
  });

  describe('reads a heartbeat, which', () => {
    let beating: Beating | undefined;
    afterEach(() => beating?.stop());
    const start = (file: string, failures: string[] = []) => {
      beating = startHeartbeat(file, { onFailure: ({ message }) => failures.push(message), everyMs: 20 });
      return beating;
    };

    it('goes on, says what was done last, and is gone when it is stopped', async () => {
      const file = join(folder, 'beat');
      const beat = start(file);
      beat.note('imported');
      await sleep(100);
      const first = await readHeartbeat(file);
      await sleep(100);
      const second = await readHeartbeat(file);
      expect([first?.did, second?.did]).to.deep.equal(['imported', 'imported']);
      expect(second?.didAt).to.equal(first?.didAt);
      expect(Date.parse(second?.at ?? '')).to.be.above(Date.parse(first?.at ?? ''));
      await beat.stop();
      await sleep(60);
      expect(await readdir(folder)).to.deep.equal([]);
    });

    it('is told once as a warning where it cannot be written', async () => {
      const failures: string[] = [];
      start(join(folder, 'absent', 'beat'), failures);
      await sleep(150);
      expect(failures).to.have.length(1);
      expect(failures[0]).to.include('ENOENT');
    });

    it('writes through no link that was put in its place', async () => {
      const file = join(folder, 'beat');
      await writeFile(join(folder, 'precious'), 'as it was');
      await symlink(join(folder, 'precious'), file);
      start(file);
      await sleep(100);
      expect(await readFile(join(folder, 'precious'), 'utf8')).to.equal('as it was');
      expect((await readHeartbeat(file))?.did).to.equal('started');
    });
  });
});
