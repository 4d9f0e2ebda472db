import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { exitCodes } from '../bin/context.ts';
import { settingDefinitions } from '../config/definitions.ts';
import { sampleProducts } from '../demo/sample-catalogue.ts';
import { checks } from '../importer/checks.ts';
import { servedCollections } from '../shared/collections/collections.ts';
import { products } from '../shared/collections/products.ts';
import {
  allContentKeys,
  apiKeyKeys,
  collectionKeys,
  heartbeatsKey,
  type PartKeys,
  rateKey,
} from '../shared/store/keys.ts';
import { beginMedref, medref } from './support/medref.ts';
import { openApi } from './support/openapi.ts';
import { useRedis } from './support/redis-server.ts';
import { closedPort } from './support/upstream-server.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const readme = read('README.md');
const configuration = read('docs/CONFIGURATION.md');
const runbook = read('docs/RUNBOOK.md');
const documents = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'))
    .filter((it) => it.includes('.'))
    .map((it) => `docs/${it}`),
  'shared/store/SCHEMA.md',
];

/** Returns the cells of the tables under a heading, row by row. */
function table(text: string, heading: string): string[][] {
  const section = text.split(new RegExp(`^#+ ${heading}$`, 'm'))[1]?.split(/^#+ /m)[0] ?? '';
  return section
    .split('\n')
    .filter((line) => /^\| /.test(line))
    .map((line) => line.slice(2, -2).split(' | '));
}

/** Returns the keys that belong to version 7 alone. */
function partKeys({ content, changeSet }: PartKeys): string[] {
  return [...allContentKeys(content(7)), changeSet(7)];
}

const codeIn = (cell = '') => /`([^`]+)`/.exec(cell)?.[1] ?? '';

describe('the documentation', () => {
  const redis = useRedis();

  it('lists exactly the settings, with default and meaning', () => {
    const rows = table(configuration, 'Settings').slice(1);
    expect(rows).to.deep.equal(
      settingDefinitions.map(({ name, default: value, help }) => [
        ...[`\`${name}\``, value === undefined ? 'none' : `\`${value}\``, help],
      ]),
    );
  });

  it('lists exactly the commands, with arguments and options', async () => {
    const documented = table(configuration, 'Commands')
      .map(([cell]) => codeIn(cell))
      .filter((it) => it.startsWith('medref '));
    const offered: string[] = [];
    for (const path of [
      ...(await subcommands([])),
      ...(await subcommands(['keys'])).map((it) => `keys ${it}`),
    ]) {
      if (path === 'keys') continue;
      offered.push(usageOf(path, await help(path.split(' '))));
    }
    expect(documented.sort()).to.deep.equal(offered.sort());
  });

  it('lists exactly the exit codes', () => {
    const rows = table(configuration, 'Commands').filter(([code]) => /^\d+$/.test(code ?? ''));
    expect(rows.map(([code]) => Number(code))).to.deep.equal(Object.values(exitCodes));
  });

  it('lists exactly the routes', () => {
    const paths = [...Object.keys(openApi.paths), '/', '/docs', '/docs/{file}'].sort();
    const documented = table(readme, 'Routes').map(([cell]) => codeIn(cell));
    expect(documented.filter(Boolean).sort()).to.deep.equal(paths);

    const forConsumers = table(read('docs/API.md'), 'Routes')
      .map(([cell]) => codeIn(cell))
      .filter(Boolean)
      .flatMap((path) =>
        servedCollections.map(({ collection }) => path.replace('{collection}', collection.name)),
      );
    expect([...new Set(forConsumers)].sort()).to.deep.equal(paths);
  });

  it('lists exactly the medref metrics', async () => {
    const adminPort = await closedPort();
    const settings = { REDIS_URL: redis().url, API_PORT: '0', ADMIN_PORT: String(adminPort) };
    const serve = beginMedref(['serve', '--json'], settings);
    await serve.line(/"address"/);
    const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
    await serve.stop();
    const own = [...metrics.matchAll(/^# TYPE (medref_\w+)/gm)].map(([, name]) => name);
    const documented = table(runbook, 'Metrics').map(([cell]) => codeIn(cell));
    expect(documented.filter(Boolean).sort()).to.deep.equal(own.sort());
  });

  it('lists exactly the Redis keys', () => {
    const documented = table(read('shared/store/SCHEMA.md'), 'The Redis schema')
      .map(([cell]) => codeIn(cell))
      .filter(Boolean);
    const { content, changeSet, derived, parts, ...keys } = collectionKeys('medref', products);
    const built = [
      ...Object.values(keys),
      ...partKeys({ content, changeSet }),
      // One row for all keys of derived collections, which end like the keys of the collection itself.
      'medref:{products}:drugs:7:*',
      ...Object.values(apiKeyKeys('medref')),
      rateKey('medref', '077e2b2b83d5'),
      heartbeatsKey('medref'),
    ];
    const endings = (part: PartKeys) => partKeys(part).map((key) => key.split(':7:')[1]);
    for (const part of parts) expect(endings({ content, changeSet })).to.include.members(endings(part));
    expect(partKeys(derived('drugs')).every((key) => key.startsWith('medref:{products}:drugs:7:'))).to.equal(
      true,
    );
    expect(documented.sort()).to.deep.equal(built.sort());
  });

  it('lists only messages that the program has', () => {
    const sources = ['api', 'bin', 'config', 'importer', 'shared'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true })
        .map(String)
        .filter((it) => it.endsWith('.ts'))
        .map((it) => read(join(folder, it))),
    );
    const rows = table(runbook, 'Messages').slice(1);
    for (const phrase of rows.map(([cell]) => codeIn(cell)))
      expect(
        sources.some((source) => source.includes(phrase)),
        phrase,
      ).to.equal(true);
    expect(rows.length).to.be.above(5);
  });

  it('shows a real record of the demo', () => {
    const [first] = sampleProducts({ seed: 868_869, count: 1 });
    expect(readme).to.include(`\n${JSON.stringify({ data: first, success: true })}\n`);
  });

  it('lists every check in order, and whether --force skips it', () => {
    const rows = table(configuration, 'Checks').slice(1);
    expect(rows.map(([name, , force]) => [codeIn(name), force?.startsWith('skips it')])).to.deep.equal(
      checks.map(({ name, forceable }) => [name, forceable]),
    );
  });

  it('shows only existing commands', async () => {
    const offered = await subcommands([]);
    for (const file of documents) {
      const shown = read(file).matchAll(
        /(?:`|^ {4,}(?:\$ )?|run --rm importer |medref\.js )medref ([a-z]+)/gm,
      );
      for (const [, name = ''] of shown) expect(offered, `${file}: medref ${name}`).to.include(name);
    }
  });

  it('names only existing files', () => {
    const path = /`((?:api|bench|bin|client|config|demo|deploy|examples|importer|shared|test)\/[\w./-]+)`/g;
    for (const file of documents) {
      for (const [, named = ''] of read(file).matchAll(path))
        expect(existsSync(join(root, named)), `${file}: ${named}`).to.equal(true);
    }
  });

  it('has no broken link', () => {
    for (const file of documents) {
      for (const [, target = ''] of read(file).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
        if (/^https?:/.test(target)) continue;
        expect(existsSync(join(root, dirname(file), target)), `${file}: ${target}`).to.equal(true);
      }
    }
  });
});

const help = async (path: readonly string[]) => (await medref([...path, '--help'], {})).stdout;

/** Returns the names of a command's subcommands, from its help. */
async function subcommands(path: readonly string[]): Promise<string[]> {
  const section = (await help(path)).split('Commands:\n')[1] ?? '';
  return [...section.matchAll(/^ {2}(\w+)/gm)].map(([, name = '']) => name).filter((name) => name !== 'help');
}

/** Returns the usage of a command as in the documentation: its arguments, then its options except the common ones. */
function usageOf(path: string, text: string): string {
  const args = /^Usage: medref [\w ]+ \[options\](.*)$/m.exec(text)?.[1] ?? '';
  const options = [...text.matchAll(/^ {2}(--[\w-]+(?: <[^>]+>)?) {2,}/gm)].map(([, it = '']) => it);
  const shown = options
    .filter((it) => it !== '--json' && it !== '--version')
    .map((it) => (it === '--client <name>' ? ` ${it}` : ` [${it}]`));
  return `medref ${path}${args}${shown.join('')}`;
}
