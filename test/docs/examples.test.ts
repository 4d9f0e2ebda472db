import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { startSampleUpstream } from '../../demo/sample-upstream.ts';
import { importedCollections } from '../../shared/collections/collections.ts';
import { useApi } from '../support/api.ts';
import {
  examplesOf,
  isAsShown,
  missingProgram,
  readPage,
  runExample,
  strayCommands,
} from '../support/examples.ts';
import { importFrom } from '../support/importing.ts';
import { installPackages } from '../support/installed-packages.ts';
import { useRedis } from '../support/redis-server.ts';

/** The data that `npm run demo` serves: the pages show results from it. */
const demo = { seed: 868_869, products: 5_000, companies: 300 };

describe('the examples', function () {
  this.timeout(60_000);
  const redis = useRedis();
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-test-examples-'));
    // Provides the package as a consumer has installed it.
    await installPackages(folder);
    const upstream = await startSampleUpstream(demo);
    for (const collection of importedCollections) {
      const url = new URL(`/${collection.name}`, upstream.productsUrl);
      const { outcome } = await importFrom(url, collection, { redisUrl: redis().url });
      expect(outcome).to.equal('published');
    }
    await upstream.stop();
  });
  after(() => rm(folder, { recursive: true, force: true }));
  const api = useApi(redis);

  for (const page of ['README.md', 'docs/CONSUMERS.md']) {
    describe(`of ${page}`, () => {
      for (const example of examplesOf(page)) {
        const title = `print what the page shows: ${example.heading}, ${example.language}, line ${example.line}`;
        const absent = missingProgram(example);
        if (absent) {
          it.skip(`${title} (left out: there is no ${absent} on this machine)`);
          continue;
        }
        it(title, async () => {
          const { code, stdout, stderr } = await runExample(example, { folder, service: api() });
          expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
          if (!isAsShown(stdout, example.output))
            expect(stdout, 'the output differs from the page').to.equal(example.output.text);
        });
      }

      it('include every runnable example of the page', () => {
        expect(strayCommands(readPage(page))).to.deep.equal([]);
      });
    });
  }
});
