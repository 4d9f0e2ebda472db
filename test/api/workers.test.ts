// Tests medref serve with several API processes on one port: responses, restarts, metrics and shutdown.

import cluster from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { pino } from 'pino';
import { WorkerPool } from '../../api/workers.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { createApiKey } from '../../shared/store/api-keys.ts';
import { importRecords } from '../support/importing.ts';
import { medrefProcess, type RunningCommand, startMedref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { send } from '../support/wire.ts';

interface LogLine {
  readonly pid: number;
  readonly msg: string;
  readonly address?: string;
  readonly worker?: number;
  readonly signal?: string;
  readonly pauseMs?: number;
}

describe('an API of two processes', function () {
  this.timeout(60_000);
  const redis = useRedis();
  let api: RunningCommand;
  let asked: { origin: string; port: number; key: string };
  let admin: string;
  let log = '';

  before(async () => {
    await publish(3);
    const writing = await connectForWriting(redis().url);
    const { key } = await createApiKey(writing, 'medref', { client: 'a', expiresAt: null, rate: null });
    writing.disconnect();
    const settings = { REDIS_URL: redis().url, API_PORT: '0', WORKERS: '2', LOG_LEVEL: 'info' };
    api = startMedref(['serve', '--json'], settings);
    api.process.stderr?.on('data', (chunk) => {
      log += chunk;
    });
    const [, origin = ''] = await api.line(/"address":"([^"]+)"/);
    asked = { origin, port: Number(new URL(origin).port), key };
    admin = (await logged(({ msg }) => msg === 'The admin listener is ready.')).address as string;
  });
  after(() => api.process.kill('SIGKILL'));

  const lines = (): LogLine[] =>
    log
      .split('\n')
      .filter((line) => line.endsWith('}'))
      .map((line) => JSON.parse(line));

  /** Waits until a log line matches. Returns the last such line. */
  async function logged(isMeant: (line: LogLine) => boolean): Promise<LogLine> {
    for (;;) {
      const line = lines().findLast(isMeant);
      if (line) return line;
      await sleep(10);
    }
  }

  const answering = () =>
    lines()
      .filter(({ msg }) => msg === 'The API is ready.')
      .map(({ pid }) => pid);

  /** Returns the pid of the nth process that became ready. Throws if there is none: a signal to pid 0 would reach all tests. */
  function nth(n: number): number {
    const pid = answering()[n];
    if (pid === undefined) throw new Error(`Less than ${n + 1} have answered.`);
    return pid;
  }

  async function publish(size: number): Promise<number> {
    const { version } = await importRecords(products(size), productCollection, {
      ...{ redisUrl: redis().url, force: true },
    });
    return version as number;
  }

  /** Sends a request on its own connection. @returns which process responded, and from which version */
  async function ask() {
    const { status, headers } = await send(asked, '/products/1');
    expect(status).to.equal(200);
    const [by = ''] = /^.{12}/.exec(String(headers['x-request-id'])) ?? [];
    return { by, version: Number(headers['medref-version']) };
  }

  async function counted(): Promise<number> {
    const text = await (await fetch(`${admin}/metrics`)).text();
    const [, requests = '0'] =
      /^medref_http_requests_total\{route="\/products\/\{id\}",status="200"\} (\d+)$/m.exec(text) ?? [];
    return Number(requests);
  }

  let requests = 0;

  it('serve a new version within a second, and report summed metrics', async () => {
    const version = await publish(4);
    const deadline = Date.now() + 1_000;
    const upToDate = new Set<string>();
    while (upToDate.size < 2) {
      const response = await ask();
      requests += 1;
      if (response.version === version) upToDate.add(response.by);
      else expect(upToDate.has(response.by), 'a process that serves an older version again').to.equal(false);
      expect(Date.now()).to.be.below(deadline);
    }
    expect(answering()).to.have.length(2);
    expect(await counted()).to.equal(requests);
  });

  it('report within two seconds the counts of the others while one hangs', async () => {
    const standing = nth(0);
    process.kill(standing, 'SIGSTOP');
    const from = performance.now();
    expect(await counted()).to.be.above(0);
    expect(performance.now() - from).to.be.within(900, 3_000);
    process.kill(standing, 'SIGCONT');
  });

  it('replaces one that dies at once; if that dies early too, after a pause', async () => {
    const killed = nth(1);
    process.kill(killed, 'SIGKILL');
    const dead = await logged(({ worker }) => worker === killed);
    expect(dead.signal).to.equal('SIGKILL');
    expect((await logged(({ pauseMs }) => pauseMs !== undefined)).pauseMs).to.equal(0);
    while (answering().length < 3) await sleep(10);
    await ask();
    requests += 1;
    expect(await counted(), 'earlier counts remain').to.equal(requests);
    process.kill(nth(2), 'SIGKILL');
    await logged(({ pauseMs }) => pauseMs === 1_000);
    await ask();
  });

  it('stops all gracefully on SIGTERM', async () => {
    api.process.kill('SIGTERM');
    const [code] = await once(api.process, 'close');
    expect(code).to.equal(0);
    for (const pid of answering()) expect(isThere(pid), `${pid}`).to.equal(false);
    const begun = lines().filter(({ pauseMs }) => pauseMs !== undefined);
    expect(begun, 'one line for each of the two dead processes').to.have.length(2);
    expect(log, 'the primary kills no process').not.to.include('killing it');
  });

  it('does not start if the port is taken, and says so once', async () => {
    const taken = { API_PORT: new URL(`http://127.0.0.1:${redis().port}`).port };
    const settings = { REDIS_URL: redis().url, WORKERS: '2', ...taken };
    const { code, stdout, stderr } = await medrefProcess(['serve'], settings);
    expect([code, stdout]).to.deep.equal([1, '']);
    expect(stderr).to.match(
      /^The API cannot listen on 127.0.0.1:\d+: .*EADDRINUSE.* Set API_HOST or API_PORT\.\n$/,
    );
  });
});

describe('a pool of workers that hang', () => {
  const worker = fileURLToPath(new URL('../support/pool-worker.mjs', import.meta.url));
  const logged: string[] = [];
  const ending = new AbortController();
  let pool: WorkerPool;
  before(() => {
    cluster.setupPrimary({ exec: worker, execArgv: [], args: [] });
    const logger = pino({}, { write: (line) => void logged.push(JSON.parse(line).msg) });
    pool = new WorkerPool({
      ...{ count: 2, logger, signal: ending.signal, startMs: 1_500, stopMs: 1_000 },
      ...{ onMetrics: () => undefined, onExit: () => undefined },
    });
  });
  beforeEach(() => logged.splice(0));
  afterEach(() => {
    delete process.env['HANGS'];
    delete process.env['STAYS'];
  });
  after(async () => {
    ending.abort();
    await pool.stop();
  });

  it('fails to start if the first one hangs', async () => {
    process.env['HANGS'] = 'yes';
    expect(await pool.start()).to.deep.equal({ code: 1 });
    expect(logged).to.deep.equal(['An API process did not start to serve in time; killing it.']);
  });

  it('kills workers that do not stop when asked', async () => {
    process.env['STAYS'] = 'yes';
    expect(await pool.start()).to.deep.equal({ address: 'http://127.0.0.1:1' });
    ending.abort();
    await pool.stop();
    expect(logged).to.deep.equal(Array(2).fill('An API process did not end in time; killing it.'));
    expect(Object.keys(cluster.workers ?? {})).to.deep.equal([]);
  });
});

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
