import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { WireAnswer } from '../../bench/answers.ts';
import { typicalOf } from '../../bench/answers.ts';
import { benchRun } from '../../bench/bench-run.ts';
import { burstsOn } from '../../bench/bursts.ts';
import { faultOf } from '../../bench/contenders.ts';
import { ArgumentError, groupNames, readOptions } from '../../bench/options.ts';
import { sectionsOf } from '../../bench/page-sections.ts';
import { groupSection, performancePage, type Report, resultText } from '../../bench/performance-page.ts';
import { cpuMicros, peakMemory, threadMicros } from '../../bench/process-usage.ts';
import { kindOf } from '../../bench/redis-memory.ts';
import { edges, fullPages, namePrefixes } from '../../bench/requests.ts';
import { inRounds, orderOf } from '../../bench/rounds.ts';
import { measureSize } from '../../bench/size.ts';
import { sizePlots } from '../../bench/size-plots.ts';
import { type SizeFigures, sizeTables } from '../../bench/size-tables.ts';
import { median, percentile, reaches, summarize } from '../../bench/statistics.ts';
import { dueBy, steadyLoad } from '../../bench/steady-load.ts';
import { readNdjson, walk } from '../../bench/walk.ts';
import { Workspace } from '../../bench/workspace.ts';
import { product } from '../support/records.ts';
import { upstreamServers } from '../support/upstream-server.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('the arithmetic of the bench', () => {
  it('takes the middle one, or the mean of the middle two', () => {
    expect(median([3, 1, 2])).to.equal(2);
    expect(median([4, 1, 3, 2])).to.equal(2.5);
    expect(() => median([])).to.throw();
    expect(summarize([5, 1, 9])).to.deep.equal({ median: 5, least: 1, most: 9 });
  });

  it('takes percentiles by the nearest rank', () => {
    const values = Array.from({ length: 100 }, (_, i) => i + 1);
    expect([0.5, 0.99, 0.999, 1].map((share) => percentile(values, share))).to.deep.equal([50, 99, 100, 100]);
    expect(percentile([7], 0.5)).to.equal(7);
  });

  it('judges a target as it is meant', () => {
    expect(reaches({ atLeast: 0.95 }, 0.95)).to.equal(true);
    expect(reaches({ atLeast: 0.95 }, 0.949)).to.equal(false);
    expect(reaches({ atMost: 2 }, 2)).to.equal(true);
    expect(reaches({ atMost: 2 }, 2.01)).to.equal(false);
  });
});

describe('the rounds of the bench', () => {
  it('measure every pair once a round, side by side, each side first in every other round', async () => {
    const done: string[] = [];
    const contest = (name: string) => ({
      title: name,
      subject: async () => done.push(`${name} subject`),
      against: async () => done.push(`${name} against`),
    });
    const results = await inRounds(['a', 'b', 'c'].map(contest), 2, () => undefined);
    expect(results.map(({ samples }) => samples.length)).to.deep.equal([2, 2, 2]);
    expect(done.length).to.equal(12);
    for (let i = 0; i < done.length; i += 2) expect(done[i]?.[0], `step ${i}`).to.equal(done[i + 1]?.[0]);
    const firstOfA = done.filter((it, i) => it.startsWith('a') && i % 2 === 0);
    expect(firstOfA.sort()).to.deep.equal(['a against', 'a subject']);
  });

  it('go through all pairs in each round, in another order', () => {
    const orders = [0, 1, 2].map((round) => orderOf(5, round));
    for (const order of orders) expect([...order].sort()).to.deep.equal([0, 1, 2, 3, 4]);
    expect(new Set(orders.map(String)).size).to.equal(3);
  });

  it('go on without a pair that failed, and keep why', async () => {
    const works = { title: 'works', subject: async () => 1, against: async () => 1 };
    const fails = { ...works, title: 'fails', against: () => Promise.reject(new Error('it broke')) };
    const [first, second] = await inRounds<number>([fails, works], 3, () => undefined);
    expect(first).to.deep.equal({ samples: [], failure: 'it broke' });
    expect(second?.samples.length).to.equal(3);
  });
});

describe('the requests of the bench', () => {
  it('are for full pages alone, and for the ends of a list', () => {
    expect(fullPages(1_001, 200)).to.deep.equal(['page=1', 'page=2', 'page=3', 'page=4', 'page=5']);
    expect(fullPages(99, 50)).to.deep.equal(['page=1&per-page=50']);
    expect(edges([1, 2, 3, 4, 5, 6, 7], 2)).to.deep.equal({ first: [1, 2], last: [6, 7] });
    expect(edges([1, 2, 3])).to.deep.equal({ first: [1], last: [3] });
  });

  it('search by three letters or digits, each once', () => {
    const named = ['PAROL 500 MG', 'PARANOX', 'İBU', '5-FU', 'A B C', 'AB'].map((name, i) =>
      product(i + 1, { product: { id: i + 1, name } }),
    );
    expect(namePrefixes(named)).to.deep.equal(['PAR', 'İBU']);
  });

  it('are checked by their answers: status, encoding, records', () => {
    const body = gzipSync(JSON.stringify({ data: [1, 2], success: true }));
    const good: WireAnswer = { status: 200, headers: { 'content-encoding': 'gzip' }, body };
    expect(faultOf(good, { status: 200, encoding: 'gzip', records: 2 })).to.equal(null);
    expect(faultOf(good, { status: 200, encoding: 'gzip', records: 200 })).to.include('2 records');
    expect(faultOf(good, { status: 200, encoding: 'identity' })).to.include('gzip');
    expect(faultOf({ ...good, status: 503 }, { status: 200, encoding: 'gzip' })).to.include('503');
    const empty = { ...good, body: gzipSync('{"data":[]}') };
    expect(faultOf(empty, { status: 200, encoding: 'either', records: 'some' })).to.include('0 records');
    expect(faultOf({ ...good, status: 304 }, { status: 304, encoding: 'either' })).to.equal(null);
    const answers = [1, 9, 5].map((length) => ({ ...good, body: Buffer.alloc(length) }));
    expect(typicalOf(answers).body.length).to.equal(5);
  });
});

describe('the steady load', () => {
  const serve = upstreamServers();

  it('sends at its rate, the first request at once', () => {
    expect([0, 1.9, 2, 1_000].map((ms) => dueBy(ms, 500))).to.deep.equal([1, 1, 2, 501]);
  });

  it('charges a stall to all that were due meanwhile', async () => {
    let stalled = 0;
    const server = await serve((response, _request, nth) => {
      if (nth === 10) stalled = Date.now() + 200;
      setTimeout(() => response.end('{}'), Math.max(0, stalled - Date.now()));
    });
    const load = { origin: server.origin, requests: [{ path: '/', headers: {} }], perSecond: 100 };
    const latencies = await steadyLoad(load, sleep(600));
    expect(latencies.length).to.be.within(50, 100);
    // 20 requests were due while the server stalled, and waited 100 ms on average.
    expect(latencies.filter((ms) => ms > 50).length).to.be.at.least(10);
  });

  it('asks again where a server has closed a connection that was free', async () => {
    const seen = new Set<unknown>();
    const server = await serve((response, { socket }) => {
      if (seen.has(socket)) return void socket.resetAndDestroy();
      seen.add(socket);
      response.end();
    });
    const requests = [{ path: '/page', headers: {} }];
    const latencies = await steadyLoad({ origin: server.origin, requests, perSecond: 50 }, sleep(150));
    expect(latencies.length).to.be.at.least(3);
    expect(server.requests.length).to.be.above(latencies.length);
  });

  it('fails at the first answer that is none', async () => {
    const server = await serve((response) => response.writeHead(503).end());
    const load = { origin: server.origin, requests: [{ path: '/page', headers: {} }], perSecond: 100 };
    const failure = await steadyLoad(load, sleep(100)).catch((error: Error) => error.message);
    expect(failure).to.equal('/page was answered with 503');
  });
});

describe('a burst', () => {
  const serve = upstreamServers();

  it('asks in turn on all connections, and tells the CPU time of the process for a request', async function () {
    if (process.platform !== 'linux') this.skip(); // It is Linux's /proc that tells.
    const server = await serve((response) => {
      response.write('{');
      setImmediate(() => response.end('}'));
    });
    const requests = ['/a', '/b'].map((path) => ({ path, headers: {} }));
    const failure = await burstsOn({ origin: server.origin, requests, serverPid: process.pid })(20).catch(
      (error: Error) => error.message,
    );
    expect(failure).to.equal('An answer within a burst was none of 200 with a length.');
    const whole = await serve((response) => {
      response.setHeader('content-length', 2).write('{');
      setImmediate(() => response.end('}'));
    });
    const micros = await burstsOn({ origin: whole.origin, requests, serverPid: process.pid })(50);
    expect(micros).to.be.within(1, 10_000);
    const asked = whole.requests.map(({ url }) => url);
    const [a, b] = ['/a', '/b'].map((path) => asked.filter((it) => it === path).length);
    expect(Number(a) - Number(b)).to.be.within(0, 1);
    expect(asked.length).to.be.above(32);
  });

  it('fails where an answer is none of 200', async () => {
    const server = await serve((response) => response.writeHead(503, { 'content-length': 0 }).end());
    const requests = [{ path: '/', headers: {} }];
    const failure = await burstsOn({ origin: server.origin, requests, serverPid: process.pid })(20).catch(
      (error: Error) => error.message,
    );
    expect(failure).to.equal('An answer within a burst was none of 200 with a length.');
  });
});

describe('a client that reads a whole list', () => {
  const serve = upstreamServers();

  it('follows next to the end, and minds how many pages there are', async () => {
    const server = await serve((response, { url = '', headers: { host } }) => {
      const page = Number(new URL(url, 'http://host').searchParams.get('page') ?? 1);
      const next = page < 3 ? { next: { href: `http://${host}/products?page=${page + 1}` } } : {};
      const body = JSON.stringify({ data: [page], _links: { self: {}, ...next }, success: true });
      response.setHeader('content-encoding', 'gzip').end(gzipSync(body));
    });
    const step = (next: URL) => next.pathname + next.search;
    const walked = (pages: number) => walk(server.origin, '/products', { fields: {}, pages, step });
    expect((await walked(3)).pages).to.equal(3);
    expect(server.requests.map(({ url }) => url)).to.deep.equal([
      ...['/products', '/products?page=2', '/products?page=3'],
    ]);
    const failure = await walked(4).catch((error: Error) => error.message);
    expect(failure).to.equal('the walk had 3 pages, not 4');
  });

  it('counts the lines of NDJSON, and says when there is none', async () => {
    const server = await serve((response, { headers }, nth) => {
      expect(headers['accept']).to.equal('application/x-ndjson');
      if (nth > 1) return void response.setHeader('content-type', 'application/json').end('{}');
      response.setHeader('content-type', 'application/x-ndjson').setHeader('content-encoding', 'gzip');
      response.end(gzipSync('{"id":1}\n'.repeat(100_000)));
    });
    const service = { origin: server.origin, key: 'k' };
    expect((await readNdjson(service, 100_000)).seconds).to.be.above(0);
    const failure = await readNdjson(service, 100_000).catch((error: Error) => error.message);
    expect(failure).to.equal('not there: medref answers 200 with application/json');
  });
});

describe('the memory of a list', () => {
  it('is told by the last word of its keys', () => {
    expect(kindOf('medref:{products}:7:records')).to.equal('records');
    expect(kindOf('medref:{products}:12:blocks:3')).to.equal('blocks');
    expect(kindOf('medref:keys')).to.equal('keys');
  });

  it('is read from the system where that tells it', function () {
    if (process.platform !== 'linux') this.skip(); // It is Linux's /proc that tells.
    expect(peakMemory(process.pid)).to.be.above(10_000_000);
    expect(cpuMicros(process.pid)).to.be.above(0);
    expect(cpuMicros(0x7fffffff)).to.equal(null);
    expect(threadMicros(process.pid)).to.be.within(10_000, 1e9);
    expect(threadMicros(0x7fffffff)).to.equal(null);
  });
});

describe('the arguments of the bench', () => {
  it('are strict, and say what is wrong', () => {
    expect(readOptions([])).to.deep.equal({ quick: false, rounds: 7, groups: groupNames });
    expect(readOptions(['--quick'])).to.include({ quick: true, rounds: 1 });
    expect(readOptions(['--only', 'walk', '--rounds', '12'])).to.deep.include({
      rounds: 12,
      groups: ['walk'],
    });
    for (const args of [
      ['--rounds', '0'],
      ['--rounds', '1e2'],
      ['--only', 'all'],
      ['--fast'],
      ['x'],
      ['--rounds'],
    ]) {
      expect(() => readOptions(args), args.join(' ')).to.throw(ArgumentError, /bench takes/);
    }
  });

  it('end the command with a sentence and exit code 2 when they are wrong', () => {
    const bench = ['--import', 'tsx', 'bench/bench.ts', '--rounds', 'many'];
    const { status, stdout, stderr } = spawnSync(process.execPath, bench, { cwd: root, encoding: 'utf8' });
    expect({ status, stdout }).to.deep.equal({ status: 2, stdout: '' });
    expect(stderr).to.match(/^--rounds many is no number from 1 to 99: .*\n$/);
  });
});

describe('the bench without wrk', () => {
  it('says in a sentence what is missing, and ends with exit code 2', () => {
    const bench = ['--import', 'tsx', 'bench/bench.ts', '--quick'];
    const env = { PATH: '/nowhere' };
    const { status, stderr } = spawnSync(process.execPath, bench, { cwd: root, encoding: 'utf8', env });
    expect({ status, stderr }).to.deep.equal({
      status: 2,
      stderr: 'bench needs wrk on the PATH: apt-get install wrk, or brew install wrk.\n',
    });
  });
});

describe('the workspace of the bench', () => {
  it('stops what was started, and takes nothing on afterwards', async () => {
    const workspace = await Workspace.open();
    const child = await workspace.start('sleep', ['60']);
    await workspace.close();
    expect(await child.ended).to.equal('SIGTERM');
    const refusal = await workspace.start('sleep', ['60']).catch((error: Error) => error.message);
    expect(refusal).to.equal('The bench is over.');
  });

  it('says what a command that failed has said', async () => {
    const workspace = await Workspace.open();
    const failure = await workspace
      .run('sh', ['-c', 'echo why >&2; exit 3'])
      .catch((error: Error) => error.message);
    await workspace.close();
    expect(failure).to.match(/ended with 3: why$/);
  });
});

describe('how figures grow with a list', () => {
  const latency = (name: string, p50: number) => ({ name, p50, p99: 2 * p50 });
  const imported = (records: number, keptBefore: number) => ({
    ...{ records, keptBefore, version: 1, seconds: records / 20_000, publishMs: 0.5 },
    ...{ importerPeak: 180e6, redisAfter: records * 600 * (keptBefore + 1), redisPeak: records * 1_200 },
    redisResident: null,
  });
  const sizes: SizeFigures[] = [
    {
      ...{ records: 1_000_000, imports: [imported(1_000_000, 0), imported(1_000_000, 1)] },
      latencies: [latency('page of 200', 1), latency('changes', 3)],
    },
    {
      ...{ records: 5_000_000, imports: [imported(5_000_000, 0)] },
      latencies: [latency('page of 200', 1.5)],
    },
  ];

  it('is told beside a straight line, where two sizes have the figure', () => {
    const tables = sizeTables(sizes, 200);
    expect(tables[0]?.rows.map((row) => row.join(' '))).to.deep.equal([
      '1,000,000 0 50.0 20,000 180 600 1,200 – 0.50',
      '1,000,000 1 50.0 20,000 180 1,200 1,200 – 0.50',
      '5,000,000 0 250.0 20,000 180 3,000 6,000 – 0.50',
    ]);
    expect(tables[1]?.rows).to.deep.equal([
      ['1,000,000', '1.00', '2.00', '3.00', '6.00'],
      ['5,000,000', '1.50', '3.00', '–', '–'],
    ]);
    const grown = new Map(tables[2]?.rows.map(([what, , ...others]) => [what, others]));
    expect(grown.get('time of the first import')).to.deep.equal(['5.0 times', '5.00 times', '5.0 times']);
    expect(grown.get('page of 200, median')).to.deep.equal([
      ...['5.0 times', '1.50 times', '1 time: it stays as it is'],
    ]);
    expect([...grown.keys()]).not.to.include.members(['time of the second import', 'changes, median']);
    expect(sizeTables(sizes.slice(0, 1), 200).length).to.equal(2);
  });

  it('is drawn from nothing on, so that a straight line looks straight', () => {
    const plots = sizePlots(sizes);
    expect(plots.map(({ name }) => name)).to.deep.equal(
      ['import', 'memory', 'latency'].map((what) => `performance-size-${what}.svg`),
    );
    for (const { svg } of plots) expect(svg).not.to.match(/NaN|Infinity|undefined|<&/);
    // 250 s and 50 s: the axis goes from 366 at nothing to 66.
    expect(plots[0]?.svg).to.include('cy="306"').and.to.include('cy="66"');
    expect(sizePlots(sizes.slice(0, 1))).to.deep.equal([]);
  });

  it('is left out for a size that the machine has no room for', async () => {
    const workspace = await Workspace.open();
    const run = benchRun(workspace, { quick: true, rounds: 1 });
    const growth = [{ records: 1e12, imports: 1 }];
    const { comparisons } = await measureSize({ ...run, sizes: { ...run.sizes, growth } });
    await workspace.close();
    expect(comparisons.map(({ outcome }) => outcome.state)).to.deep.equal(['left out']);
    expect(comparisons[0]?.outcome)
      .to.have.property('reason')
      .match(/^it would take .* of memory, and .* are free$/);
  });
});

describe('the page of figures', () => {
  const report: Report = {
    ...{ name: 'serving', heading: 'Serving', machine: [['Node', '20.19.0']], date: '2026-01-02', rounds: 3 },
    result: {
      comparisons: [
        {
          ...{
            subject: 'medref: page',
            against: 'the limit: page',
            unit: 'times',
            target: { atLeast: 0.95 },
          },
          outcome: { state: 'measured', values: [0.97, 0.96, 1.02] },
          byCpuTime: [0.9, 0.94, 0.91],
        },
        {
          ...{ subject: 'memory', against: 'a bound', unit: 'MB', target: { atMost: 220 } },
          outcome: { state: 'measured', values: [240.4] },
        },
        {
          ...{
            subject: 'medref: search',
            against: 'the limit: page',
            unit: 'times',
            target: { atLeast: 0.6 },
          },
          outcome: { state: 'left out', reason: 'not there: medref answers 400' },
        },
        {
          ...{ subject: 'medref: page', against: 'nginx', unit: 'times', target: null },
          outcome: { state: 'failed', reason: 'nginx: 3 connections broke' },
        },
      ],
      serving: [
        {
          name: 'medref: page of 200, gzip',
          requestsPerSecond: [15_000, 16_000],
          serverMicros: [61],
          storeMicros: [9],
          bodyBytes: 5_965,
        },
        {
          name: 'other <&>',
          requestsPerSecond: [90_000],
          serverMicros: [],
          storeMicros: [],
          bodyBytes: 5_965,
        },
      ],
      share: [
        {
          ...{ name: 'page of 200, gzip', target: { atMost: 1.15 } },
          ...{ medref: [66, 61, 80], limit: [50, 64, 56] },
        },
        { ...{ name: 'one record', target: { atMost: 1.15 } }, ...{ medref: [40, 41], limit: [60, 50] } },
      ],
      latency: [
        {
          name: 'idle',
          requests: 5_000,
          percentiles: [
            [0.5, 1],
            [0.99, 3],
          ],
        },
        {
          name: 'during an import',
          requests: 5_000,
          percentiles: [
            [0.5, 1.5],
            [0.99, 5],
          ],
        },
      ],
      figures: [
        { name: 'import', unit: 'records/s', outcome: { state: 'measured', values: [40_004, 41_000] } },
      ],
    },
  };
  const { latency, share, ...served } = report.result;
  const { text, plots } = groupSection({ ...report, result: served });
  const steady = groupSection({
    ...{ ...report, name: 'latency', heading: 'Latency' },
    result: { comparisons: [], latency: latency ?? [] },
  });
  const load = { seconds: 3, warmUpSeconds: 1 };

  it('says of each target whether it holds, also where it does not', () => {
    expect(text).to.include(
      '| medref: page | the limit: page | ≥ 0.95 | **0.97** | 0.96 to 1.02 | yes | 0.91 |',
    );
    expect(text).to.include('| memory | a bound | ≤ 220 MB | **240** MB | one measurement | **no** | – |');
    expect(text).to.include('| ≥ 0.6 | left out | not there: medref answers 400 | – | – |');
    expect(text).to.include('| medref: page | nginx | failed | nginx: 3 connections broke | – |');
  });

  it('says at its beginning how many targets are held', () => {
    expect(performancePage([text], load)).to.include(
      'Of the 2 targets that were measured, **1 is not held**.',
    );
    const held = groupSection({ ...report, result: { comparisons: report.result.comparisons.slice(0, 1) } });
    expect(performancePage([held.text], load)).to.include(
      'Of the 1 targets that were measured, all are held.',
    );
  });

  it('takes a section that was made anew, and keeps the others', () => {
    const other = groupSection({ ...report, heading: 'Import', result: { comparisons: [] } }).text;
    const sections = sectionsOf(performancePage([text, other], load));
    expect([...sections]).to.deep.equal([
      ['Serving', text],
      ['Import', other],
    ]);
    const anew = groupSection({ ...report, heading: 'Import', date: '2026-02-03' }).text;
    const page = performancePage([...sections.set('Import', anew).values()], load);
    expect(page).to.include(`${text}\n${anew}`).and.to.include('npm run bench');
  });

  it('has the tables and plots of a group’s own, the tables on stdout too', () => {
    const tables = [{ words: 'What grows:', head: ['Records', 'MB'], rows: [['1,000', '2']] }];
    const own = [{ name: 'performance-growth.svg', title: 'Growth', svg: '<svg/>' }];
    const result = { comparisons: [], tables, plots: own };
    const section = groupSection({ ...report, result });
    const shown = 'What grows:\n\n| Records | MB |\n|---|---|\n| 1,000 | 2 |\n';
    expect(resultText(result)).to.equal(shown);
    expect(section.text).to.include(`\n${shown}`).and.to.include('![Growth](performance-growth.svg)');
    expect([...section.plots]).to.deep.equal([['performance-growth.svg', '<svg/>']]);
  });

  it('holds the least CPU time of a request against the least of the limit, and has the medians beside it', () => {
    const section = groupSection({ ...report, result: { comparisons: [], share: share ?? [] } }).text;
    expect(section).to.include(
      '| page of 200, gzip | ≤ 1.15 | **1.22** | 61.0 | 50.0 | 66.0 | 56.0 | **no** | 1.18 |',
    );
    expect(section).to.include('| one record | ≤ 1.15 | **0.80** | 40.0 | 50.0 | 40.5 | 55.0 | yes | 0.74 |');
    expect(section).to.include('Processors differ');
    const page = performancePage([section], { seconds: 3, warmUpSeconds: 1 });
    expect(page).to.include('Of the 2 targets that were measured, **1 is not held**.');
  });

  it('has the plain figures, the machine and the date', () => {
    expect(text).to.include('| medref: page of 200, gzip | 15,500 | 15,000 to 16,000 | 61 | 9 | 5,965 |');
    expect(text).to.include('| import | 40,500 records/s | 40,000 to 41,000 |');
    expect(steady.text).to.include('| during an import | 5,000 | 1.50 ms | 5.00 ms |');
    expect(text).to.include('Measured on 2026-01-02 in 3 rounds. Node 20.19.0.');
  });

  it('comes with plots that are well-formed, told in words, and drawn for light and dark', () => {
    const all = [...plots, ...steady.plots];
    expect(all.map(([name]) => name)).to.deep.equal(['performance-serving.svg', 'performance-latency.svg']);
    for (const [name, svg] of all) {
      expect(text + steady.text, name).to.include(`](${name})`);
      expect(svg).to.match(/<title id="title">[^<]+<\/title>\n {2}<desc id="description">[^<]+<\/desc>/);
      expect(svg).to.include('prefers-color-scheme: dark');
      expect(svg).not.to.match(/NaN|Infinity|undefined|<&/);
    }
  });
});
