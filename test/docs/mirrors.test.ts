import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { sampleProducts } from '../../demo/sample-catalogue.ts';
import { type Product, products as productCollection } from '../../shared/collections/product.ts';
import { useApi } from '../support/api.ts';
import { type ExampleResult, missingProgram, runExample } from '../support/example-runner.ts';
import { aheadOfClock, importRecords } from '../support/importing.ts';
import { productKeys } from '../support/keys.ts';
import { type Example, examplesOf } from '../support/page-examples.ts';
import { useRedis } from '../support/redis-server.ts';
import { awayAtFirst, cutInHalf, endedInHalf, relaying, type Spoil } from '../support/relay.ts';
import { useService } from '../support/service.ts';
import { upstreamServers } from '../support/upstream-server.ts';

const page = 'docs/CONSUMERS.md';
const examples = examplesOf(page);
const sample = [...sampleProducts({ seed: 868_869, count: 260 })];

/** The next version: 201 products have changed, which is more than a page; one has gone, and one has come. */
const [gone, ...rest] = sample as [Product, ...Product[]];
const next = rest.map((record, n) => (n < 201 ? { ...record, published: !record.published } : record));
const come = { ...gone, product: { id: 9_999, name: 'NEW 10 MG TABLET' } };
next.push(come);

/** What a mirror holds, by the file that its program keeps. */
const mirrors: Readonly<Record<string, (folder: string) => unknown[]>> = {
  'sync.mjs': (folder) =>
    Object.values(JSON.parse(readFileSync(join(folder, 'products.json'), 'utf8')).records),
  'sync.py': (folder) => {
    const read = `import sqlite3
rows = sqlite3.connect('products.db').execute('SELECT record FROM product')
print('[' + ','.join(record for (record,) in rows) + ']')`;
    return JSON.parse(execFileSync('python3', ['-c', read], { cwd: folder, encoding: 'utf8' }));
  },
};

const byId = (records: readonly unknown[]) =>
  (records as Product[]).toSorted((a, b) => a.product.id - b.product.id);

/** Defines tests of an example that can be run here; of one that cannot, says why. */
function describeExample(title: string, { example, tests }: { example: Example; tests: () => void }): void {
  const absent = missingProgram(example);
  if (absent) describe.skip(`${title} (left out: there is no ${absent} on this machine)`, tests);
  else describe(title, tests);
}

describe(`the programs of ${page} that keep a copy`, function () {
  this.timeout(60_000);
  const service = useService();
  const startServer = upstreamServers();
  let folder: string;
  let firstCopies: string;
  let live: number;
  before(async () => {
    firstCopies = await mkdtemp(join(tmpdir(), 'medref-test-copies-'));
  });
  after(() => rm(firstCopies, { recursive: true, force: true }));
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-test-mirror-'));
    await service.redis().set(productKeys.next, aheadOfClock);
    live = await service.publish(sample);
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const run = (example: Example) => runExample(example, { folder, service: service.api() });
  /** Runs an example against the API behind something that spoils answers. */
  const runSpoilt = async (example: Example, spoil: Spoil) => {
    const { origin } = await startServer(relaying(() => service.api().port, spoil));
    return runExample(example, { folder, service: { origin, key: service.api().key } });
  };
  const expectSuccess = ({ code, stdout, stderr }: ExampleResult, printed: string) =>
    expect({ code, stdout, stderr }).to.deep.equal({ code: 0, stdout: `${printed}\n`, stderr: '' });

  /** Lets a program have what its first run keeps; that is the same in each test, since the version's number is. */
  const copyFirst = async (example: Example) => {
    const kept = join(firstCopies, example.file as string);
    if (existsSync(kept)) return cp(kept, folder, { recursive: true });
    expectSuccess(await run(example), `version ${live}: whole list, 260 records`);
    await cp(folder, kept, { recursive: true });
  };

  for (const [name, recordsIn] of Object.entries(mirrors)) {
    const example = examples.find(({ file }) => file === name) as Example;
    describeExample(name, {
      example,
      tests() {
        it('reads the whole list once, then the changes of each publication, and is the same as the list', async () => {
          const first = await service.publish(sample.slice(1));
          expectSuccess(await run(example), `version ${first}: whole list, 259 records`);
          const second = await service.publish(next);
          expectSuccess(await run(example), `version ${second}: 202 changes, 260 records`);
          expect(byId(recordsIn(folder))).to.deep.equal(byId(next));
          const third = await service.goBackTo(first);
          expectSuccess(await run(example), `version ${third}: 202 changes, 259 records`);
          expect(byId(recordsIn(folder))).to.deep.equal(byId(sample.slice(1)));
          expectSuccess(await run(example), `version ${third}: 0 changes, 259 records`);
        });

        it('reads the whole list again where the changes since its version are not kept', async () => {
          await copyFirst(example);
          const version = await service.publish(next);
          await service.redis().del(productKeys.changeSet(version));
          expectSuccess(await run(example), `version ${version}: whole list, 260 records`);
          expect(byId(recordsIn(folder))).to.deep.equal(byId(next));
        });

        it('reads the whole list again where a version is let go while its changes are read', async () => {
          await copyFirst(example);
          const version = await service.publish(next);
          const result = await runSpoilt(example, (response, _answer, { url = '' }) => {
            if (!url.includes('page=2')) return false;
            response.writeHead(410).end();
            return true;
          });
          expectSuccess(result, `version ${version}: whole list, 260 records`);
          expect(byId(recordsIn(folder))).to.deep.equal(byId(next));
        });

        for (const [what, spoil] of [
          ['is cut', cutInHalf],
          ['ends too early', endedInHalf],
        ] as const) {
          it(`fails where the whole list ${what}, and keeps what it had`, async () => {
            expect((await runSpoilt(example, spoil)).code).to.equal(1);
            expectSuccess(await run(example), `version ${live}: whole list, 260 records`);
            const version = await service.publish(next);
            await service.redis().del(productKeys.changeSet(version));
            const { code, stdout, stderr } = await runSpoilt(example, spoil);
            expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
            expect(stderr).not.to.equal('');
            expect(byId(recordsIn(folder))).to.deep.equal(byId(sample));
          });
        }

        it('waits where the service is away, and asks again', async () => {
          const startedAt = Date.now();
          const result = await runSpoilt(example, awayAtFirst());
          expectSuccess(result, `version ${live}: whole list, 260 records`);
          expect(Date.now() - startedAt).to.be.at.least(1_000);
        });

        it('says what the service says where the key is not valid, and keeps what it had', async () => {
          await copyFirst(example);
          const { origin } = service.api();
          const { code, stderr } = await runExample(example, { folder, service: { origin, key: 'wrong' } });
          expect(code).to.equal(1);
          expect(stderr).to.include('401');
          expect(byId(recordsIn(folder))).to.deep.equal(byId(sample));
        });

        it('does not send its key to another origin, whatever a link says', async () => {
          await copyFirst(example);
          const other = await startServer((response) => response.end('{}'));
          await service.publish(next);
          const { code, stderr } = await runSpoilt(example, (response, _answer, { url = '' }) => {
            if (!url.includes('/changes')) return false;
            const _links = { next: { href: `${other.origin}/products/changes` } };
            response.writeHead(200, { 'medref-version': '9' }).end(JSON.stringify({ data: [], _links }));
            return true;
          });
          expect(code).to.equal(1);
          expect(stderr).to.include(`${other.origin}/products/changes is not below`);
          expect(other.requests).to.have.length(0);
        });
      },
    });
  }
});

describe(`the programs of ${page} that read a whole list`, function () {
  this.timeout(60_000);
  const redis = useRedis();
  const api = useApi(redis);
  const startServer = upstreamServers();
  let folder: string;
  let live: number | null;
  before(async () => {
    ({ version: live } = await importRecords(sample, productCollection, { redisUrl: redis().url }));
    while ((await api().get('/products')).status !== 200);
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-test-list-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  for (const example of examples.filter(({ heading }) => heading === 'The whole list')) {
    describeExample(`the whole list in ${example.language}`, {
      example,
      tests() {
        it('has each record of one version', async () => {
          const { code, stdout } = await runExample(example, { folder, service: api() });
          expect(code).to.equal(0);
          expect(stdout).to.match(new RegExp(`^version ${live}: 260 records`));
          if (example.language === 'python') return;
          const lines = readFileSync(join(folder, 'products.ndjson'), 'utf8').split('\n');
          expect(lines).to.deep.equal([...sample.map((record) => JSON.stringify(record)), '']);
        });

        for (const [what, spoil] of [
          ['is cut', cutInHalf],
          ['ends too early', endedInHalf],
        ] as const) {
          it(`is not there where it ${what}, and the program fails`, async () => {
            const { origin } = await startServer(relaying(() => api().port, spoil));
            const { code, stdout } = await runExample(example, {
              folder,
              service: { origin, key: api().key },
            });
            expect(code).to.be.above(0);
            expect(stdout).to.equal('');
            expect(existsSync(join(folder, 'products.ndjson'))).to.equal(false);
          });
        }
      },
    });
  }
});
