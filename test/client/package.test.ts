// Tests the package medref-client as a consumer gets it: packed, installed in an empty project, and compiled by old and new TypeScript.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { products as productCollection } from '../../shared/collections/products.ts';
import { useApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { read, root } from '../support/project-files.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';

const run = promisify(execFile);
const tools = join(root, 'test/consumer/node_modules');

/** A program of a consumer. */
const program = `import { createClient, digestOf, gtinOf, MedrefError, SetDigest, type MirrorStep, type Product } from 'medref-client';
import { fetch } from 'undici';
export async function main(): Promise<void> {
  const client = createClient({ baseUrl: new URL('https://medref.example'), key: async () => 'key', fetch, timeout: 1_000, retries: 0 });
  const product: Product | null = await client.products.get(1);
  const name: string | undefined = product?.product.name;
  for await (const { product: { id } } of client.products.search({ words: 'a b', drug: 3 })) { const number: number = id; void number; }
  for await (const step of client.drugs.mirror()) { const its: MirrorStep<{ drug: { id: number; name: string } }> = step; void its; break; }
  // @ts-expect-error companies have no barcode
  client.companies.search({ barcode: '8690000000001' });
  // @ts-expect-error a criterion must have a value
  client.products.search({ barcode: undefined });
  const error = new MedrefError(404, 'Not Found', 'No record.');
  const facts: [number, string, number | null, string | null] = [error.status, error.reason, error.retryAfter, error.requestId];
  void [name, facts, digestOf([]), gtinOf('1'), new SetDigest()];
}
`;

describe('the package medref-client', function () {
  this.timeout(120_000);
  const redis = useRedis();
  const api = useApi(redis);
  let folder: string;
  let installed: string;
  before(async () => {
    await importRecords(products(3), productCollection, { redisUrl: redis().url });
    folder = await mkdtemp(join(tmpdir(), 'medref-test-package-'));
    installed = join(folder, 'node_modules/medref-client');
    // The build of the tests is packed: prepack would build it again, under the feet of other tests.
    const copy = join(folder, 'client');
    await mkdir(copy);
    for (const file of ['package.json', 'README.md'])
      await writeFile(join(copy, file), read(`client/${file}`));
    await run('cp', ['-R', join(root, 'dist/client'), join(copy, 'dist')]);
    await run('cp', ['-R', join(root, 'examples'), join(copy, 'examples')]);
    const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', copy], { cwd: folder });
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    await run('npm', ['install', '--offline', '--no-audit', join(folder, JSON.parse(stdout)[0].filename)], {
      cwd: folder,
    });
    await symlink(join(tools, 'undici'), join(folder, 'node_modules/undici'));
    await symlink(join(root, 'node_modules/@types'), join(folder, 'node_modules/@types'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it('has the build, its types and a page, and no dependencies', async () => {
    const { version, dependencies, scripts } = JSON.parse(
      await readFile(join(installed, 'package.json'), 'utf8'),
    );
    expect(version).to.equal(JSON.parse(read('package.json')).version);
    expect(dependencies).to.equal(undefined);
    expect(scripts.prepack).to.include('build:client');
    expect(await readdir(installed)).to.have.members(['README.md', 'dist', 'examples', 'package.json']);
    expect(await readdir(join(installed, 'examples'))).to.deep.equal(await readdir(join(root, 'examples')));
    const files = await readdir(join(installed, 'dist'));
    expect(files.filter((it) => !it.endsWith('.d.ts'))).to.deep.equal(['client.js']);
    expect(await readFile(join(installed, 'dist/client.js'), 'utf8'), 'readable').to.match(
      /\n {2}async page\(options/,
    );
  });

  for (const [compiler, module, resolution] of [
    ['typescript-4.9', 'node16', 'node16'],
    ['typescript-4.9', 'es2022', 'node'],
    ['typescript', 'nodenext', 'nodenext'],
    ['typescript', 'esnext', 'bundler'],
  ] as const) {
    it(`compiles under ${compiler} with strict types and the resolution ${resolution}`, async () => {
      // Undici's own types need a newer TypeScript.
      const isOld = compiler === 'typescript-4.9';
      const text = isOld ? program.replace("import { fetch } from 'undici';", '') : program;
      await writeFile(join(folder, 'program.ts'), text);
      const options = [
        '--noEmit',
        '--strict',
        '--exactOptionalPropertyTypes',
        '--target',
        'es2022',
        '--module',
        module,
        '--moduleResolution',
        resolution,
      ];
      const types = isOld
        ? ['--lib', 'es2022,dom', '--typeRoots', 'none']
        : ['--types', 'node', '--skipLibCheck', '--exactOptionalPropertyTypes'];
      const tsc = join(tools, compiler, 'bin/tsc');
      const compiled = await run(process.execPath, [tsc, ...options, ...types, 'program.ts'], {
        cwd: folder,
      }).catch((error: { stdout: string }) => error);
      expect(compiled.stdout).to.equal('');
    });
  }

  it('reads a record from CommonJS', async () => {
    const env = { ...process.env, MEDREF_URL: api().origin, MEDREF_KEY: api().key };
    const text = `import('medref-client').then(async ({ createClient }) => {
      const { products } = createClient({ baseUrl: process.env.MEDREF_URL, key: process.env.MEDREF_KEY });
      console.log((await products.get(2)).product.id);
    });`;
    await writeFile(join(folder, 'program.cjs'), text);
    expect((await run(process.execPath, ['program.cjs'], { cwd: folder, env })).stdout).to.equal('2\n');
  });

  it('describes every exported type and each of its members', async () => {
    const missing: string[] = [];
    for (const file of ['client', 'lists', 'mirror', 'medref-error', 'digests']) {
      const lines = (await readFile(join(installed, `dist/${file}.d.ts`), 'utf8')).split('\n');
      for (const [n, line] of lines.entries()) {
        const isMember = /^ {4,}(?:readonly )?\w+\??[:(]/.test(line) && !line.includes('constructor');
        const isExport = /^export (?:declare )?(?:interface|type|class|function) \w/.test(line);
        if ((isMember || isExport) && !/\*\/\s*$/.test(lines[n - 1] ?? ''))
          missing.push(`${file}: ${line.trim()}`);
      }
    }
    expect(missing).to.deep.equal([]);
  });
});
