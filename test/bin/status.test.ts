import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { type Heartbeat, writeHeartbeat } from '../../shared/importer-heartbeats.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { documentOf, parseVersion } from '../../shared/store/versions.ts';
import { aheadOfClock } from '../support/importing.ts';
import { productKeys as keys } from '../support/keys.ts';
import { medref as run } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { withUser } from '../support/redis-users.ts';
import { sending, upstreamServers } from '../support/upstream-server.ts';

interface Status {
  warnings: string[];
  collections: {
    collection: string;
    liveStatus: string;
    live: { version: number; totalCount: number; ageSeconds: number } | null;
    lastImports: { outcome: string; reason: string | null }[];
    lock: { holder: string; since: string } | null;
    damage: string[];
    warnings: string[];
    candidate: { version: number } | null;
    stale: boolean | null;
    advice: { problem: string; details?: string[]; run: { command: string; effect: string }[] }[];
  }[];
}

describe('medref status', function () {
  this.timeout(60_000);
  const server = useRedis({ appendOnly: true, settings: { appendfsync: 'always' } });
  const startUpstream = upstreamServers();
  let redis: Redis;
  let list: readonly unknown[];
  let url: string;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    await redis.set(keys.next, aheadOfClock);
    list = products(3);
    url = (await startUpstream((...all) => sending(list)(...all))).url().href;
  });

  const medref = (args: string[], settings: Record<string, string> = {}) =>
    run(args, { REDIS_URL: server().url, ...settings });
  const importList = async (records: readonly unknown[] = list, ...options: string[]) => {
    list = records;
    return (await medref(['import', '--json', ...options], { PRODUCTS_URL: url })).json<{
      imports: { version: number; previousVersion: number; reason: string }[];
    }>().imports[0];
  };
  const statusOf = async (args: string[] = [], settings: Record<string, string> = {}) =>
    (await medref(['status', '--json', ...args], settings)).json<Status>();
  /** Returns the problems of products, each with its commands. */
  const adviceOf = async (args: string[] = [], settings: Record<string, string> = {}) =>
    (await statusOf(args, settings)).collections[0]?.advice.map(({ problem, run }) => ({
      problem,
      run: run.map(({ command }) => command),
    }));
  const text = async (settings: Record<string, string> = {}) => (await medref(['status'], settings)).stdout;
  /** Returns the same text, with each sentence on one line. */
  const unwrapped = async () => (await text()).replace(/\n {2}(?! )/g, ' ');
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
  /** Sets when the live version was published, and when it was last found in upstream. */
  const date = async (publishedAt: string, checkedAt: string | null) => {
    const version = parseVersion(keys.live, (await redis.get(keys.live)) ?? '');
    const document = documentOf({ ...version, publishedAt });
    await redis.set(keys.live, document);
    await redis.hset(keys.versionDocuments, String(version.version), document);
    if (checkedAt === null) await redis.del(keys.checked);
    else await redis.set(keys.checked, checkedAt);
  };

  it('shows live versions, the last imports and the holder of a lock', async () => {
    const version = (await importList())?.version;
    await importList();
    const lock = { holder: 'process 7 on host', since: '2026-01-01T00:00:00.000Z' };
    await redis.set(keys.lock, JSON.stringify({ ...lock, token: 'x' }));
    const { code, json } = await medref(['status', '--json']);
    expect(code).to.equal(0);
    const [first, derived, second] = json<Status>().collections;
    expect(first?.live).to.deep.include({ version, totalCount: 3 });
    expect(first?.live?.ageSeconds).to.be.within(0, 60);
    expect(first?.lastImports.map((it) => it.outcome)).to.deep.equal(['unchanged', 'published']);
    expect(first).to.deep.include({ lock, damage: [], stale: null, advice: [] });
    expect(derived).to.deep.include({ collection: 'drugs', derivedFrom: 'products', lock });
    expect(derived?.live).to.deep.include({ version, totalCount: 3 });
    expect(second).to.deep.equal({
      ...{ collection: 'companies', derivedFrom: null, liveStatus: 'missing', live: null, checkedAt: null },
      ...{
        lastImports: [],
        lock: null,
        progress: null,
        despite: [],
        publishedBy: null,
        publishedWhy: null,
        pause: null,
        candidate: null,
        damage: [],
        warnings: [],
        stale: null,
        advice: [],
      },
    });
  });

  it('shows the same as tables', async () => {
    const version = (await importList())?.version;
    await date(hoursAgo(76), hoursAgo(2));
    await redis.set(keys.lock, '{"holder":"process 7 on host","since":"2026-01-01T00:00:00.000Z"}');
    const [overview, noted, imports, ...rest] = (await text()).trimEnd().split('\n\n');
    expect(overview?.split('\n')).to.deep.equal([
      'collection  version         age  records  upstream  last import',
      `products    ${version}  3 d  3        2 h ago   published`,
      `drugs       ${version}  3 d  3        2 h ago   as products`,
      'companies   none live       -    -        -         -',
    ]);
    expect(noted).to.equal('products: process 7 on host is importing, since 2026-01-01 00:00 UTC.');
    expect(imports).to.match(
      /^imports of products {3}outcome {4}version {9}read {2}rejected\n\d{4}-\d\d-\d\d \d\d:\d\d UTC {2}published {2}\d{14} {2}3 {5}0$/,
    );
    expect(rest).to.deep.equal([]);
  });

  it('has no line over 80 columns, whatever the numbers and reasons', async () => {
    await importList(products(200), '--force');
    await importList([...products(100), { product: { id: 7 } }]);
    await medref(['rollback', 'products']);
    await redis.hset(keys.damaged, '1', `Page 3 of ${keys.versions} is damaged, and ${'so on '.repeat(30)}.`);
    const version = parseVersion(keys.live, (await redis.get(keys.live)) ?? '');
    const sizes = { totalCount: 88_888_888, publishedAt: '2099-01-01T00:00:00.000Z' };
    await redis.set(keys.live, documentOf({ ...version, ...sizes }));
    const [entry] = await redis.xrevrange(keys.imports, '+', '-', 'COUNT', 1);
    const report = JSON.parse(entry?.[1][1] ?? '');
    for (const outcome of ['rolled-back', 'unchanged', 'refused']) {
      const figures = {
        outcome,
        forced: true,
        read: 88_888_888,
        rejected: 8_888_888,
        version: 20261122030000,
      };
      await redis.xadd(keys.imports, '*', 'report', JSON.stringify({ ...report, ...figures }));
    }
    const stdout = await text({ API_HOST: '0.0.0.0' });
    expect(stdout)
      .to.match(/88,888,888/)
      .and.match(/damage/)
      .and.match(/refused/)
      .and.match(/2099/);
    for (const line of stdout.split('\n')) expect(line.length, line).to.be.at.most(80);
  });

  it('recommends commands after a refused import', async () => {
    await importList(products(10));
    const refused = await importList([...products(5), { product: { id: 7 } }]);
    const [advice] = (await statusOf()).collections[0]?.advice ?? [];
    const readers = `Readers still get ${refused?.previousVersion} (10 records).`;
    expect(advice?.problem)
      .to.match(/^REFUSED \d{4}-\d\d-\d\d \d\d:\d\d UTC\. /)
      .and.include(readers);
    expect(advice?.details).to.deep.equal([refused?.reason, '1 × $.product.name is required']);
    expect(advice?.run).to.deep.equal([
      { command: 'medref rejects products', effect: 'shows rejected records' },
    ]);
    expect(await text()).to.include('\n    medref rejects products   shows rejected records\n');
    await importList(products(5));
    expect((await adviceOf())?.[1]?.run).to.deep.equal([
      'medref diff products --to candidate',
      `medref publish products --candidate ${(await statusOf()).collections[0]?.candidate?.version}`,
      'medref discard products',
    ]);
  });

  it('groups the rejects of a renamed member, and recommends no publication', async () => {
    await importList(products(10));
    await importList(products(1_500).map(({ drugform, ...others }) => ({ ...others, drugForm: drugform })));
    const [advice] = (await statusOf()).collections[0]?.advice ?? [];
    expect(advice?.details).to.deep.equal([
      'Upstream has no valid record: 1,500 read, 1,500 rejected.',
      '1,500 × $.drugform is required (first at position 1; unknown member "drugForm": renamed?)',
    ]);
    expect(advice?.run.map(({ command }) => command)).to.deep.equal([
      'medref rejects products',
      'medref import products --dry-run',
    ]);
  });

  it('recommends commands after a failed import, even if later ones were locked', async () => {
    const failed = await medref(['import', '--json'], { PRODUCTS_URL: 'file:///none/here' });
    const [{ reason } = expect.fail()] = failed.json<{ imports: { reason: string }[] }>().imports;
    const adviceNow = async () => (await statusOf()).collections[0]?.advice;
    const before = await adviceNow();
    expect(before?.[0]?.problem).to.match(/^FAILED .* UTC\. Readers get nothing: no version is live\.$/);
    expect(before?.[0]?.details).to.deep.equal([reason]);
    expect(before?.[0]?.run).to.deep.equal([{ command: 'medref import products', effect: 'tries again' }]);
    await redis.set(keys.lock, '{"holder":"another","since":"now"}');
    await importList();
    expect((await adviceNow())?.[0]?.run, 'while an import runs').to.deep.equal([]);
    await redis.del(keys.lock);
    expect(await adviceNow()).to.deep.equal(before);
    expect(await text()).to.match(/\nproducts +none live .* failed\n/);
  });

  it('shows an importer that was not seen for a minute as gone, with its process and host', async () => {
    const beat: Heartbeat = {
      ...{ importer: 'process 7 on there', startedAt: hoursAgo(9), seenAt: hoursAgo(3), stopped: false },
      ...{ nextRun: hoursAgo(-5), cron: '0 3 * * *', timezone: 'UTC', collections: ['products'] },
    };
    await writeHeartbeat(redis, 'medref', beat);
    expect(await text()).to.match(
      /\n\nNo importer runs: process 7 on there was last seen 3 h ago\. Start it:\n {2}docs\/RUNBOOK\.md, "Start and stop"\.\n {4}medref import {3}imports what was missed\n?/,
    );
    const { importers } = (await medref(['status', '--json'])).json<{ importers: unknown[] }>();
    expect(importers).to.deep.equal([{ ...beat, isAlive: false }]);
    await writeHeartbeat(redis, 'medref', { ...beat, importer: 'process 8 on there', seenAt: hoursAgo(0) });
    expect(await text()).to.match(/Importer: process 8 on there, seen now; next run/);
  });

  it('shows how far an import in progress has come', async () => {
    let more: () => void = () => undefined;
    const upstream = await startUpstream((response) => {
      const body = JSON.stringify(products(2_000));
      response.setHeader('content-length', Buffer.byteLength(body));
      response.write(body.slice(0, body.length / 2));
      more = () => response.end(body.slice(body.length / 2));
    });
    const ended = medref(['import'], { PRODUCTS_URL: upstream.url().href });
    while ((await redis.exists(keys.progress)) === 0) await sleep(20);
    const stdout = (await text()).replace(/\n {2}/g, ' ');
    expect(stdout).to.match(
      /products: process \d+ on \S+ is importing, since \S+ \S+ UTC; [\d,]+ records read, \d+ %\./,
    );
    more();
    expect((await ended).code).to.equal(0);
    expect(await redis.exists(keys.progress)).to.equal(0);
  });

  it('recommends commands for a pause', async () => {
    await importList(products(3));
    await importList(products(4), '--force');
    const { version } = (await medref(['rollback', 'products', '--json'])).json<{ version: number }>();
    const [advice, ...others] = (await adviceOf()) ?? [];
    expect(others).to.deep.equal([]);
    expect(advice?.problem).to.match(
      /^Scheduled imports have been paused since .*, after a rollback to version \d+ by \S+@\S+\.$/,
    );
    expect(advice?.run).to.deep.equal(['medref import products --dry-run', 'medref resume products']);
    expect(await text()).to.include(`rolled-back  ${version}`);
  });

  it('recommends commands for damage that readers found', async () => {
    await importList();
    await redis.hset(keys.damaged, { a: 'Block 1 is damaged.', b: 'Block 2 is damaged.' });
    const { collections } = await statusOf();
    expect(collections[0]?.damage).to.deep.equal(['Block 1 is damaged.', 'Block 2 is damaged.']);
    expect(await adviceOf()).to.deep.equal([
      {
        problem: 'DAMAGED data, but not of the live version.',
        run: ['medref verify products', 'medref verify products --repair'],
      },
    ]);
    expect(collections[1]?.advice, 'drugs come and go with products').to.deep.equal([]);
  });

  it('warns of variables with nearly the name of a setting', async () => {
    const { warnings } = await statusOf([], { KEEP_VERSION: '9', IMPORT_CRN: 'x', COLORTERM: 'truecolor' });
    expect(warnings).to.include.members([
      'KEEP_VERSION is not a setting, and is ignored. Did you mean KEEP_VERSIONS?',
      'IMPORT_CRN is not a setting, and is ignored. Did you mean IMPORT_CRON?',
    ]);
    expect(warnings.join()).not.to.include('COLORTERM');
  });

  it('warns of a Redis that has nothing of medref', async () => {
    const empty = /This Redis has no versions and no API keys under the prefix medref\. .* restore a backup/;
    await redis.flushall();
    const operator = { REDIS_URL: withUser(server().url, 'operator') };
    expect((await statusOf([], operator)).warnings.join()).to.match(empty);
    await medref(['keys', 'create', '--client', 'a']);
    expect((await statusOf([], operator)).warnings.join()).not.to.match(empty);
  });

  it('keeps the checks that --force skipped with the live version, until a different version is live', async () => {
    await importList(products(10));
    await importList(products(5), '--force');
    for (let n = 0; n < 6; n += 1) await importList(products(5));
    expect(await unwrapped()).to.include(
      ': shrink (50.0 % > 20 %), elements ($.barcodes 50.0 % > 20 %). Undo: medref rollback products',
    );
  });

  it('does not say that readers get a damaged version, and warns of publishing what was rolled back', async () => {
    await importList(products(10));
    const { version } = (await importList(products(11))) ?? expect.fail();
    await medref(['rollback', 'products']);
    await importList(products(11));
    const [, advice] = (await statusOf()).collections[0]?.advice ?? [];
    expect(advice?.run[1]?.effect).to.equal('publishes AGAIN what you rolled back');
    const live = parseVersion(keys.live, (await redis.get(keys.live)) ?? '');
    await redis.del(keys.content(live.content).blocks);
    list = products(2);
    const { stdout } = await medref(['import'], { PRODUCTS_URL: url });
    expect(stdout.replace(/\s+/g, ' ')).to.include(
      `REFUSED: readers get 503 for parts of ${live.version}, which is damaged`,
    );
    expect(live.version).to.be.above(version);
  });

  it('reports a live version with lost keys', async () => {
    const { version } = (await importList()) ?? expect.fail();
    const { records } = keys.content(String(version));
    await redis.hdel(records, '2');
    const [products, drugs] = (await statusOf()).collections;
    expect([products?.liveStatus, drugs?.liveStatus]).to.deep.equal(['incomplete', 'incomplete']);
    expect(await adviceOf()).to.deep.equal([
      {
        problem: `DAMAGED live version. Readers get 503 for parts of ${version}.`,
        run: ['medref import products', 'medref verify products --repair', 'medref versions products'],
      },
    ]);
  });

  it('recommends commands for rejects of a published list', async () => {
    await medref(['import'], { PRODUCTS_URL: url, MAX_REJECT_PERCENT: '50' });
    list = [product(1), product(2), { product: { id: 7 } }];
    await medref(['import', '--force'], { PRODUCTS_URL: url });
    expect(await adviceOf()).to.deep.equal([
      {
        problem: 'The last import rejected 1 of 3 records; readers do not get them.',
        run: ['medref rejects products'],
      },
    ]);
  });

  it('recommends commands if a configured collection was never imported', async () => {
    expect(await adviceOf()).to.deep.equal([]);
    expect(await adviceOf([], { PRODUCTS_URL: url })).to.deep.equal([
      { problem: 'No live version: PRODUCTS_URL was never imported.', run: ['medref import products'] },
    ]);
  });

  it('shows that the live version was forced', async () => {
    await importList(products(3), '--force');
    expect(await unwrapped()).to.match(
      /^products: Published in spite of its checks by \S+@\S+\. Undo: medref rollback products/m,
    );
    expect(await text()).to.match(/ published {2}\d{14} {2}3 {5}0 {9}forced$/m);
    await importList(products(30), '--force');
    await importList(products(10), '--force');
    expect(await unwrapped()).to.include(
      ': shrink (66.7 % > 20 %), elements ($.barcodes 66.7 % > 20 %). Undo:',
    );
  });

  it('warns of a live version dated in the future', async () => {
    await importList();
    await date('2099-01-01T00:00:00.000Z', hoursAgo(0));
    expect(await unwrapped()).to.match(/^products: Version \d{14} is dated 2099-.* is in the future/m);
    const { collections } = await statusOf();
    expect(collections.map(({ warnings }) => warnings.length)).to.deep.equal([1, 1, 0]);
  });

  it('warns first of links with http:// if the API listens beyond loopback', async () => {
    const open = { API_HOST: '0.0.0.0' };
    expect(await text(open)).to.match(/^warning: BASE_URL is not set, and API_HOST is 0\.0\.0\.0: /);
    expect((await text(open)).split('\n\n')[1]).to.match(/^collection /);
    expect((await statusOf([], open)).warnings).to.have.length(1);
    const named = { ...open, BASE_URL: 'https://medref.test' };
    expect((await statusOf([], named)).warnings).to.deep.equal([]);
    expect(await text()).to.match(/^collection /);
  });

  describe('with --max-age', () => {
    const ended = async (maxAge: string, settings: Record<string, string> = {}) => {
      const { code, json } = await medref(['status', '--json', '--max-age', maxAge], settings);
      return [code, ...json<Status>().collections.map(({ stale }) => stale)];
    };

    it('exits with 1 if the last upstream check is older', async () => {
      await importList();
      await date(hoursAgo(100), hoursAgo(2));
      expect(await ended('3h')).to.deep.equal([0, false, false, null]);
      expect(await ended('119m')).to.deep.equal([1, true, true, null]);
      expect(await ended('1d')).to.deep.equal([0, false, false, null]);
      expect(await ended('7100s')).to.deep.equal([1, true, true, null]);
      expect(await adviceOf(['--max-age', '1h'])).to.deep.equal([
        {
          problem: 'Last successful upstream check: 2 h ago; --max-age expects one sooner.',
          run: ['medref import products'],
        },
      ]);
      expect((await medref(['status', '--max-age', '1h'])).code, 'as text').to.equal(1);
    });

    it('counts an unchanged import, but no refused or failed one', async () => {
      await importList(products(10));
      await date(hoursAgo(5), hoursAgo(5));
      await importList(products(5));
      await medref(['import'], { PRODUCTS_URL: 'file:///none/here' });
      expect((await ended('1h'))[0]).to.equal(1);
      await importList(products(10));
      expect((await ended('1h'))[0]).to.equal(0);
    });

    it('treats a check in the future as unknown, and counts from the publication', async () => {
      await importList();
      const future = new Date(Date.now() + 9 * 86_400_000).toISOString();
      await date(hoursAgo(5), future);
      expect(await ended('6h')).to.deep.equal([0, false, false, null]);
      expect(await ended('4h')).to.deep.equal([1, true, true, null]);
      const [state] = (await statusOf()).collections;
      expect(state).to.have.property('checkedAt', null);
      expect(state?.warnings).to.deep.equal([
        `The last upstream check is dated ${future}, which is in the future: a clock was wrong then, or is wrong now. Its time counts as unknown until the next import.`,
      ]);
      await date(future, future);
      expect(await ended('9999d')).to.deep.equal([1, true, true, null]);
      expect((await adviceOf(['--max-age', '1d']))?.[0]).to.deep.equal({
        ...{ problem: 'The time of the last upstream check is unknown.', run: ['medref import products'] },
      });
      expect((await statusOf()).collections[0]?.stale, 'without --max-age').to.equal(null);
    });

    it('tolerates a clock that is ten minutes ahead', async () => {
      await importList();
      await date(hoursAgo(100), new Date(Date.now() + 590_000).toISOString());
      expect(await ended('1h')).to.deep.equal([0, false, false, null]);
    });

    it('counts from a rollback, after which upstream differs', async () => {
      await importList(products(10));
      await importList(products(11));
      await medref(['rollback', 'products']);
      expect((await ended('1h'))[0]).to.equal(0);
      await date(hoursAgo(2), null);
      expect((await ended('1h'))[0]).to.equal(1);
    });

    it('exits with 1 without a live version but with an upstream, and with 0 without an upstream', async () => {
      expect(await ended('1h')).to.deep.equal([0, null, null, null]);
      expect(await ended('1h', { PRODUCTS_URL: url })).to.deep.equal([1, true, true, null]);
    });

    for (const wrong of ['5', '1w', '0h', '-1h', '1.5h', 'h', '']) {
      it(`rejects ${JSON.stringify(wrong)}`, async () => {
        const { code, stdout, stderr } = await medref(['status', '--max-age', wrong]);
        expect({ code, stdout }).to.deep.equal({ code: 2, stdout: '' });
        expect(stderr).to.include('It accepts a number and one of s, m, h and d, such as 36h.');
      });
    }
  });
});
