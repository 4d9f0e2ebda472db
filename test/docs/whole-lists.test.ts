import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { sampleProducts } from '../../demo/sample-catalogue.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { useApi } from '../support/api.ts';
import { type Example, examplesOf, missingProgram, runExample } from '../support/examples.ts';
import { importRecords } from '../support/importing.ts';
import { cutInHalf, endedInHalf, relaying } from '../support/proxies.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

const page = 'docs/CONSUMERS.md';
const examples = examplesOf(page);
const sample = [...sampleProducts({ seed: 868_869, count: 260 })];

/** Defines tests of an example that can run here. Otherwise, skips them and says why. */
function describeExample(title: string, { example, tests }: { example: Example; tests: () => void }): void {
  const absent = missingProgram(example);
  if (absent) describe.skip(`${title} (left out: there is no ${absent} on this machine)`, tests);
  else describe(title, tests);
}

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
        it('get each record of one version', async () => {
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
          it(`produce no file if it ${what}, and fail`, async () => {
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
