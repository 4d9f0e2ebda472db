import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { digestOf } from '../../client/client.ts';
import { sampleProducts } from '../../demo/sample-catalogue.ts';
import { companies as companyCollection } from '../../shared/collections/companies.ts';
import { type Product, products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { createApiKey } from '../../shared/store/api-keys.ts';
import { useApi } from '../support/api.ts';
import { examplesOf } from '../support/examples.ts';
import { importRecords } from '../support/importing.ts';
import { installPackages } from '../support/installed-packages.ts';
import { type CopyingProgram, useCopyingPrograms } from '../support/kept-copies.ts';
import { productKeys } from '../support/keys.ts';
import { read } from '../support/project-files.ts';
import { awayAtFirst, endedInHalf, relaying, type Spoil } from '../support/proxies.ts';
import { companies } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

const sample = [...sampleProducts({ seed: 868_869, count: 260 })];
/** The next version: 201 products have changed, which is more than a page, and one is new. */
const [gone, ...others] = sample as [Product, ...Product[]];
const next = others.map((record, n) => (n < 201 ? { ...record, published: !record.published } : record));
// The digest covers a lone surrogate as it is sent: as an escape.
next.push({ ...gone, product: { id: 9_999, name: 'NEW "10 MG"\n\ud800 TABLET\u007f\u2028' } });

const byId = (records: readonly Product[]) => records.toSorted((a, b) => a.product.id - b.product.id);

type Asked = { readonly origin: string; readonly key?: string };

describe('a program that keeps a copy', function () {
  this.timeout(60_000);
  const redisServer = useRedis();
  const api = useApi(redisServer);
  const startServer = upstreamServers();
  const programs = useCopyingPrograms();
  let redis: Redis;
  let folder: string;
  before(async () => {
    redis = await connectForWriting(redisServer().url);
    await importRecords(companies(3), companyCollection, { redisUrl: redisServer().url });
    folder = await mkdtemp(join(tmpdir(), 'medref-test-copies-'));
    // Provides the package as a consumer has installed it.
    await installPackages(folder);
    for (const { name } of programs) {
      await mkdir(join(folder, name));
      const onPage = examplesOf('docs/CONSUMERS.md').find(({ file }) => file === name);
      const code = onPage?.code ?? read(`examples/${name}`);
      await writeFile(join(folder, name, name), code);
    }
  });
  after(async () => {
    redis.disconnect();
    await rm(folder, { recursive: true, force: true });
  });

  /** Publishes records, and waits until readers see them. */
  const publish = async (records: readonly Product[]): Promise<number> => {
    const options = { redisUrl: redisServer().url, force: true };
    const { outcome, version } = await importRecords(records, productCollection, options);
    expect(outcome).to.equal('published');
    const seen = async () => (await api().get('/products?per-page=1')).headers.get('medref-version');
    while ((await seen()) !== String(version)) await sleep(2);
    return version as number;
  };
  /** Publishes records and loses the changes: a request for them gets 410. */
  const publishAlone = async (records: readonly Product[]): Promise<number> => {
    const version = await publish(records);
    await redis.del(productKeys.changeSet(version));
    return version;
  };

  const spoilt = (spoil: Spoil) => startServer(relaying(() => api().port, spoil));

  for (const program of programs) {
    const tests = () => testsOf(program);
    if (program.missing)
      describe.skip(`${program.name} (left out: there is no ${program.missing} on this machine)`, tests);
    else describe(program.name, tests);
  }

  function testsOf({ name, command, args, settings = () => ({}), copyIn }: CopyingProgram): void {
    const copy = () => copyIn(join(folder, name));
    const start = ({ origin, key = api().key }: Asked): ChildProcessByStdio<null, Readable, Readable> => {
      const { PATH } = process.env;
      const env = { PATH, MEDREF_URL: origin, MEDREF_KEY: key, ...settings() };
      return spawn(command, args, { cwd: join(folder, name), env, stdio: ['ignore', 'pipe', 'pipe'] });
    };
    const run = async (asked: Asked = api()) => {
      const child = start(asked);
      const [stdout, stderr, [code]] = await Promise.all([
        ...[text(child.stdout), text(child.stderr)],
        once(child, 'close'),
      ] as const);
      return { code, stdout, stderr };
    };
    /** Expects that a program made its copy in this way, if the program reports the way. */
    const expectDone = async (
      done: string,
      { version, records }: { version: number; records: Product[] },
    ) => {
      const { code, stdout, stderr } = await run();
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      const says = `version ${version}: ${done}, ${records.length} records\n`;
      const said = name.includes('sqlite') ? (/^products: (.*\n)/.exec(stdout)?.[1] ?? stdout) : stdout;
      expect(said).to.equal(name === 'sync.mjs' ? says.replace(`${done}, `, '') : says);
      await expectCopy(records);
    };
    const expectCopy = async (records: Product[]) => {
      const { records: held, digest } = await copy().read();
      expect(byId(held)).to.deep.equal(byId(records));
      expect(digest).to.equal(digestOf(records).set);
    };

    it('reads the whole list once, then only changes', async () => {
      const first = sample.slice(1);
      await expectDone('whole list', { version: await publish(first), records: first });
      const version = await publish(next);
      await expectDone('202 changes', { version, records: next });
    });

    if (name !== 'sync.mjs')
      it('reports the version of its copy, which the service verifies', async () => {
        const { id, key } = await createApiKey(redis, 'medref', {
          client: name,
          expiresAt: null,
          rate: null,
        });
        await api().refreshKeys();
        expect((await run({ origin: api().origin, key })).code).to.equal(0);
        const known = async () => JSON.parse((await redis.hget('medref:key-use', `${id}:products`)) ?? '{}');
        while ((await known()).verified === undefined) await sleep(20);
        const { headers } = await api().get('/products?per-page=1');
        expect((await known()).verified).to.equal(Number(headers.get('medref-version')));
      });

    it('reads the list again if a record of its copy was altered', async () => {
      await copy().tamper(9_999);
      const { headers } = await api().get('/products?per-page=1');
      await expectDone('whole list', { version: Number(headers.get('medref-version')), records: next });
    });

    it('reads the list again if changes are not kept; killed meanwhile, it keeps its old copy', async () => {
      const version = await publishAlone(sample);
      let hasHalf = false;
      const { origin } = await spoilt((response, { headers, body }) => {
        if (headers['content-type'] !== 'application/x-ndjson') return false;
        response.writeHead(200, headers).write(body.subarray(0, body.length / 2));
        hasHalf = true;
        return true;
      });
      const child = start({ origin });
      while (!hasHalf || !(await copy().isUnderWay())) await sleep(5);
      child.kill('SIGKILL');
      await once(child, 'close');
      await expectCopy(next);
      await expectDone('whole list', { version, records: sample });
    });

    // The client library has its own tests for these cases.
    if (command.includes('python')) {
      it('reports an invalid key', async () => {
        const { code, stderr } = await run({ origin: api().origin, key: 'wrong' });
        expect(code).to.equal(1);
        expect(stderr).to.include('401');
      });

      it('waits while the service is unavailable, and retries', async () => {
        const startedAt = Date.now();
        expect((await run(await spoilt(awayAtFirst()))).code).to.equal(0);
        expect(Date.now() - startedAt).to.be.at.least(1_000);
      });

      it('reads the list again if its version expires during the read', async () => {
        const version = await publish(next);
        const { stdout } = await run(
          await spoilt((response, _answer, { url = '' }) => {
            if (!url.includes(`&version=${version}&page=2`)) return false;
            response.writeHead(410).end();
            return true;
          }),
        );
        expect(stdout).to.include(`products: version ${version}: whole list, 260 records\n`);
      });

      it('fails if the list is truncated, and keeps the copy', async () => {
        await publishAlone(sample);
        const { code, stderr } = await run(await spoilt(endedInHalf));
        expect(code).to.equal(1);
        expect(stderr).to.match(/The copy of products is not version \d+: its digest differs\./);
        await expectCopy(next);
      });

      it('does not follow redirects, which would receive the key', async () => {
        const other = await startServer((response) => void response.end('{}'));
        const { code } = await run(
          await startServer((response) => void response.writeHead(302, { location: other.origin }).end()),
        );
        expect(code).to.equal(1);
        expect(other.requests).to.have.length(0);
      });
    }
  }
});
