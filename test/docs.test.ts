import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { pino } from 'pino';
import { createMetrics } from '../api/admin/metrics.ts';
import type { ReadModel } from '../api/read/read-model.ts';
import type { ApiKeyring } from '../api/reads/keyring.ts';
import { createServer } from '../api/server.ts';
import { exitCodes } from '../bin/context.ts';
import { settingDefinitions } from '../config/definitions.ts';
import { sampleProducts } from '../demo/sample-catalogue.ts';
import { checks } from '../importer/checks.ts';
import { readerLimits } from '../importer/parse/pages.ts';
import { maxRejects } from '../importer/stage.ts';
import { upstreamLimits } from '../importer/upstream/access.ts';
import { servedCollections } from '../shared/collections/collections.ts';
import { products } from '../shared/collections/products.ts';
import { allContentKeys, apiKeyKeys, collectionKeys, type PartKeys, rateKey } from '../shared/store/keys.ts';
import { medref } from './support/medref.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const readme = read('README.md');
const operations = read('docs/OPERATIONS.md');
const documents = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'))
    .filter((it) => it.includes('.'))
    .map((it) => `docs/${it}`),
  'shared/store/SCHEMA.md',
];

/** The cells of the tables under a heading, row by row. */
function table(text: string, heading: string): string[][] {
  const section = text.split(new RegExp(`^#+ ${heading}$`, 'm'))[1]?.split(/^#+ /m)[0] ?? '';
  return section
    .split('\n')
    .filter((line) => /^\| /.test(line))
    .map((line) => line.slice(2, -2).split(' | '));
}

/** The keys of what version 7 has of its own. */
function partKeys({ content, changeSet }: PartKeys): string[] {
  return [...allContentKeys(content(7)), changeSet(7)];
}

const codeIn = (cell = '') => /`([^`]+)`/.exec(cell)?.[1] ?? '';

describe('the documentation', () => {
  it('lists every setting with its default and meaning, and no other', () => {
    const rows = table(operations, 'Settings').slice(1);
    expect(rows).to.deep.equal(
      settingDefinitions.map(({ name, default: value, help }) => [
        ...[`\`${name}\``, value === undefined ? 'none' : `\`${value}\``, help],
      ]),
    );
  });

  it('lists every command with its arguments and options, and no other', async () => {
    const documented = table(operations, 'Commands')
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

  it('lists every exit code, and no other', () => {
    const rows = table(operations, 'Commands').filter(([code]) => /^\d$/.test(code ?? ''));
    expect(rows.map(([code]) => Number(code))).to.deep.equal(Object.values(exitCodes));
  });

  it('lists every route, and no other', async () => {
    const server = await createServer({
      ...{
        collections: servedCollections,
        readModel: {} as ReadModel,
        keyring: {} as ApiKeyring,
        whyAway: () => null,
      },
      ...{ host: '127.0.0.1', port: 0, baseUrl: undefined, logger: pino({ level: 'silent' }) },
    });
    const routes = server.table().filter(({ method }) => method === 'get');
    const paths = routes.map(({ path }) => path).sort();
    const documented = table(readme, 'Routes')
      .map(([cell]) => codeIn(cell))
      .filter(Boolean);
    expect(documented.sort()).to.deep.equal(paths);

    const forConsumers = table(read('docs/CONSUMERS.md'), 'Reference')
      .map(([cell]) => codeIn(cell))
      .filter(Boolean)
      .flatMap((path) =>
        servedCollections.map(({ collection }) => path.replace('{collection}', collection.name)),
      );
    expect([...new Set(forConsumers)].sort()).to.deep.equal(paths);
  });

  it('lists every metric of our own, and no other', async () => {
    const metrics = createMetrics();
    metrics.addWaiting(() => 0);
    metrics.addCollections({ served: servedCollections, standings: { read: async () => [] } });
    const own = metrics.registry.getMetricsAsArray().filter(({ name }) => name.startsWith('medref_'));
    const documented = table(read('docs/OPERATIONS.md'), 'Metrics')
      .map(([cell]) => codeIn(cell))
      .filter(Boolean);
    expect(documented.sort()).to.deep.equal(own.map(({ name }) => name).sort());
  });

  it('lists every Redis key, and no other', () => {
    const documented = table(read('shared/store/SCHEMA.md'), 'The Redis schema')
      .map(([cell]) => codeIn(cell))
      .filter(Boolean);
    const { content, changeSet, derived, parts, ...keys } = collectionKeys('medref', products);
    const built = [
      ...Object.values(keys),
      ...partKeys({ content, changeSet }),
      // One row for all keys of what is derived, which end as those of the collection itself.
      'medref:{products}:drugs:7:*',
      ...Object.values(apiKeyKeys('medref')),
      rateKey('medref', '077e2b2b83d5'),
    ];
    const endings = (part: PartKeys) => partKeys(part).map((key) => key.split(':7:')[1]);
    for (const part of parts) expect(endings({ content, changeSet })).to.include.members(endings(part));
    expect(partKeys(derived('drugs')).every((key) => key.startsWith('medref:{products}:drugs:7:'))).to.equal(
      true,
    );
    expect(documented.sort()).to.deep.equal(built.sort());
  });

  it('shows a record of the demo as it is', () => {
    const [first] = sampleProducts({ seed: 868_869, count: 1 });
    expect(readme).to.include(`\n${JSON.stringify({ data: first, success: true })}\n`);
  });

  it('names the scripts of package.json that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = documents.flatMap((file) => [
      ...read(file).matchAll(/npm (?:run )?(demo|test|build|check|format|prove|bench)\b/g),
    ]);
    expect(named.length).to.be.above(5);
    for (const [, name = ''] of named) expect(scripts, name).to.have.property(name);
  });

  it('lists every check, in their order, and whether --force passes over it', () => {
    const rows = table(read('docs/OPERATIONS.md'), 'Checks').slice(1);
    expect(rows.map(([name, , force]) => [codeIn(name), force?.startsWith('passes over it')])).to.deep.equal(
      checks.map(({ name, forceable }) => [name, forceable]),
    );
  });

  it('shows operators no command that does not exist', async () => {
    const offered = await subcommands([]);
    for (const file of ['docs/OPERATIONS.md', 'docs/SECURITY.md']) {
      const shown = read(file).matchAll(
        /(?:`|^ {4,}(?:\$ )?|run --rm importer |medref\.js )medref ([a-z]+)/gm,
      );
      for (const [, name = ''] of shown) expect(offered, `${file}: medref ${name}`).to.include(name);
    }
  });

  it('says the limits that hold', () => {
    const text = read('docs/OPERATIONS.md');
    const { attempts, requestMs, connectMs, headersMs, idleMs, redirects, bodyBytes } = upstreamLimits;
    const gibibytes = bodyBytes / 1024 ** 3;
    const mebibytes = readerLimits.bytesWithoutRecord / 1024 ** 2;
    for (const phrase of [
      `${attempts} for one request, within ${requestMs / 1000} s in all`,
      `${connectMs / 1000} s to connect, ${headersMs / 1000} s to begin to answer, ${idleMs / 1000} s of silence`,
      `${gibibytes} GiB of decoded text for a document, ${mebibytes} MiB without a whole record`,
      `${readerLimits.pages.toLocaleString('en')} pages`,
      `up to ${redirects}, http and https only`,
      `The first ${maxRejects.toLocaleString('en')} rejects`,
    ]) {
      expect(text).to.include(phrase);
    }
  });

  it('has no link that leads nowhere', () => {
    for (const file of documents) {
      for (const [, target = ''] of read(file).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
        if (/^https?:/.test(target)) continue;
        expect(existsSync(join(root, dirname(file), target)), `${file}: ${target}`).to.equal(true);
      }
    }
  });
});

const help = async (path: readonly string[]) => (await medref([...path, '--help'], {})).stdout;

/** The names of the commands below a command, by its help. */
async function subcommands(path: readonly string[]): Promise<string[]> {
  const section = (await help(path)).split('Commands:\n')[1] ?? '';
  return [...section.matchAll(/^ {2}(\w+)/gm)].map(([, name = '']) => name).filter((name) => name !== 'help');
}

/** How a command is written in the documentation: its arguments, then its options but for the common ones. */
function usageOf(path: string, text: string): string {
  const args = /^Usage: medref [\w ]+ \[options\](.*)$/m.exec(text)?.[1] ?? '';
  const options = [...text.matchAll(/^ {2}(--[\w-]+(?: <[^>]+>)?) {2,}/gm)].map(([, it = '']) => it);
  const shown = options
    .filter((it) => it !== '--json' && it !== '--version')
    .map((it) => (it === '--client <name>' ? ` ${it}` : ` [${it}]`));
  return `medref ${path}${args}${shown.join('')}`;
}
