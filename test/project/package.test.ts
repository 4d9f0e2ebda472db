import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { companies, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

interface Manifest {
  readonly version: string;
}

interface LockFile {
  readonly packages: Record<string, { readonly dev?: boolean; readonly bin?: Record<string, string> }>;
}

/** The folder in which the build puts the served files of Swagger UI. */
const swagger = 'dist/api/openapi/swagger-ui/';

const readJson = <Shape>(path: string) => JSON.parse(readFileSync(path, 'utf8')) as Shape;
const manifest = readJson<Manifest>(join(root, 'package.json'));

describe('the package', function () {
  this.timeout(120_000);
  const redis = useRedis();
  /** The user's project, and the files of the package in it. */
  let folder = '';
  let installed = '';
  let files: readonly string[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-package-'));
    installed = join(folder, 'node_modules/medref');
    const packed = await inShell(['npm', 'pack', '--json', '--pack-destination', folder], {
      cwd: await freshClone(folder),
      settings: { npm_config_ignore_scripts: 'false' },
    });
    const [{ filename, files: listed }] = JSON.parse(packed) as [
      { filename: string; files: { path: string }[] },
    ];
    files = listed.map(({ path }) => path);
    await copyDependencies(folder);
    await writeFile(join(folder, 'package.json'), '{}');
    await inShell(['npm', 'install', `./${filename}`]);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** Runs a command as a user's shell does: in the user's project, and not as a script of this project. */
  async function inShell(
    [command, ...args]: [command: string, ...args: string[]],
    { cwd = folder, settings = {} }: { cwd?: string; settings?: Record<string, string> } = {},
  ): Promise<string> {
    const npm = { offline: 'true', ignore_scripts: 'true', update_notifier: 'false', cache: `${folder}/npm` };
    const env = {
      ...{ PATH: process.env['PATH'], HOME: folder, LOG_LEVEL: 'warn' },
      ...Object.fromEntries(Object.entries(npm).map(([name, value]) => [`npm_config_${name}`, value])),
      ...settings,
    };
    return (await run(command, args, { cwd, env })).stdout;
  }

  const medref = (args: readonly string[], settings: Record<string, string> = {}) =>
    inShell([join(folder, 'node_modules/.bin/medref'), ...args], { settings });

  it('contains the build, the documents, the examples, and nothing else', () => {
    const ofProject =
      /^dist\/.+\.(js|lua)$|^dist\/client\/[\w-]+\.d\.ts$|^docs\/[\w-]+\.(md|svg)$|^docs\/reports\/[\w-]+\.md$|^docs\/screenshots\/[\w-]+\.png$|^examples\/[\w-]+\.(mjs|py|html)$/;
    const besides = files.filter((path) => !ofProject.test(path) && !path.startsWith(swagger));
    expect(besides).to.have.members([
      ...[
        'package.json',
        'README.md',
        'LICENSE',
        'CHANGELOG.md',
        'CONTRIBUTING.md',
        'shared/store/SCHEMA.md',
      ],
    ]);
    const built = new Set(files.filter((it) => it.startsWith('dist/')).map((it) => it.split('/')[1]));
    expect([...built]).to.have.members(['api', 'bin', 'client', 'config', 'importer', 'shared']);
    const documents = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' });
    const examples = readdirSync(join(root, 'examples'));
    expect(files).to.include.members(examples.map((it) => `examples/${it}`));
    expect(files).to.include.members(documents.filter((it) => it.includes('.')).map((it) => `docs/${it}`));
  });

  it('contains the used files of Swagger UI, with licences, and no others', () => {
    expect(files.filter((it) => it.startsWith(swagger))).to.have.members(
      [
        ...[
          'swagger-ui-bundle.js',
          'swagger-ui-bundle.js.LICENSE.txt',
          'swagger-ui.css',
          'LICENSE',
          'NOTICE',
        ],
      ].map((it) => `${swagger}${it}`),
    );
    expect(existsSync(join(folder, 'node_modules/swagger-ui-dist'))).to.equal(false);
  });

  it('serves the API page and its files', async () => {
    const server = spawn(join(folder, 'node_modules/.bin/medref'), ['serve'], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...{ PATH: process.env['PATH'], REDIS_URL: redis().url, LOG_LEVEL: 'warn' },
        ...{ API_PORT: '0', ADMIN_PORT: '0' },
      },
    });
    try {
      const [said] = (await once(server.stdout, 'data')) as [Buffer];
      const [origin] = /http:\S+/.exec(said.toString()) ?? [];
      const page = await (await fetch(`${origin}/docs`)).text();
      const loaded = [...page.matchAll(/(?:src|href)="(docs\/[^"]+|openapi\.json)"/g)];
      expect(loaded).to.have.length(5);
      for (const [, path] of loaded) expect((await fetch(`${origin}/${path}`)).status, path).to.equal(200);
    } finally {
      server.kill();
      await once(server, 'close');
    }
  });

  it('provides the client library with its types', async () => {
    const program = `import { createClient, gtinOf } from 'medref/client';
      const { products } = createClient({ baseUrl: 'http://127.0.0.1:1', key: 'key' });
      console.log(typeof products.mirror, gtinOf('08699546010011'));`;
    const printed = await inShell(['node', '--input-type=module', '--eval', program]);
    expect(printed).to.equal('function 8699546010011\n');
    const { exports } = readJson<{ exports: Record<string, { types: string }> }>(
      join(installed, 'package.json'),
    );
    expect(existsSync(join(installed, exports['./client']?.types as string))).to.equal(true);
    expect(files.filter((it) => it.startsWith('dist/client/') && it.endsWith('.js'))).to.have.length(1);
  });

  it('contains every Lua script', () => {
    const scripts = ['importer', 'shared'].flatMap((from) =>
      readdirSync(join(root, from), { recursive: true, encoding: 'utf8' })
        .filter((it) => it.endsWith('.lua'))
        .map((it) => `dist/${from}/${it}`),
    );
    expect(scripts).to.not.deep.equal([]);
    expect(files.filter((it) => it.endsWith('.lua'))).to.have.members(scripts);
  });

  it('has no link in README or changelog to a file that it lacks', () => {
    for (const document of ['README.md', 'CHANGELOG.md', 'shared/store/SCHEMA.md']) {
      const text = readFileSync(join(installed, document), 'utf8');
      for (const [, target = ''] of text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
        if (/^https?:/.test(target)) continue;
        expect(existsSync(join(installed, dirname(document), target)), `${document}: ${target}`).to.equal(
          true,
        );
      }
    }
  });

  it('prints its version with npx', async () => {
    expect(await inShell(['npx', 'medref', '--version'])).to.equal(`${manifest.version}\n`);
  });

  it('imports lists from files, and shows the live versions', async () => {
    const lists = { PRODUCTS_URL: products(5), COMPANIES_URL: companies(3) };
    const given: Record<string, string> = { REDIS_URL: redis().url };
    for (const [name, records] of Object.entries(lists)) {
      const file = join(folder, `${name}.json`);
      await writeFile(file, JSON.stringify({ data: records }));
      given[name] = pathToFileURL(file).href;
    }
    const { imports } = JSON.parse(await medref(['import', '--json'], given)) as {
      imports: { collection: string; outcome: string; read: number }[];
    };
    expect(imports.map(({ collection, outcome, read }) => [collection, outcome, read])).to.deep.equal([
      ['products', 'published', 5],
      ['companies', 'published', 3],
    ]);
    const { collections } = JSON.parse(await medref(['status', '--json'], given)) as {
      collections: { collection: string; live: { totalCount: number } | null }[];
    };
    expect(collections.map(({ collection, live }) => [collection, live?.totalCount])).to.deep.equal([
      ['products', 5],
      ['drugs', 5],
      ['companies', 3],
    ]);
  });
});

/** Copies the project as a fresh clone has it, with uncommitted changes. @returns its path */
async function freshClone(target: string): Promise<string> {
  const clone = join(target, 'clone');
  await mkdir(clone);
  const files = 'git ls-files --cached --others --exclude-standard --deduplicate -z';
  const existing = `${files} | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C '${clone}'`;
  await run('bash', ['-c', existing], { cwd: root });
  await symlink(join(root, 'node_modules'), join(clone, 'node_modules'));
  return clone;
}

/**
 * Copies the packages that `npm install` would fetch: all except packages that the lock file marks as development only.
 * npm runs offline and takes them as they are. It would miss a package that is not declared.
 */
async function copyDependencies(target: string): Promise<void> {
  const { packages } = readJson<LockFile>(join(root, 'package-lock.json'));
  const paths = Object.entries(packages).flatMap(([path, { dev, bin }]) =>
    dev || !/^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) || !existsSync(join(root, path))
      ? []
      : [path, ...Object.keys(bin ?? {}).map((name) => `node_modules/.bin/${name}`)],
  );
  // Uses an archive, because Node takes seconds to copy thousands of small files.
  const archive = join(target, 'dependencies.tar');
  await run('tar', ['-cf', archive, '-C', root, ...paths]);
  await run('tar', ['-xf', archive, '-C', target]);
  await rm(archive);
}
