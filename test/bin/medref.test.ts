import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect } from 'chai';
import { readHistory } from '../../shared/import-history.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { aheadOfClock } from '../support/importing.ts';
import { companyKeys, productKeys as keys } from '../support/keys.ts';
import { type BegunCommand, beginMedref as begin, medref as run, startMedref } from '../support/medref.ts';
import { companies, product, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

interface Imports {
  imports: {
    collection: string;
    outcome: string;
    version: number | null;
    reason: string | null;
    read: number;
  }[];
}

describe('the command line', function () {
  this.timeout(60_000);
  const server = useRedis();
  const startUpstream = upstreamServers();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    for (const { next } of [keys, companyKeys]) await redis.set(next, aheadOfClock);
  });

  const medref = (args: string[], settings: Record<string, string> = {}) =>
    run(args, { REDIS_URL: server().url, ...settings });
  const begun: BegunCommand[] = [];
  afterEach(() => Promise.all(begun.splice(0).map((command) => command.stop())));
  const beginMedref = (args: string[], settings: Record<string, string> = {}) => {
    const command = begin(args, { REDIS_URL: server().url, ...settings });
    begun.push(command);
    return command;
  };
  const startProcess = (args: string[], settings: Record<string, string> = {}) =>
    startMedref(args, { REDIS_URL: server().url, ...settings });
  /** Starts an upstream that serves these records. Returns its URL. */
  const serving = async (records: readonly unknown[]) => {
    const upstream = await startUpstream((response) => response.end(JSON.stringify({ data: records })));
    return upstream.url('/list').href;
  };

  describe('exits with 2, one line on stderr and an empty stdout', () => {
    const wrong: Record<string, [args: string[], settings: Record<string, string>, line: RegExp]> = {
      'for an unknown command': [
        ['improt'],
        {},
        /^error: unknown command 'improt' \(Did you mean import\?\)$/,
      ],
      'for an unknown option': [['status', '--jsn'], {}, /unknown option '--jsn'/],
      'for an argument too many': [['status', 'products'], {}, /too many arguments/],
      'for a missing argument': [['rejects'], {}, /missing required argument 'collection'/],
      'for an unknown collection': [
        ['import', 'drugs2'],
        {},
        /^Unknown collection "drugs2"\. Collections: products, drugs, companies\. Did you mean drugs\?$/,
      ],
      'for a collection without a URL': [['import', 'products'], {}, /PRODUCTS_URL is not set/],
      'when there is nothing to import': [['import'], {}, /set PRODUCTS_URL or COMPANIES_URL/],
      'when there is nothing to schedule': [['schedule'], {}, /PRODUCTS_URL/],
      'for a key without a client': [['keys', 'create'], {}, /required option '--client <name>'/],
      'for a client without a name': [['keys', 'create', '--client', ' '], {}, /1 to 200 characters/],
      'for an expiry that is no time': [
        ['keys', 'create', '--client', 'a', '--expires', 'soon'],
        {},
        /ISO 8601/,
      ],
      'for an expiry in the past': [
        ['keys', 'create', '--client', 'a', '--expires', '2020-01-01'],
        {},
        /past/,
      ],
      'for a key of an unknown collection': [
        ['keys', 'create', '--client', 'a', '--collections', 'products,drug'],
        {},
        /Unknown collection "drug"; it accepts products, drugs, companies, separated by commas/,
      ],
      'for a key of no collection': [
        ['keys', 'create', '--client', 'a', '--collections', ''],
        {},
        /Unknown collection ""/,
      ],
      'for an overlap that is no time': [['keys', 'rotate', 'x', '--overlap', '24'], {}, /such as 7d, or 0s/],
      'for a rate that is none': [['keys', 'create', '--client', 'a', '--rate', '5'], {}, /10\/s/],
      'for a bad setting': [
        ['status'],
        { KEEP_VERSIONS: '1' },
        /^KEEP_VERSIONS is "1"; it accepts an integer from 2/,
      ],
      'for two bad settings, in a line each': [
        ['status'],
        { KEEP_VERSIONS: '1', COMPANIES_URL: 'file://data/companies.json' },
        /^COMPANIES_URL is "file:\/\/data\/companies.json"; it accepts [^\n]+\nKEEP_VERSIONS is "1"; /,
      ],
      'for one port for both listeners': [
        ['verify'],
        { API_PORT: '3001', ADMIN_PORT: '3001' },
        /^ADMIN_PORT is 3001, the same as API_PORT; /,
      ],
      'for a bad setting that the command does not need': [
        ['keys', 'list'],
        { IMPORT_CRON: 'daily' },
        /^IMPORT_CRON is "daily"; it accepts five cron fields/,
      ],
    };
    for (const [when, [args, settings, line]] of Object.entries(wrong)) {
      it(when, async () => {
        const { code, stdout, stderr } = await medref(args, settings);
        expect(stderr.trim()).to.match(line);
        expect(stdout).to.equal('');
        expect(code).to.equal(2);
      });
    }
  });

  it('shows its help with 0 on request, and with 2 without a command', async () => {
    const help = await medref(['--help']);
    expect(help).to.deep.include({ code: 0, stderr: '' });
    for (const command of ['serve', 'schedule', 'import', 'status', 'rejects', 'keys']) {
      expect(help.stdout).to.include(command);
    }
    expect((await medref([])).code).to.equal(2);
  });

  it('ends quietly when its reader closes the pipe', async () => {
    const command = startProcess(['--help']);
    command.process.stdout?.destroy();
    const { stderr } = await command.ended;
    expect(stderr).to.equal('');
  });

  for (const args of [['status'], ['rejects', 'products'], ['keys', 'list']]) {
    it(`ends ${args.join(' ')} with 1 and one plain line if Redis is unavailable`, async () => {
      const settings = { REDIS_URL: 'redis://user:p@ss@secret@127.0.0.1:1', PRODUCTS_URL: 'file:///none' };
      const { code, stdout, stderr } = await run(args, settings);
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.match(/^Redis at 127\.0\.0\.1:1 cannot be used: .*\n$/);
    });
  }

  describe('import', () => {
    it('reports every collection as failed if Redis is unavailable', async () => {
      const settings = { REDIS_URL: 'redis://user:p@ss@secret@127.0.0.1:1', PRODUCTS_URL: 'file:///none' };
      const { code, stdout, json } = await run(['import', '--json'], settings);
      expect(code).to.equal(1);
      expect(json<Imports>().imports[0]).to.deep.include({
        collection: 'products',
        outcome: 'failed',
        read: 0,
      });
      expect(stdout)
        .to.include('Redis at 127.0.0.1:1 cannot be used')
        .and.not.to.match(/secret|p@ss/);
    });

    it('prints one JSON document, and the same import again is unchanged', async () => {
      await redis.flushall();
      const settings = {
        PRODUCTS_URL: await serving(products(3)),
        COMPANIES_URL: await serving(companies(2)),
      };
      const first = await medref(['import', '--json'], settings);
      expect(first.stderr).to.equal('');
      expect(first.code).to.equal(0);
      expect(first.json<Imports>().imports.map((it) => Object.keys(it).join(' '))).to.deep.equal(
        Array(2).fill(
          'collection outcome version previousVersion read written rejected added changed removed durationMs reason warnings',
        ),
      );
      const summary = ({ imports }: Imports) => imports.map((it) => [it.collection, it.outcome, it.version]);
      const versions = first.json<Imports>().imports.map(({ version }) => version);
      expect(summary(first.json())).to.deep.equal([
        ['products', 'published', versions[0]],
        ['companies', 'published', versions[1]],
      ]);
      for (const version of versions) expect(String(version)).to.match(/^20\d{12}$/);
      const second = await medref(['import', '--json'], settings);
      expect(second.code).to.equal(0);
      expect(summary(second.json())).to.deep.equal([
        ['products', 'unchanged', versions[0]],
        ['companies', 'unchanged', versions[1]],
      ]);
    });

    it('imports only the named collections', async () => {
      const settings = {
        PRODUCTS_URL: await serving(products(3)),
        COMPANIES_URL: await serving(companies(2)),
      };
      const { imports } = (await medref(['import', 'companies', '--json'], settings)).json<Imports>();
      expect(imports.map((it) => it.collection)).to.deep.equal(['companies']);
    });

    it('exits with 3 if a check refuses, and publishes with --force', async () => {
      await medref(['import'], { PRODUCTS_URL: await serving(products(10)) });
      const settings = { PRODUCTS_URL: await serving(products(5)) };
      const refused = await medref(['import', '--json'], settings);
      expect(refused.code).to.equal(3);
      expect(refused.json<Imports>().imports[0]).to.deep.include({
        outcome: 'refused',
        version: null,
        read: 5,
      });
      expect((await medref(['import', '--dry-run'], settings)).code, 'the import would be refused').to.equal(
        3,
      );
      expect((await medref(['import', '--force'], settings)).code).to.equal(0);
      expect((await medref(['import', '--dry-run'], settings)).code, 'the import would pass').to.equal(0);
    });

    it('sends the token upstream and never shows it', async () => {
      const upstream = await startUpstream((response) => {
        response.statusCode = 403;
        response.end();
      });
      const settings = { PRODUCTS_URL: upstream.url('/p?key=hidden').href, UPSTREAM_TOKEN: 's3cret' };
      const { code, stdout, stderr } = await medref(['import'], { ...settings, LOG_LEVEL: 'trace' });
      expect(code).to.equal(1);
      expect(upstream.requests[0]?.headers.authorization).to.equal('Bearer s3cret');
      expect(stdout + stderr)
        .to.include('403')
        .and.not.to.match(/s3cret|hidden/);
    });

    it('exits with the first of 1, 3, 4, 0 that applies, after importing all others', async () => {
      await medref(['import'], { PRODUCTS_URL: await serving(products(10)) });
      const refused = { PRODUCTS_URL: await serving(products(1)) };
      const nonsense = await startUpstream((response) => response.end('nonsense'));
      expect((await medref(['import'], { ...refused, COMPANIES_URL: nonsense.url().href })).code).to.equal(1);
      await redis.set(companyKeys.lock, '{"holder":"another","since":"now"}');
      const both = { ...refused, COMPANIES_URL: await serving(companies(1)) };
      expect((await medref(['import'], both)).code).to.equal(3);
      expect((await medref(['import'], { COMPANIES_URL: both.COMPANIES_URL })).code).to.equal(4);
      const locked = await medref(['import', '--json'], {
        ...both,
        PRODUCTS_URL: await serving(products(11)),
      });
      expect(locked.code).to.equal(4);
      expect(locked.json<Imports>().imports.map((it) => it.outcome)).to.deep.equal(['published', 'locked']);
    });

    it('ends gracefully on SIGTERM: interrupted, lock released, nothing staged', async () => {
      const upstream = await startUpstream((response) => response.write('['));
      const command = startProcess(['import', '--json'], { PRODUCTS_URL: upstream.url().href });
      while (upstream.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      command.process.kill('SIGTERM');
      const { code, json } = await command.ended;
      expect(code).to.equal(130);
      expect(json<Imports>().imports[0]).to.deep.include({
        outcome: 'interrupted',
        reason: 'Stopped by SIGTERM.',
      });
      expect(await redis.exists(keys.lock, keys.staged, keys.progress)).to.equal(0);
      expect((await readHistory(redis, keys, 1))[0]?.outcome).to.equal('interrupted');
    });

    it('does not start the next collection after SIGTERM, and says so', async () => {
      const upstream = await startUpstream((response, request) => {
        if (request.url === '/companies') response.end(JSON.stringify(companies(1)));
        else response.write('[');
      });
      await redis.flushall();
      const command = beginMedref(['import', 'products', 'companies', '--json'], {
        PRODUCTS_URL: upstream.url('/products').href,
        COMPANIES_URL: upstream.url('/companies').href,
      });
      while (upstream.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      const { code, json } = await command.stop('SIGINT');
      expect(code).to.equal(130);
      expect(json<Imports>().imports.map((it) => [it.collection, it.outcome, it.reason])).to.deep.equal([
        ['products', 'interrupted', 'Stopped by SIGINT.'],
        ['companies', 'interrupted', 'It was stopped before it began.'],
      ]);
      expect(upstream.requests.map(({ url }) => url)).to.deep.equal(['/products']);
      const left = (await redis.keys('medref:{companies}:*')).concat(await redis.keys('*:lock'));
      expect(left, 'no number, no history, no lock').to.deep.equal([]);
    });

    it('ends at once on a second signal, which shells show as 130', async () => {
      let left: Promise<unknown> = Promise.resolve();
      const upstream = await startUpstream((response) => {
        left = once(response, 'close');
        response.write('[');
      });
      const command = startProcess(['import', '--json'], { PRODUCTS_URL: upstream.url().href });
      while (upstream.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      server().pause(); // Redis is paused, so the import cannot clean up.
      try {
        command.process.kill('SIGINT');
        await left; // The process has handled the first signal: two pending signals would count as one.
        await new Promise((resolve) => setTimeout(resolve, 50));
        expect(command.process.exitCode).to.equal(null);
        command.process.kill('SIGINT');
        expect(await command.ended).to.deep.include({ code: null, stdout: '' });
        expect(command.process.signalCode).to.equal('SIGINT');
      } finally {
        server().resume();
      }
    });
  });

  describe('rejects', () => {
    it('lists the rejects of the last import, with their total', async () => {
      const bad = { ...product(2), published: 'yes' };
      await medref(['import'], { PRODUCTS_URL: await serving([product(1), bad]), MAX_REJECT_PERCENT: '50' });
      const { code, json } = await medref(['rejects', 'products', '--json']);
      expect(code).to.equal(0);
      expect(json()).to.deep.equal({
        total: 1,
        rejects: [
          { position: 2, path: '$.published', reason: 'must be a boolean', raw: JSON.stringify(bad) },
        ],
      });
      expect((await medref(['rejects', 'products'])).stdout).to.match(
        /rejected 1 record\.\n {2}1 × \$\.published must be a boolean\n2: \$\.published must be/,
      );
    });

    it('prints totals by path and reason, then ten examples, or all', async () => {
      const bad = Array.from({ length: 30 }, (_, n) =>
        n % 3 === 0
          ? { ...product(n + 2), published: 'yes' }
          : { ...product(n + 2), barcodes: [{ barcode: 'x' }] },
      );
      await medref(['import'], { PRODUCTS_URL: await serving([product(1), ...bad]) });
      const { stdout } = await medref(['rejects', 'products']);
      const [title, most, least, more, ...examples] = stdout
        .trimEnd()
        .replace(/\n {4}/g, ' ')
        .split('\n');
      expect(title).to.match(/^The import of products that ended \d{4}-.* UTC rejected 30 records\.$/);
      expect(most).to.match(/^ {2}20 × \$\.barcodes\[\*\]\.barcode must be .*\(first at position 3\)$/);
      expect(least).to.equal('  10 × $.published must be a boolean (first at position 2)');
      expect(more).to.equal('The first 10; "medref rejects products --all" prints the others:');
      expect(examples).to.have.length(10);
      const { stdout: all } = await medref(['rejects', 'products', '--all']);
      expect(all.match(/^\d+: /gm)).to.have.length(30);
    });
  });

  describe('serve', () => {
    it('serves until SIGTERM, and exits with 0', async () => {
      await medref(['import'], { PRODUCTS_URL: await serving(products(3)) });
      const { key } = (await medref(['keys', 'create', '--client', 'a', '--json'])).json<{ key: string }>();
      const command = beginMedref(['serve', '--json'], {
        API_PORT: '0',
        BASE_URL: 'https://medref.test/v1/',
      });
      const [, address] = await command.line(/^\{"address":"(http:\/\/127\.0\.0\.1:\d+)"\}\n/);
      const response = await fetch(`${address}/products?per-page=2`, {
        headers: { authorization: `Bearer ${key}` },
      });
      const body = (await response.json()) as { data: unknown; _links: { next: { href: string } } };
      expect(body.data).to.deep.equal(products(2));
      expect(body._links.next.href).to.equal('https://medref.test/v1/products?page=2&per-page=2');
      expect((await command.stop()).code).to.equal(0);
    });

    for (const [what, ms, expected] of [
      ['finishes the answers under way when it is asked to stop', 400, [true]],
      // Here the response may also be an error, because Redis kept it waiting for so long.
      ['finishes those, too, that take longer than idle connections stay open', 1_400, [true, false]],
    ] as const)
      it(what, async () => {
        await medref(['import'], { PRODUCTS_URL: await serving(products(3)) });
        const { key } = (await medref(['keys', 'create', '--client', 'a', '--json'])).json<{ key: string }>();
        const command = beginMedref(['serve', '--json'], { API_PORT: '0' });
        const [, address] = await command.line(/"address":"([^"]+)"/);
        const ask = () => fetch(`${address}/products`, { headers: { authorization: `Bearer ${key}` } });
        expect((await ask()).status).to.equal(200);
        server().pause(); // Redis is paused, so that the next response takes a while.
        try {
          const asked = ask();
          await new Promise((resolve) => setTimeout(resolve, 100));
          void command.stop();
          await new Promise((resolve) => setTimeout(resolve, ms));
          server().resume();
          const { success } = (await (await asked).json()) as { success: boolean };
          expect(success).to.be.oneOf([...expected]);
        } finally {
          server().resume();
        }
        expect((await command.ended).code).to.equal(0);
      });

    it('starts without Redis, responds with 503, is live, and ends on SIGTERM', async () => {
      const command = startMedref(['serve', '--json'], { REDIS_URL: 'redis://127.0.0.1:1', API_PORT: '0' });
      const [, address] = await command.line(/"address":"([^"]+)"/);
      expect((await fetch(`${address}/health/live`)).status).to.equal(200);
      const ready = await fetch(`${address}/health/ready`);
      expect(ready.status).to.equal(503);
      const { data } = (await ready.json()) as { data: { message: string } };
      const asked = performance.now();
      command.process.kill('SIGINT');
      expect((await command.ended).code).to.equal(0);
      expect(
        performance.now() - asked,
        'it does not wait the 2 s that a connection may take to close',
      ).to.be.below(1_800);
      expect(data.message, 'any client may ask').to.equal('Not ready: Redis cannot be reached.');
    });

    const refused: [what: string, path: string, prepare: string[], reason: RegExp][] = [
      ['the database of REDIS_URL is not there', '/99', [], /DB index|database/],
      ['Redis wants a password', '', ['requirepass', 'secret'], /password/],
    ];
    for (const [what, path, [setting, value], reason] of refused) {
      it(`serves nothing if ${what}: not ready, with the reason in log and response`, async () => {
        await medref(['import'], { PRODUCTS_URL: await serving(products(3)) });
        if (setting) await redis.config('SET', setting, value as string);
        const url = server().url.replace('://', '://default@');
        const settings = { REDIS_URL: `${url}${path}`, API_PORT: '0', LOG_LEVEL: 'warn' };
        const command = beginMedref(['serve', '--json'], settings);
        try {
          const [, address] = await command.line(/"address":"([^"]+)"/);
          const ready = await fetch(`${address}/health/ready`);
          const { data } = (await ready.json()) as { data: { message: string } };
          expect(ready.status).to.equal(503);
          expect(data.message)
            .to.match(/^Not ready: /)
            .and.to.match(reason)
            .and.not.to.match(/127\.0\.0\.1|secret/);
          const anyKey = { headers: { authorization: `Bearer medref_${'x'.repeat(43)}` } };
          expect((await fetch(`${address}/products`, anyKey)).status).to.equal(503);
        } finally {
          if (setting) await redis.config('SET', setting, '');
        }
        const lines = (await command.stop()).stderr.trim().split('\n');
        const logged = lines.map((line) => JSON.parse(line) as { msg: string; reason: string });
        expect(logged[0]?.msg).to.equal('Redis is unavailable.');
        expect(logged[0]?.reason).to.match(reason);
      });
    }

    it('exits with 1 and a plain line if its port is taken', async () => {
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      const { port } = other.address() as { port: number };
      const { code, stderr } = await medref(['serve'], { API_PORT: String(port), LOG_LEVEL: 'silent' });
      other.close();
      expect(code).to.equal(1);
      expect(stderr).to.match(
        new RegExp(`^The API cannot listen on 127\\.0\\.0\\.1:${port}: .*API_PORT\\.\n$`),
      );
    });
  });

  describe('schedule', () => {
    it('imports collections without a live version at start, waits, and exits with 0 on SIGTERM', async () => {
      const upstream = await startUpstream((response) => response.end(JSON.stringify(products(3))));
      const settings = { PRODUCTS_URL: upstream.url().href, IMPORT_CRON: '0 3 1 1 *', LOG_LEVEL: 'info' };
      for (const requests of [1, 1]) {
        const command = beginMedref(['schedule'], settings);
        await command.line(/^Scheduled: products\. Next import: \d{4}-01-01 03:00 UTC\.\n/);
        while (!(await redis.exists(keys.live)) || (await redis.exists(keys.lock))) {
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        expect((await command.stop()).code).to.equal(0);
        expect(upstream.requests).to.have.length(requests);
      }
    });

    it('logs an import that is skipped because of a pause, and continues', async () => {
      const upstream = await startUpstream((response) => response.end(JSON.stringify(products(3))));
      await redis.set(keys.pause, JSON.stringify({ since: 'then', version: 7 }));
      const command = beginMedref(['schedule'], { PRODUCTS_URL: upstream.url().href, LOG_LEVEL: 'warn' });
      while (!(await redis.exists(keys.imports))) await new Promise((resolve) => setTimeout(resolve, 20));
      const { code, stderr } = await command.stop();
      expect(code).to.equal(0);
      expect(upstream.requests).to.deep.equal([]);
      const logged = JSON.parse(stderr) as { level: number; msg: string; reason: string };
      expect(logged).to.deep.include({ level: 40, msg: 'Import of products: paused.', outcome: 'paused' });
      expect(logged.reason).to.match(/rollback/);
    });
  });
});
