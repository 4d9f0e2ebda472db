import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { Company, Drug, Product } from '../../client/client.ts';
import { startSampleUpstream } from '../../demo/sample-upstream.ts';
import { importedCollections } from '../../shared/collections/collections.ts';
import type { Company as ServedCompany } from '../../shared/collections/companies.ts';
import type { Drug as ServedDrug, Product as ServedProduct } from '../../shared/collections/products.ts';
import { useApi } from '../support/api.ts';
import { useBrowser } from '../support/browser.ts';
import { importFrom } from '../support/importing.ts';
import { relaying } from '../support/proxies.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const built = join(root, 'dist/client/client.js');

/** True only if both types are the same. Otherwise such a program does not compile. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const recordsAreThoseThatAreServed: [
  Same<Product, ServedProduct>,
  Same<Drug, ServedDrug>,
  Same<Company, ServedCompany>,
] = [true, true, true];

/** An example of a doc comment, with the lines that it says it prints. */
interface DocExample {
  readonly file: string;
  readonly code: string;
  readonly printed: readonly string[];
}

const examples: DocExample[] = readdirSync(join(root, 'client'))
  .filter((file) => file.endsWith('.ts'))
  .flatMap((file) => {
    const comments = readFileSync(join(root, 'client', file), 'utf8').match(/\/\*\*[\s\S]*?\*\//g) ?? [];
    return comments.flatMap((comment) => {
      const [, example] = /@example\n([\s\S]*)$/.exec(comment) ?? [];
      if (example === undefined) return [];
      const code = example.replace(/^ *\*\/?( |$)/gm, '');
      const printed = [...code.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, it = '']) => it);
      return [{ file, code, printed }];
    });
  });

describe('the built client library', function () {
  this.timeout(60_000);
  const redis = useRedis();
  before(async () => {
    const upstream = await startSampleUpstream({ seed: 868_869, products: 5_000, companies: 3 });
    for (const collection of importedCollections)
      await importFrom(new URL(`/${collection.name}`, upstream.productsUrl), collection, {
        redisUrl: redis().url,
      });
    await upstream.stop();
  });
  const api = useApi(redis);
  const startServer = upstreamServers();

  it('has the served records as types', () => {
    expect(recordsAreThoseThatAreServed).to.deep.equal([true, true, true]);
  });

  it('is one readable file of less than 12 kB with gzip, without imports', () => {
    const code = readFileSync(built);
    expect(gzipSync(code, { level: 9 }).length).to.be.below(12_000);
    expect(code.toString()).not.to.match(/\bimport\b|\brequire\b/);
  });

  it('runs the examples of its doc comments, which type-check', async () => {
    expect(examples.length).to.be.at.least(10);
    const folder = mkdtempSync(join(tmpdir(), 'medref-test-client-'));
    try {
      const functions = examples.map(({ code }, n) => `async () => {\n// ${n}\n${code}\n}`);
      // A consumer's program: strict, with the types of the platform.
      const program = `import { createClient, digestOf, gtinOf, hasCheckDigit, SetDigest, type Product } from 'medref/client';
        const baseUrl = process.env['MEDREF_URL'] as string;
        const key = process.env['MEDREF_KEY'] as string;
        const client = createClient({ baseUrl, key });
        export const used = [digestOf, gtinOf, hasCheckDigit, SetDigest, new Map<number, Product>()];
        for (const example of [${functions.join(',')}]) { await example(); console.log('---'); }`;
      writeFileSync(join(folder, 'examples.mts'), program);
      writeFileSync(join(folder, 'package.json'), '{}');
      symlinkSync(join(root, 'node_modules'), join(folder, 'types'));
      const compilerOptions = {
        ...{ target: 'es2022', lib: ['es2023'], module: 'nodenext', strict: true, skipLibCheck: false },
        ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noUnusedLocals: false },
        ...{ types: ['node'], typeRoots: ['./types/@types'], outDir: 'out' },
        paths: { 'medref/client': [join(root, 'dist/client/client.d.ts')] },
      };
      writeFileSync(
        join(folder, 'tsconfig.json'),
        JSON.stringify({ compilerOptions, files: ['examples.mts'] }),
      );
      const tsc = await run(join(root, 'node_modules/.bin/tsc'), ['-p', folder]).catch((error) => error);
      expect(tsc.stdout).to.equal('');
      const compiled = join(folder, 'out/examples.mjs');
      writeFileSync(
        compiled,
        readFileSync(compiled, 'utf8').replace("'medref/client'", JSON.stringify(built)),
      );
      const env = { ...process.env, MEDREF_URL: api().origin, MEDREF_KEY: api().key };
      // A remaining timer would keep the program from ending.
      const { stdout } = await run(process.execPath, [compiled], { env, timeout: 20_000 });
      const printed = stdout.split('---\n').slice(0, -1);
      const reported = examples.map((it) => it.printed);
      expect(
        printed.map((text, n) => (reported[n]?.length === 0 ? [] : text.split('\n').slice(0, -1))),
      ).to.deep.equal(reported);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  describe('in a browser', () => {
    const browser = useBrowser();

    it('reads, verifies and follows, with its own SHA-256', async () => {
      const relay = relaying(() => api().port);
      // The page has the same origin, because only the service decides if other origins may send requests.
      const { origin } = await startServer((response, request, nth) => {
        if (request.url === '/page') response.setHeader('content-type', 'text/html').end('<!doctype html>');
        else if (request.url === '/client.js')
          response.setHeader('content-type', 'text/javascript').end(readFileSync(built));
        else relay(response, request, nth);
      });
      const page = await browser().newPage();
      try {
        await page.goto(`${origin}/page`);
        // Passes text, because the compiler of these tests names functions with a helper that pages do not have.
        const found = await page.evaluate(`(async () => {
          const { createClient, digestOf, gtinOf, MedrefError } = await import('/client.js');
          const { products, drugs } = createClient({ baseUrl: location.origin, key: '${api().key}' });
          const all = [];
          const list = products.all();
          for await (const record of list) all.push(record);
          const proven = digestOf(all).list === list.digest.list;
          const mirror = drugs.mirror();
          const { value: step } = await mirror.next();
          await mirror.return();
          const again = [await products.get(1), await products.get(1)].map(({ product }) => product.name);
          const refused = createClient({ baseUrl: location.origin, key: 'wrong' }).products.get(1);
          const error = await refused.catch((thrown) => thrown);
          const foreign = createClient({ baseUrl: '${api().origin}', key: '${api().key}', retries: 0 });
          const blocked = await foreign.products.get(1).catch((thrown) => thrown.message);
          return { blocked,
            proven, count: all.length, again, gtin: gtinOf('08687873012778'),
            mirrored: digestOf(step.records).set === step.digest.set,
            error: error instanceof MedrefError && error.status,
          };
        })()`);
        const name = 'NÖGEMRÜN %0,05 KREM, 50 G';
        expect(found).to.deep.equal({
          ...{ proven: true, count: 5_000, again: [name, name], gtin: '8687873012778' },
          ...{ mirrored: true, error: 401 },
          blocked: `${api().origin}/products/1 could not be requested: Failed to fetch. Check that the service runs at ${api().origin}, and that this machine reaches it. Check that CORS_ORIGINS of the service names ${origin}.`,
        });
      } finally {
        await page.close();
      }
    });
  });
});
