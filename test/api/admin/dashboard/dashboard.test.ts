// Tests the dashboard over HTTP: the text of each page, headers, errors and limits.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { rollBack } from '../../../../importer/rollback.ts';
import { companies as companyCollection } from '../../../../shared/collections/companies.ts';
import { products as productCollection } from '../../../../shared/collections/products.ts';
import { type Heartbeat, writeHeartbeat } from '../../../../shared/importer-heartbeats.ts';
import { connectForWriting, type Redis } from '../../../../shared/redis/connections.ts';
import { createApiKey, rotateApiKey } from '../../../../shared/store/api-keys.ts';
import { collectionKeys } from '../../../../shared/store/keys.ts';
import {
  type DashboardData,
  fillDashboard,
  hostileNames,
  startDashboard,
  type TestDashboard,
} from '../../../support/dashboard.ts';
import { importRecords } from '../../../support/importing.ts';
import { companies, product, products } from '../../../support/records.ts';
import { startRedisProxy } from '../../../support/redis-proxy.ts';
import { useRedis } from '../../../support/redis-server.ts';
import { sendWithoutKey } from '../../../support/wire.ts';

const keys = collectionKeys('medref', productCollection);

describe('the dashboard', function () {
  this.timeout(30_000);
  const server = useRedis();
  let redis: Redis;
  let dashboard: TestDashboard;
  let data: DashboardData;

  before(async () => {
    redis = await connectForWriting(server().url);
    data = await fillDashboard(redis, server().url);
    dashboard = await startDashboard({ redisUrl: server().url });
  });
  after(async () => {
    await dashboard.stop();
    redis.disconnect();
  });

  const ask = async (path: string, init: { method?: string; headers?: Record<string, string> } = {}) => {
    const { status, headers, body } = await sendWithoutKey(dashboard, path, init);
    return { status, headers, text: body.toString() };
  };
  /** Returns the text of a page as a reader sees it. */
  const read = async (path: string) => {
    const { status, text } = await ask(path);
    expect(status, text).to.equal(200);
    return plainOf(text);
  };

  it('sends every page with a strict content security policy, and uncached', async () => {
    const id = /id=([\d-]+)/.exec((await ask('/imports')).text)?.[1];
    const pages = ['', 'imports', `import?id=${id}`, 'versions', `diff?from=${data.first}&to=${data.second}`];
    for (const page of [
      ...pages,
      'browse',
      'record?id=7',
      'rejects',
      'keys',
      'candidate',
      'clients',
      'nothing',
      'browse?page=x',
    ]) {
      const { status, headers, text } = await ask(`/${page}`, { headers: { 'x-request-id': 'mine' } });
      expect(headers['content-security-policy'], page).to.equal(
        "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      );
      expect(headers).to.include({
        ...{
          'content-type': 'text/html; charset=utf-8',
          'cache-control': 'no-store',
          'x-request-id': 'mine',
        },
        ...{ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' },
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
      });
      expect(text)
        .to.match(/^<!doctype html>/)
        .and.not.match(/<script|style=|onerror="|http:\/\/(?!www\.w3)/);
      const head = await ask(`/${page}`, { method: 'HEAD' });
      expect([head.status, head.text], page).to.deep.equal([status, '']);
    }
    const style = await ask('/style.css');
    expect(style.headers).to.include({
      'content-type': 'text/css; charset=utf-8',
      'cache-control': 'no-cache',
    });
    const { etag = '' } = style.headers;
    expect((await ask('/style.css', { headers: { 'if-none-match': etag } })).status).to.equal(304);
  });

  it('shows on the overview problems first, then commands, then each collection', async () => {
    const text = await read('/');
    expect(text).to.match(
      /Problems products : REFUSED .* Readers still get \d+ .*absent.* medref rejects products .* Candidate \d+ .* medref publish products --candidate \d+ /,
    );
    expect(text.indexOf('Problems')).to.be.below(text.indexOf('Collections'));
    expect(text).to.include(`Live version ${data.second}`).and.include('Derived from products');
    expect(text).to.include('Next import no importer runs').and.include('No importer has run yet.');
    expect(text).to.include('Lock free Pause no Damage none known');
  });

  it('names its release, host, Redis and prefix', async () => {
    const { text } = await ask('/keys');
    expect(text.replace(/<[^>]*>/g, '')).to.include(
      'medref 1.2.3 on host · Redis 127.0.0.1:6379 · prefix medref',
    );
  });

  it('refreshes the overview, more often during an import, until a reader stops it', async () => {
    const secondsOf = (text: string) => /http-equiv="refresh" content="(\d+)"/.exec(text)?.[1];
    const { text } = await ask('/');
    expect(secondsOf(text)).to.equal('30');
    expect(text).to.include('?refresh=off">Stop refreshing</a>');
    const stopped = await ask('/?refresh=off');
    expect(secondsOf(stopped.text)).to.equal(undefined);
    expect(plainOf(stopped.text)).to.include('It does not refresh. Refresh automatically');
    expect(secondsOf((await ask('/imports')).text)).to.equal(undefined);
    await redis.set(keys.lock, '{"holder":"process 7 on there","since":"2026-01-01T00:00:00.000Z"}');
    await redis.set(keys.progress, '{"read":1234,"percent":56}');
    const importing = await ask('/');
    expect(secondsOf(importing.text)).to.equal('5');
    expect(plainOf(importing.text)).to.match(/In progress 1,234 records read 56 % 56 %/);
    await redis.del(keys.lock, keys.progress);
  });

  it('shows importers, and the next run of the one that runs', async () => {
    const now = new Date().toISOString();
    const beat: Heartbeat = {
      ...{
        importer: 'process 7 on there',
        startedAt: now,
        stopped: false,
        cron: '5 4 * * *',
        timezone: 'UTC',
      },
      ...{
        seenAt: '2026-01-01T00:00:00.000Z',
        nextRun: '2099-01-01T03:00:00.000Z',
        collections: ['products'],
      },
    };
    await writeHeartbeat(redis, 'medref', beat);
    const dead = await read('/');
    expect(dead).to.match(
      /Problems No importer runs: process 7 on there was last seen [^.]+ ago\. .*medref import/,
    );
    expect(dead).to.match(
      /process 7 on there not seen 2026-01-01 00:00:00 UTC .* – 5 4 \* \* \* UTC products/,
    );
    await writeHeartbeat(redis, 'medref', { ...beat, seenAt: now });
    const alive = await read('/');
    await redis.del('medref:{importers}:heartbeats');
    expect(alive).not.to.include('No importer runs').and.not.include('not seen');
    expect(alive).to.include('Next import 2099-01-01 03:00:00 UTC').and.include('Next import not scheduled');
    await redis.del('medref:{importers}:heartbeats');
  });

  it('shows imports with their counts, and one import with its reason and next steps', async () => {
    const text = await read('/imports');
    expect(text).to.match(/refused – 23 3 – – – .*published \d+ 63 3 2 5 2 .*published \d+ 60 0 60 0 0/);
    const [latest, before] = [...(await ask('/imports')).text.matchAll(/id=([\d-]+)"/g)].map(([, id]) => id);
    const refused = await read(`/import?collection=products&id=${latest}`);
    expect(refused).to.match(/Outcome refused Reason 40 of the 60 live ids are absent/);
    expect(refused)
      .to.include('medref diff products --to candidate')
      .and.include('medref publish products --candidate');
    const { text: published } = await ask(`/import?collection=products&id=${before}`);
    expect(published).to.include(`diff?collection=products&amp;from=${data.first}&amp;to=${data.second}`);
  });

  it('shows a candidate: why it waits, its differences to the live version, and the commands', async () => {
    const text = await read('/candidate');
    expect(text).to.match(
      /Candidate \d+ State refused by a check; .* Reason 40 of the 60 live ids are absent .* Records 20 Compared with \d+ /,
    );
    expect(text)
      .to.include(`Compared with ${data.second} `)
      .and.include('medref publish products --candidate');
    expect(text).to.match(/0 added 5 changed 40 removed .*Field Records product\.name 5 /);
    expect(await read('/candidate?kind=removed')).to.match(/Records removed, by id Id Name 21 /);
    expect(await read('/candidate?collection=drugs')).to.include('Candidate of drugs');
    expect(await read('/candidate?collection=companies')).to.include('No candidate of companies waits.');
    const { text: page } = await ask('/candidate?kind=changed');
    expect(page, 'its records have no page').not.to.match(/record\?[^"]*version=/);
    expect(await read('/')).to.match(/Candidate \d+ since /);
  });

  it('compares two versions in either order: counts, fields, and each record before and after', async () => {
    const [{ first, second }, diff] = [data, `/diff?from=${data.first}&to=${data.second}`];
    expect(await read(diff)).to.match(
      /2 added 5 changed 2 removed .*product\.name 5 .*61 DRUG 61.*62 DRUG 62/,
    );
    expect(await read(`/diff?from=${second}&to=${first}&kind=removed`)).to.match(/59 DRUG 59 .*60 DRUG 60 /);
    const { text } = await ask(`${diff}&kind=changed`);
    expect(text).to.include('<del>').and.include('<ins>');
    expect(plainOf(text)).to.match(/product\.name DRUG 1 10 MG TABLET \(20 TABLET\) <script>alert\(1\)/);
    expect(await read(`/diff?collection=drugs&from=${first}&to=${second}`)).to.include(
      '2 added 0 changed 2 removed',
    );
    expect(await read(`/diff?from=${second}&to=${second}`)).to.include('0 added 0 changed 0 removed');
  });

  it('finds records by id, name prefix and barcode, in any kept version', async () => {
    expect(await read('/browse')).to.match(/60 of 60 records .*Page 1 of 2/);
    expect(await read('/browse?id=7&name=&barcode=')).to.match(/1 of 60 records .*7 DRUG 7 10 MG/);
    expect(await read('/browse?name=drug+2')).to.match(/10 of 60 records .*20 DRUG 20 .*29 DRUG 29/);
    expect(await read('/browse?barcode=8690000000061')).to.match(
      /1 of 60 records .*61 DRUG 61 .*8690000000061/,
    );
    expect(await read('/browse?drug=61')).to.match(/1 of 60 records .*61 DRUG 61/);
    expect(await read('/browse?drug=61&name=x')).to.include('No matching records.');
    expect((await ask('/record?collection=drugs&id=61')).text).to.match(
      /<a href="browse\?collection=products&amp;drug=61&amp;version=\d+">Products of this drug</,
    );
    expect((await ask('/record?id=61')).text).not.to.include('of this drug');
    expect(await read(`/browse?barcode=8690000000061&version=${data.first}`)).to.include(
      'No matching records.',
    );
    expect(await read(`/browse?id=60&version=${data.first}`)).to.include('60 DRUG 60');
    expect(await read('/browse?collection=companies')).to.match(/3 of 3 records .*1 FIRM 1/);
    expect(await read('/browse?page=2')).to.match(/Id Name Barcode Drug 41 DRUG 41 .* 62 DRUG 62 /);
    expect((await ask('/browse?collection=companies')).text).not.to.match(/name="(barcode|drug)"/);
  });

  it('shows a record as fields and as JSON, with the versions that changed it', async () => {
    const { text } = await ask('/record?id=3');
    const json = /<pre><code>([\s\S]*?)<\/code>/.exec(text)?.[1] ?? '';
    expect(JSON.parse(unescaped(json))).to.deep.equal(
      product(3, { product: { id: 3, name: hostileNames.controls } }),
    );
    expect(plainOf(text)).to.match(
      /drug name DRUG 3 .*published yes .*8690000000003 Aktif .*latest first .* changed/,
    );
    const removed = await ask('/record?id=60');
    expect(removed.status).to.equal(404);
    expect(plainOf(removed.text)).to.match(/has no record with the id 60\. .* removed/);
    expect(await read(`/record?id=60&version=${data.first}`)).to.include('product name DRUG 60');
    expect(await read('/record?id=7')).to.include('No changes');
    expect(await read('/record?id=61')).to.match(/Import started Change \d+ .* added/);
  });

  it('shows rejects by path and reason, and marks the fault in its text', async () => {
    const text = await read('/rejects');
    expect(text).to.match(/rejected 3 records\. Outcome: refused : 40 of the 60/);
    expect(text).to.match(/\$\.barcodes\[\*\]\.barcode must be a string of 12 or 13 digits 1 /);
    const { text: page } = await ask('/rejects');
    expect(page).to.include('<mark>&quot;&lt;b&gt;12&lt;/b&gt;&quot;</mark>').and.include('<mark>1</mark>');
    const group = /group=([0-9a-f]+)/.exec(page)?.[1];
    const [, ofOneKind = ''] = (await read(`/rejects?group=${group}`)).split('Records of this group');
    expect(ofOneKind.match(/Position \d+/g)).to.deep.equal(['Position 21']);
    expect(await read('/rejects?collection=companies')).to.include('rejected 0 records');
  });

  it('shows the clients of keys, and no secret', async () => {
    const { key, id } = await createApiKey(redis, 'medref', { client: 'Depot', expiresAt: null, rate: null });
    const { text } = await ask('/keys');
    expect(plainOf(text))
      .to.match(/Pharmacy 7 [0-9a-f]{12} 20[^A-Z]* UTC[^A-Z]* never 10\/s never/)
      .and.match(/expired 1970-01-01/);
    expect(text).to.include(id).and.not.include(key);
    for (const digest of await redis.hkeys('medref:keys'))
      if (digest !== 'generation') expect(text).not.to.include(digest);
  });

  it('shows the collections of keys, and rotated keys that are still used', async () => {
    const terms = { client: 'Ward 3', expiresAt: null, rate: null, collections: ['drugs'] };
    const { id } = await createApiKey(redis, 'medref', terms);
    const rotation = await rotateApiKey(redis, 'medref', { id, overlapS: 60 });
    const { made } = rotation as NonNullable<typeof rotation>;
    await redis.hset('medref:key-use', id, new Date(Date.now() + 1).toISOString());
    const { text } = await ask('/keys');
    expect(plainOf(text)).to.match(
      new RegExp(`Ward 3 ${id} .* rotated to ${made.id} no limit still used 20.* drugs`),
    );
    expect(text).not.to.include(made.key);
  });

  it('shows hostile names as text, with their length if long', async () => {
    for (const path of [
      '/browse',
      `/diff?from=${data.first}&to=${data.second}&kind=changed`,
      '/record?id=4',
    ]) {
      const { text } = await ask(path);
      expect(text, path).not.to.match(/<script|<img|[\p{Cf}\p{Zl}]|(?!\n)\p{Cc}/u);
      expect(text, path).to.include('(10,000 characters)');
    }
    const { text } = await ask('/browse');
    expect(text).to.include('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&gt;&lt;img');
    expect(text).to.include('<span class="unseen">U+202E</span>TELBAT');
    expect(text.length).to.be.below(40_000);
  });

  it('responds with an error page to unknown paths and parameters', async () => {
    for (const [path, status, said] of [
      ['/nothing', 404, 'There is no such page.'],
      ['/constructor', 404, 'There is no such page.'],
      ['/%zz', 400, ''],
      ['/import?id=1-1', 404, 'There is no such page.'],
      ['/import', 400, 'The parameter id is missing'],
      ['/import?id=x', 400, 'The parameter id is "x"; it accepts'],
      ['/browse?page=0', 400, 'The parameter page is "0"'],
      ['/browse?x=1', 400, 'The parameter "x" is unknown'],
      ['/browse?id=7&id=8', 400, 'The parameter id is given twice'],
      ['/browse?id=<b>', 400, 'The parameter id is "<b>"; it accepts digits'],
      ['/browse?collection=<b>', 400, 'it accepts one of products, drugs, companies'],
      ['/imports?collection=drugs', 400, 'it accepts one of products, companies'],
      ['/browse?version=7', 410, 'Version 7 of products is not kept'],
      ['/diff?from=7&to=8', 410, 'is not kept'],
      [`/diff?from=${data.first}&to=${data.second}&kind=x`, 400, 'it accepts one of added, changed, removed'],
      ['/diff', 400, 'The parameter from is missing'],
      ['/rejects?group=x', 400, 'The parameter group'],
      ['/keys?collection=products', 400, 'is unknown; this route accepts'],
    ] as const) {
      const response = await ask(path);
      expect(response.status, path).to.equal(status);
      expect(response.headers['content-type'], path).to.equal('text/html; charset=utf-8');
      expect(plainOf(response.text), path).to.include(said);
      expect(response.text, path).not.to.include('<b>');
    }
    for (const path of ['/', '/nothing', '/metrics']) {
      const response = await ask(path, { method: 'POST' });
      expect([response.status, response.headers['allow']], path).to.deep.equal([405, 'GET, HEAD']);
    }
  });

  it('limits the page of a diff of any size, and counts fields of the first records', async () => {
    const other = await startDashboard({ redisUrl: server().url, most: 3 });
    try {
      const { body } = await sendWithoutKey(other, `/diff?from=${data.first}&to=${data.second}`);
      expect(plainOf(body.toString())).to.include(
        'in the first 3 of 5 changed records Field Records product.name 3',
      );
    } finally {
      await other.stop();
    }
    const many = products(130).map((it) => ({ ...it, published: false }));
    const { version } = await importRecords(many, productCollection, {
      redisUrl: server().url,
      force: true,
      keepVersions: 9,
    });
    const diff = `/diff?from=${data.first}&to=${version}&kind=added&page=`;
    expect(await read(`${diff}1`)).to.match(
      /70 added 60 changed 0 removed .*61 DRUG 61 .*110 DRUG 110 .*Page 1 of 2/,
    );
    expect(await read(`${diff}2`)).to.match(/Id Name 111 DRUG 111 .*130 DRUG 130 /);
    expect(await read(`${diff}2`)).not.to.include('DRUG 110 ');
    expect(await read(`${diff}9`)).to.include('Page 9 of 2');
    await rollBack(productCollection, { redis, keyPrefix: 'medref', to: data.second, maxNumberWaitMs: 0 });
    expect(await read('/')).to.match(
      /Scheduled imports have been paused since .* medref resume products .*Next import paused/,
    );
  });

  it('shows damage without hiding anything else', async () => {
    const document = await redis.dumpBuffer(keys.live);
    await redis.set(keys.live, 'not a document');
    try {
      const text = await read('/');
      expect(text).to.match(
        /Problems products : DAMAGED\. Readers get 503\. The Redis key medref:\{products\}:live holds .* medref verify products/,
      );
      expect(text).to.match(/products damaged .*drugs damaged .*companies live Live version \d+/);
      const browse = await ask('/browse?collection=products');
      expect(browse.status).to.be.oneOf([200, 503]);
      expect((await ask('/versions?collection=companies')).status).to.equal(200);
      await redis.set(keys.imports, 'not a stream');
      const imports = await ask('/imports');
      expect(imports.status).to.equal(503);
      expect(plainOf(imports.text)).to.include('medref:{products}:imports').and.include('medref verify');
    } finally {
      await redis.restore(keys.live, 0, document as Buffer, 'REPLACE');
      await redis.del(keys.imports);
    }
  });

  it('reports that a version expired while it was viewed', async () => {
    const list = products(30);
    await redis.flushall();
    const options = { redisUrl: server().url, force: true };
    const one = await importRecords(list, productCollection, options);
    const other = await importRecords(products(31), productCollection, options);
    await redis.del(keys.content(one.version as number).records);
    const record = await ask(`/record?id=7&version=${one.version}`);
    expect(record.status).to.equal(503);
    expect(plainOf(record.text)).to.include(`Version ${one.version} of products is incomplete in Redis`);
    expect((await ask(`/record?id=7&version=${other.version}`)).status).to.equal(200);
  });

  it('shows before any import what to run', async () => {
    await redis.flushall();
    expect(await read('/')).to.match(
      /products : No live version: PRODUCTS_URL was never imported\. .*medref import products/,
    );
    expect(await read('/imports?collection=companies')).to.include('medref import companies');
    expect(await read('/keys')).to.include('medref keys create');
    expect(await read('/rejects')).to.include('has read records yet');
    const versions = await ask('/versions?collection=companies');
    expect([versions.status, plainOf(versions.text)]).to.satisfy(
      ([status, text]: [number, string]) =>
        status === 404 && text.includes('No version of companies has been published yet.'),
    );
    const unaware = await startDashboard({ redisUrl: server().url, isImported: false });
    const { body } = await sendWithoutKey(unaware, '/');
    await unaware.stop();
    expect(plainOf(body.toString()), 'without a URL').to.include('No problems');
    await importRecords(companies(2), companyCollection, { redisUrl: server().url });
    await importRecords(products(2), productCollection, { redisUrl: server().url });
    expect(await read('/')).to.include('No problems');
  });

  it('shows a check of upstream that is older than the schedule allows', async () => {
    const checked = (hours: number) =>
      redis.set(keys.checked, new Date(Date.now() - hours * 3_600_000).toISOString());
    await checked(9_999);
    expect(await read('/'), 'no importer has run').to.include('No problems');
    const seenAt = new Date().toISOString();
    await writeHeartbeat(redis, 'medref', {
      ...{ importer: 'process 7 on there', startedAt: seenAt, seenAt, stopped: false, nextRun: seenAt },
      ...{ cron: '0 3 * * *', timezone: 'UTC', collections: ['products'] },
    });
    await checked(24.9);
    expect(await read('/')).to.include('No problems');
    await checked(25.1);
    expect(await read('/')).to.match(
      /check: 1 d 1 h ago; the schedule expects one sooner\. .* medref import products /,
    );
    await checked(0);
    await redis.del('medref:{importers}:heartbeats');
  });

  it('shows the whole history of imports, and keys page by page', async () => {
    for (let n = 0; n < 24; n += 1) {
      const report = { endedAt: new Date().toISOString(), outcome: 'unchanged', durationMs: n, warnings: [] };
      const figures = { read: 0, rejected: 0, added: 0, changed: 0, removed: 0, version: null };
      await redis.xadd(keys.imports, '*', 'report', JSON.stringify({ ...report, ...figures }));
    }
    const took = [...(await read('/imports')).matchAll(/ (\d+) ms /g)].map(([, ms]) => Number(ms));
    expect(took.slice(0, 24)).to.deep.equal(Array.from({ length: 24 }, (_, n) => 23 - n));
    expect(took).to.have.length(25);
    for (let n = 0; n < 101; n += 1)
      await redis.hset(
        'medref:keys',
        `digest ${n}`,
        JSON.stringify({
          id: `${n}`,
          client: `client ${n};`,
          createdAt: new Date(n).toISOString(),
          expiresAt: null,
          rate: null,
        }),
      );
    expect(await read('/keys'))
      .to.match(/101 keys.*client 0; .*client 99; .*Page 1 of 2/)
      .and.not.include('client 100;');
    expect(await read('/keys?page=2'))
      .to.include('client 100;')
      .and.not.include('client 99;');
  });

  it('gives up a page that takes too long', async () => {
    const proxy = await startRedisProxy(server().port, ({ name }) =>
      name === 'XREVRANGE' ? { moment: 'after', act: () => sleep(300) } : undefined,
    );
    const late = await startDashboard({ redisUrl: proxy.url, withinMs: 100 });
    try {
      const [imports, keysPage] = await Promise.all(
        ['/imports', '/nothing'].map((path) => sendWithoutKey(late, path)),
      );
      expect([imports?.status, keysPage?.status]).to.deep.equal([503, 404]);
      expect(plainOf(String(imports?.body))).to.include('The data could not be read in time');
    } finally {
      await late.stop();
      await proxy.close();
    }
  });

  it('says since when Redis has been unavailable, and refreshes until it is back', async () => {
    const proxy = await startRedisProxy(server().port);
    const own = await startDashboard({ redisUrl: proxy.url });
    try {
      await proxy.close();
      while ((await sendWithoutKey(own, '/')).status !== 503) await sleep(20);
      const text = String((await sendWithoutKey(own, '/')).body);
      expect(plainOf(text)).to.match(
        /Redis at 127\.0\.0\.1:6379 has been unavailable since \d\d:\d\d:\d\d UTC\. Readers get 503 until it is back\./,
      );
      expect(text).to.include('http-equiv="refresh" content="5"').and.not.include('Read from Redis');
    } finally {
      await own.stop();
    }
  });

  it('reports within 2 s on every page that Redis is unavailable, and recovers with it', async () => {
    server().pause();
    const start = Date.now();
    try {
      const responses = await Promise.all(
        ['/', '/imports', '/browse', '/keys', '/versions'].map((path) => ask(path)),
      );
      expect(Date.now() - start).to.be.below(3_500);
      for (const { status, headers, text } of responses) {
        expect(status).to.equal(503);
        expect(headers['retry-after']).to.equal('1');
        expect(text).to.include('<h1>503 Service Unavailable</h1>');
      }
    } finally {
      server().resume();
    }
    for (const deadline = Date.now() + 5_000; (await ask('/')).status !== 200; )
      expect(Date.now()).to.be.below(deadline);
  });
});

/** Returns the text of a page, without its tags, with single spaces. */
function plainOf(page: string): string {
  const body = page.slice(page.indexOf('<main'));
  return unescaped(body.replace(/<[^>]*>/g, ' ')).replace(/\s+/g, ' ');
}

function unescaped(text: string): string {
  const marks: Record<string, string> = { lt: '<', gt: '>', quot: '"', amp: '&', '#39': "'" };
  return text.replace(/&(lt|gt|quot|amp|#39);/g, (_, name: string) => marks[name] as string);
}
