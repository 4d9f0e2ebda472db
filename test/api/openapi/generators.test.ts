// Tests the OpenAPI document with the tools of consumers: generated clients compile and read, and validators find no fault.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { freePort } from '../../support/ports.ts';
import { root } from '../../support/project-files.ts';
import { companies, products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

const run = promisify(execFile);
const tools = join(root, 'test/consumer/node_modules');

const withOpenApiFetch = `import createClient from 'openapi-fetch';
import type { paths } from './types.js';
const client = createClient<paths>({ baseUrl: process.env['MEDREF_URL'] as string, headers: { authorization: 'Bearer ' + process.env['MEDREF_KEY'] } });
const { data, error } = await client.GET('/products', { params: { query: { words: 'drug tab', 'per-page': 1 } } });
if (error) throw new Error(error.data.message);
const name: string | undefined = data.data[0]?.product.name;
const one = await client.GET('/products/{id}', { params: { path: { id: 2 } } });
console.log(name, data._meta.totalCount, one.data?.data.published);
`;

const withHeyApi = `import { client } from './hey/client.gen.js';
import { getProduct, listProducts } from './hey/sdk.gen.js';
client.setConfig({ baseUrl: process.env['MEDREF_URL'] as string, auth: () => process.env['MEDREF_KEY'] as string });
const { data } = await listProducts({ query: { words: 'drug tab', 'per-page': 1 }, throwOnError: true });
const name: string | undefined = data.data[0]?.product.name;
const one = await getProduct({ path: { id: 2 }, throwOnError: true });
console.log(name, data._meta.totalCount, one.data.data.published);
`;

const workflow = (document: string) => `arazzo: 1.0.1
info: { title: medref, version: '1' }
sourceDescriptions:
  - { name: medref, type: openapi, url: ${document} }
workflows:
  - workflowId: read
    inputs: { type: object, properties: { authorization: { type: string } } }
    parameters:
      - { name: Authorization, in: header, value: $inputs.authorization }
    steps:
      - stepId: list
        operationId: listProducts
        parameters: [{ name: per-page, in: query, value: 2 }]
        successCriteria: [{ condition: $statusCode == 200 }]
        outputs: { id: $response.body#/data/0/product/id, version: $response.header.Medref-Version }
      - stepId: record
        operationId: getProduct
        parameters: [{ name: id, in: path, value: $steps.list.outputs.id }]
        successCriteria: [{ condition: $statusCode == 200 }]
      - stepId: changes
        operationId: listProductChanges
        parameters: [{ name: since, in: query, value: $steps.list.outputs.version }]
        successCriteria: [{ condition: $statusCode == 200 }]
      - stepId: versions
        operationId: listCompanyVersions
        successCriteria: [{ condition: $statusCode == 200 }]
`;

/** The types that compiled programs may use. */
const types = [
  ...['--lib', 'es2022,dom,dom.iterable', '--types', 'node'],
  ...['--typeRoots', join(root, 'node_modules/@types')],
];

describe('the OpenAPI document under the tools of consumers', function () {
  this.timeout(120_000);
  const redis = useRedis();
  const api = useApi(redis);
  let folder: string;
  let document: string;
  let env: NodeJS.ProcessEnv;
  before(async () => {
    const redisUrl = redis().url;
    await importRecords(products(5), productCollection, { redisUrl });
    await importRecords(companies(2), companyCollection, { redisUrl });
    folder = await mkdtemp(join(tmpdir(), 'medref-test-generators-'));
    document = join(folder, 'openapi.json');
    const its = JSON.parse((await api().get('/openapi.json')).text);
    await writeFile(document, JSON.stringify({ ...its, servers: [{ url: api().origin }] }));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    await symlink(tools, join(folder, 'node_modules'));
    env = {
      ...process.env,
      MEDREF_URL: api().origin,
      MEDREF_KEY: api().key,
      REDOCLY_TELEMETRY: 'off',
      NO_COLOR: '1',
    };
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** Runs a tool. @returns its exit code and output */
  async function tool(name: string, ...args: string[]): Promise<{ code: number; output: string }> {
    try {
      const { stdout, stderr } = await run(join(tools, '.bin', name), args, { cwd: folder, env });
      return { code: 0, output: stdout + stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, output: stdout + stderr };
    }
  }

  /** Compiles a program under strict types, and runs it. @returns its output */
  async function compiled(name: string, text: string): Promise<string> {
    await writeFile(join(folder, `${name}.ts`), text);
    const options = [
      '--strict',
      '--target',
      'es2022',
      '--module',
      'nodenext',
      '--skipLibCheck',
      '--exactOptionalPropertyTypes',
      '--noUncheckedIndexedAccess',
    ];
    const { code, output } = await tool('tsc', ...options, ...types, '--outDir', 'out', `${name}.ts`);
    expect([code, output], name).to.deep.equal([0, '']);
    return (await run(process.execPath, [`out/${name}.js`], { cwd: folder, env })).stdout;
  }

  it('gives openapi-fetch a typed list, which it reads', async () => {
    const { code, output } = await tool('openapi-typescript', document, '-o', join(folder, 'types.ts'));
    expect(code, output).to.equal(0);
    expect(await compiled('fetching', withOpenApiFetch)).to.match(/^DRUG 1 10 MG TABLET .* 5 true\n$/);
  });

  it('gives @hey-api/openapi-ts a typed list, which it reads', async () => {
    const { code, output } = await tool(
      'openapi-ts',
      '-i',
      document,
      '-o',
      join(folder, 'hey'),
      '--no-log-file',
    );
    expect(code, output).to.equal(0);
    const text = withHeyApi.replaceAll('.gen.js', '.gen.ts');
    await writeFile(join(folder, 'hey.ts'), text);
    const options = [
      '--strict',
      '--noEmit',
      '--target',
      'es2022',
      '--module',
      'esnext',
      '--moduleResolution',
      'bundler',
      '--allowImportingTsExtensions',
      '--skipLibCheck',
    ];
    expect(await tool('tsc', ...options, ...types, 'hey.ts')).to.deep.equal({ code: 0, output: '' });
    const bundle = [
      join(root, 'node_modules/.bin/esbuild'),
      ['hey.ts', '--bundle', '--format=esm', '--platform=node', '--outfile=hey.js', '--log-level=error'],
    ] as const;
    await run(bundle[0], [...bundle[1]], { cwd: folder });
    const { stdout } = await run(process.execPath, ['hey.js'], { cwd: folder, env });
    expect(stdout).to.match(/^DRUG 1 10 MG TABLET .* 5 true\n$/);
  });

  it('passes spectral without a warning', async () => {
    await writeFile(join(folder, '.spectral.yaml'), 'extends: ["spectral:oas"]\n');
    const { code, output } = await tool(
      'spectral',
      'lint',
      document,
      '--fail-severity',
      'hint',
      '--ruleset',
      join(folder, '.spectral.yaml'),
    );
    expect(code, output).to.equal(0);
  });

  it('passes redocly respect: the service responds as described', async () => {
    await writeFile(join(folder, 'read.arazzo.yaml'), workflow(document));
    const input = JSON.stringify({ authorization: `Bearer ${api().key}` });
    const { code, output } = await tool('redocly', 'respect', 'read.arazzo.yaml', '--input', input);
    expect(code, output).to.equal(0);
    expect(output).to.match(/Steps: 4 passed, 4 total/);
  });

  describe('through Prism', () => {
    let prism: ChildProcess;
    let origin: string;
    before(async () => {
      const port = await freePort();
      origin = `http://127.0.0.1:${port}`;
      const args = ['proxy', document, api().origin, '--errors', '--port', String(port)];
      prism = spawn(join(tools, '.bin/prism'), args, { cwd: folder, env, stdio: 'ignore' });
      for (const deadline = Date.now() + 30_000; ; await sleep(200)) {
        if (
          await fetch(`${origin}/health/live`).then(
            ({ ok }) => ok,
            () => false,
          )
        )
          return;
        expect(Date.now(), 'Prism did not start').to.be.below(deadline);
      }
    });
    after(() => prism.kill());

    it('every response is as described', async () => {
      const { version } =
        (await api().get('/products/versions')).json<{ data: { version: number }[] }>().data[0] ?? {};
      for (const path of [
        ...[
          '/products',
          '/products?per-page=2&page=2',
          '/products?name=drug',
          '/products?words=drug+tab',
          '/products?ids=1,2',
        ],
        ...[
          '/products/1',
          '/products/77',
          '/products/versions',
          `/products/changes?since=${version}`,
          '/products?page=9',
        ],
        ...[
          '/drugs',
          '/drugs/1',
          '/companies',
          '/companies/1',
          '/health/ready',
          '/health/live',
          '/openapi.json',
        ],
      ]) {
        const headers = { authorization: `Bearer ${api().key}` };
        const direct = await fetch(`${api().origin}${path}`, { headers });
        const response = await fetch(`${origin}${path}`, { headers });
        const text = await response.text();
        expect(response.status, `${path}: ${text}`).to.equal(direct.status);
        expect(JSON.parse(text), path).to.deep.equal(await direct.json());
        expect(response.headers.get('sl-violations'), path).to.equal(null);
      }
    });
  });
});
