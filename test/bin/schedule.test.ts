import { hostname } from 'node:os';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Waits } from '../../importer/schedule.ts';
import { readHistory } from '../../shared/import-history.ts';
import { readImporters } from '../../shared/importer-heartbeats.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { aheadOfClock } from '../support/importing.ts';
import { companyKeys, productKeys as keys } from '../support/keys.ts';
import { medref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { startTestRedis, useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

/** A line of the log. */
type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string };

/** A schedule that runs in this process. */
interface RunningSchedule {
  readonly log: readonly LogLine[];
  /** Stops the schedule. @returns the exit code */
  stop(): Promise<number>;
}

const never = '0 3 31 12 *';
const quickWaits: Waits = { firstMs: 40, longestMs: 100, lockedMs: 40 };

describe('medref schedule', () => {
  const server = useRedis();
  const startUpstream = upstreamServers();
  const running: RunningSchedule[] = [];
  // Uses import(), as the command line does: tsx would load a module twice if it is both required and imported.
  const loading = Promise.all([
    import('../../config/settings.ts'),
    import('../../bin/commands/schedule.ts'),
  ]).then(([settings, command]) => ({ ...settings, ...command }));
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
    await loading;
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    for (const { next } of [keys, companyKeys]) await redis.set(next, aheadOfClock);
  });
  afterEach(() => Promise.all(running.splice(0).map((it) => it.stop())));

  /** Starts a schedule. A cron line may have a sixth field, for seconds, which settings refuse: it saves a test a minute. */
  async function startSchedule(
    env: Readonly<Record<string, string>>,
    { cron = never, waits = quickWaits }: { cron?: string; waits?: Waits } = {},
  ): Promise<RunningSchedule> {
    const { readSettings, scheduleCommand } = await loading;
    const stop = new AbortController();
    const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() });
    const nothing = () => undefined;
    const log: LogLine[] = [];
    const ended = scheduleCommand(
      {
        settings: { ...readSettings({ REDIS_URL: server().url, ...env }), importCron: cron },
        ...{ stdout: nowhere(), stderr: nowhere(), stopSignal: () => stop.signal },
        ...{ log: (line) => void log.push(JSON.parse(line)) },
        ...{ lowerPriority: nothing, stayUp: nothing, mindResults: nothing },
      },
      {},
      { waits },
    );
    const schedule: RunningSchedule = {
      log,
      stop: () => {
        stop.abort(new Error('Stopped by SIGTERM.'));
        return ended;
      },
    };
    running.push(schedule);
    return schedule;
  }

  /** Returns a line that is due once a day, at a second that comes 0.7 to 1.7 s from now. */
  function soon(): string {
    const time = new Date(Math.ceil((Date.now() + 700) / 1_000) * 1_000);
    return `${time.getUTCSeconds()} ${time.getUTCMinutes()} ${time.getUTCHours()} * * *`;
  }

  const outcomes = async () => (await readHistory(redis, keys, 100)).map(({ outcome }) => outcome).reverse();
  const awaitOutcomes = async (count: number) => {
    while ((await outcomes()).length < count) await sleep(20);
    return outcomes();
  };
  const importNow = async (url: string) =>
    expect((await medref(['import'], { REDIS_URL: server().url, PRODUCTS_URL: url })).code).to.equal(0);

  const serving = async (list: readonly unknown[]) =>
    (await startUpstream((response) => response.end(JSON.stringify(list)))).url().href;

  it('reports at start a damaged pointer, and the command to repair it', async () => {
    const upstream = await startUpstream((response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(products(3)));
    });
    await importNow(upstream.url().href);
    const harms = [
      () => redis.set(keys.live, 'damage'),
      async () => {
        await redis.del(keys.live);
        await redis.sadd(keys.live, 'damage');
      },
    ];
    for (const [n, harm] of harms.entries()) {
      await harm();
      const schedule = await startSchedule({ PRODUCTS_URL: upstream.url().href });
      expect((await awaitOutcomes(n + 2)).at(-1)).to.equal('failed');
      const [last] = await readHistory(redis, keys, 1);
      expect(last?.reason).to.match(/:live .*Run "medref verify products --repair"\.$/);
      expect(await schedule.stop()).to.equal(0);
    }
  });

  it('writes a heartbeat with its next run, and reports when it has stopped', async () => {
    await importNow(await serving(products(3)));
    const status = async () => (await medref(['status'], { REDIS_URL: server().url })).stdout;
    expect(await status()).not.to.match(/importer/i);
    const schedule = await startSchedule({ PRODUCTS_URL: await serving(products(3)) });
    const seen = () => readImporters(redis, 'medref');
    while ((await seen()).length === 0) await sleep(20);
    const [beat] = await seen();
    expect(beat).to.deep.include({
      ...{ isAlive: true, stopped: false, cron: never, timezone: 'UTC', collections: ['products'] },
      importer: `process ${process.pid} on ${hostname()}`,
    });
    expect(beat?.nextRun).to.match(/^\d{4}-12-31T03:00:00\.000Z$/);
    expect(await status()).to.match(
      /\nImporter: process \d+ on \S+, seen .*; next run \d{4}-12-31 03:00\s+UTC\.\n/,
    );
    expect(await schedule.stop()).to.equal(0);
    const [ended] = await seen();
    expect(ended).to.include({ stopped: true, isAlive: false });
    expect(await status()).to.match(/\nNo importer runs: process \d+ on \S+ stopped now\./);
  });

  it('finishes a due import after SIGTERM', async () => {
    const upstream = await startUpstream((response, _request, nth) => {
      if (nth === 1) response.end(JSON.stringify(products(3)));
      else response.write('[');
    });
    const url = upstream.url().href;
    await importNow(url);
    const schedule = await startSchedule({ PRODUCTS_URL: url }, { cron: '* * * * * *' });
    while (upstream.requests.length < 2) await sleep(20);
    server().pause(); // The paused Redis cannot discard the staged data of the import.
    const stopped = schedule.stop();
    const first = await Promise.race([stopped, sleep(500, 'it waits for the import')]);
    server().resume();
    expect(first).to.equal('it waits for the import');
    expect(await stopped).to.equal(0);
    expect(await redis.exists(keys.lock, keys.staged)).to.equal(0);
    expect((await readHistory(redis, keys, 1))[0]).to.deep.include({
      ...{ outcome: 'interrupted', reason: 'Stopped by SIGTERM.' },
    });
    expect(schedule.log.map(({ msg }) => msg)).not.to.include(
      'A scheduled import failed; it will be retried.',
    );
  });

  it('retries a failed import until upstream works, and reports each retry', async () => {
    const upstream = await startUpstream((response, _request, nth) => {
      if (nth <= 2) response.writeHead(404).end('not yet');
      else response.end(JSON.stringify(products(3)));
    });
    const schedule = await startSchedule({ PRODUCTS_URL: upstream.url().href });
    expect(await awaitOutcomes(3)).to.deep.equal(['failed', 'failed', 'published']);
    const [first, second] = await readHistory(redis, keys, 3).then((history) => history.reverse());
    const retries = schedule.log.filter(({ tryNumber }) => tryNumber !== undefined);
    expect(retries.map(({ msg, collection, tryNumber }) => [msg, collection, tryNumber])).to.deep.equal([
      ['A scheduled import failed; it will be retried.', 'products', 2],
      ['A scheduled import failed; it will be retried.', 'products', 3],
    ]);
    for (const [n, ended] of [first, second].entries()) {
      const waited = Date.parse(String(retries[n]?.['at'])) - Date.parse(ended?.endedAt ?? '');
      expect(waited).to.be.within([40, 80][n] as number, 1_000);
    }
    await sleep(300);
    expect(upstream.requests).to.have.length(3);
  });

  it('retries if it cannot read the lock', async () => {
    const upstream = await startUpstream((response) => response.end(JSON.stringify(products(3))));
    await redis.rpush(keys.lock, 'no lock');
    const schedule = await startSchedule({ PRODUCTS_URL: upstream.url().href });
    while (!schedule.log.some(({ tryNumber }) => tryNumber === 3)) await sleep(20);
    const line = schedule.log.find(({ msg }) => msg === 'A scheduled import could not start.');
    expect(line).to.deep.include({ level: 50, collection: 'products' });
    expect(line?.['reason']).to.include('WRONGTYPE');
    await redis.del(keys.lock);
    expect(await awaitOutcomes(1)).to.deep.equal(['published']);
  });

  it('does not retry a refused import', async () => {
    let list = products(3);
    const upstream = await startUpstream((response) => response.end(JSON.stringify(list)));
    await importNow(upstream.url().href);
    list = [];
    const schedule = await startSchedule({ PRODUCTS_URL: upstream.url().href }, { cron: soon() });
    expect(await awaitOutcomes(2)).to.deep.equal(['published', 'refused']);
    await sleep(300);
    expect(schedule.log.filter(({ tryNumber }) => tryNumber !== undefined)).to.deep.equal([]);
    expect(upstream.requests).to.have.length(2);
  });

  it('retries each collection separately, and imports one at a time', async () => {
    let underWay = 0;
    let most = 0;
    const upstream = await startUpstream((response, request) => {
      most = Math.max(most, ++underWay);
      const list = request.url === '/companies' ? [] : products(3);
      setTimeout(() => {
        underWay -= 1;
        if (request.url === '/companies') response.statusCode = 404;
        response.end(JSON.stringify(list));
      }, 50);
    });
    await startSchedule({
      PRODUCTS_URL: upstream.url('/products').href,
      COMPANIES_URL: upstream.url('/companies').href,
    });
    const asked = (path: string) => upstream.requests.filter(({ url }) => url === path).length;
    while (asked('/companies') < 3) await sleep(20);
    expect(asked('/products')).to.equal(1);
    expect(most).to.equal(1);
  });

  it('exits at once with 0 on SIGTERM while a retry is pending', async () => {
    const upstream = await startUpstream((response) => response.writeHead(404).end());
    const waits = { ...quickWaits, firstMs: 3_600_000 };
    const schedule = await startSchedule({ PRODUCTS_URL: upstream.url().href }, { waits });
    while (!schedule.log.some(({ tryNumber }) => tryNumber === 2)) await sleep(20);
    const asked = performance.now();
    expect(await schedule.stop()).to.equal(0);
    expect(performance.now() - asked).to.be.below(1_000);
  });

  it('imports once if two run, and the waiting one leaves no history', async () => {
    const upstream = await startUpstream((response, _request, nth) => {
      const respond = () => response.end(JSON.stringify(products(2 + nth)));
      if (nth === 1) respond();
      else setTimeout(respond, 600);
    });
    const env = { PRODUCTS_URL: upstream.url().href };
    await importNow(env.PRODUCTS_URL);
    const cron = soon();
    const schedules = [await startSchedule(env, { cron }), await startSchedule(env, { cron })];
    expect(await awaitOutcomes(2)).to.deep.equal(['published', 'published']);
    const messages = () => schedules.flatMap(({ log }) => log.map(({ msg }) => msg));
    const known = 'Already imported since the due time; skipped.';
    while (!messages().includes(known)) await sleep(20);
    const waiting = messages().filter((msg) => msg.startsWith('An import is due; waiting'));
    expect(waiting, 'logged once, however often it checks').to.have.length(1);
    await sleep(200);
    expect(upstream.requests).to.have.length(2);
    expect(await outcomes()).to.deep.equal(['published', 'published']);
  });

  it('imports again after an earlier import ends, since that may have read an older list', async () => {
    let finish: () => void = () => undefined;
    const upstream = await startUpstream((response, _request, nth) => {
      const respond = () => response.end(JSON.stringify(products(2 + nth)));
      if (nth === 2) finish = respond;
      else respond();
    });
    const env = { PRODUCTS_URL: upstream.url().href };
    await importNow(env.PRODUCTS_URL);
    const byHand = importNow(env.PRODUCTS_URL);
    while (upstream.requests.length < 2) await sleep(20);
    const schedule = await startSchedule(env, { cron: soon() });
    while (!schedule.log.some(({ msg }) => msg.startsWith('An import is due; waiting'))) await sleep(20);
    finish();
    await byHand;
    expect(await awaitOutcomes(3)).to.deep.equal(['published', 'published', 'published']);
  });

  it('waits for Redis, and then imports what was due meanwhile', async () => {
    const late = await startTestRedis({ appendOnly: true });
    try {
      const upstream = await startUpstream((response) => response.end(JSON.stringify(products(3))));
      const env = { PRODUCTS_URL: upstream.url().href, REDIS_URL: late.url };
      expect((await medref(['import'], env)).code).to.equal(0);
      await late.kill();
      const cron = soon();
      const schedule = await startSchedule(env, { cron });
      await sleep(2_000);
      const [line, ...others] = schedule.log;
      expect(line).to.deep.include({ level: 40, msg: 'Redis is unavailable; waiting.' });
      expect(others, 'this is logged once').to.deep.equal([]);
      await late.restart();
      while (upstream.requests.length < 2) await sleep(20);
      expect(await schedule.stop()).to.equal(0);
    } finally {
      await late.stop();
    }
  });

  it('exits at once with 0 on SIGTERM while Redis hangs', async () => {
    const still = await startTestRedis();
    try {
      still.pause();
      const schedule = await startSchedule({ PRODUCTS_URL: 'file:///none.json', REDIS_URL: still.url });
      await sleep(300);
      const asked = performance.now();
      expect(await schedule.stop()).to.equal(0);
      expect(performance.now() - asked).to.be.below(1_000);
      expect(schedule.log).to.deep.equal([]);
    } finally {
      still.resume();
      await still.stop();
    }
  });

  it('exits at once with 0 on SIGTERM while Redis is unavailable', async () => {
    const env = { PRODUCTS_URL: 'file:///none.json', REDIS_URL: 'redis://127.0.0.1:1' };
    const schedule = await startSchedule(env);
    while (schedule.log.length === 0) await sleep(20);
    const asked = performance.now();
    expect(await schedule.stop()).to.equal(0);
    expect(performance.now() - asked).to.be.below(500);
  });
});
