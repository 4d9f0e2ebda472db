import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');

/** One import of one source file; both paths are relative to the project. */
interface Import {
  readonly from: string;
  /** A file of the project, or the name of a package. */
  readonly to: string;
}

const sources = ['api', 'bench', 'bin', 'client', 'config', 'demo', 'importer', 'shared'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(ts|mjs)$/.test(file))
    .map((file) => join(folder, file)),
);

/** Returns imports of all kinds: at the top of a file, at run time, and of types within the code. */
function importsIn(from: string): Import[] {
  const source = withoutComments(read(from));
  const specifiers = [
    ...source.matchAll(/^(?:import|export)\b[^;]*?from '([^']+)';/gms),
    ...source.matchAll(/^import '([^']+)';/gm),
    ...source.matchAll(/\bimport\(\s*['"`]([^'"`]+)['"`]\s*\)/g),
  ];
  return specifiers.map(([, to = '']) => ({
    ...{ from, to: to.startsWith('.') ? normalize(join(dirname(from), to)) : to },
  }));
}

const imports: readonly Import[] = sources.flatMap(importsIn);

const inFolder = (folder: string) => (file: string) => file.startsWith(`${folder}/`);
/** Returns whether a file is part of the product. The bench may import packages to compare the product with alternatives. */
const isProduct = (file: string) => !inFolder('bench')(file);
const isPackage = (name: string) => (to: string) => to === name || to.startsWith(`${name}/`);
const shown = ({ from, to }: Import) => `${from} imports ${to}`;

describe('the architecture', () => {
  it('has sources that import each other, also with import()', () => {
    expect(sources.length).to.be.above(80);
    expect(imports.length).to.be.above(300);
    expect(
      imports.some(({ from, to }) => from.startsWith('bin/') && to === 'bin/commands/serve.ts'),
    ).to.equal(true);
  });

  const forbidden: [title: string, from: (file: string) => boolean, to: (name: string) => boolean][] = [
    [
      '@hapi stays in api/',
      (from) => isProduct(from) && !inFolder('api')(from),
      (to) => to.startsWith('@hapi/'),
    ],
    [
      'undici stays in importer/upstream/',
      (from) => isProduct(from) && !inFolder('importer/upstream')(from),
      isPackage('undici'),
    ],
    [
      'stream-json stays in importer/parse/',
      (from) => isProduct(from) && !inFolder('importer/parse')(from),
      isPackage('stream-json'),
    ],
    ['pg stays in bench/', isProduct, isPackage('pg')],
    [
      'bench/ knows of Redis keys no more than a client',
      inFolder('bench'),
      (to) => to === 'shared/store/keys.ts',
    ],
    ['node-cron stays in the product', (from) => inFolder('bench')(from), isPackage('node-cron')],
    ['ioredis stays in shared/redis/', (from) => !inFolder('shared/redis')(from), isPackage('ioredis')],
    ['the API does not import the importer', inFolder('api'), inFolder('importer')],
    ['the importer does not import the API', inFolder('importer'), inFolder('api')],
    [
      'shared/ imports nothing of the programs',
      inFolder('shared'),
      (to) => /^(api|importer|bin|config)\//.test(to),
    ],
    ['commander stays in one file', (from) => from !== 'bin/command-line.ts', isPackage('commander')],
    ['client/ imports nothing', inFolder('client'), (to) => !inFolder('client')(to)],
    ['no test code is used by what is not a test', () => true, inFolder('test')],
  ];
  for (const [title, from, to] of forbidden) {
    it(title, () => {
      expect(imports.filter((it) => from(it.from) && to(it.to)).map(shown)).to.deep.equal([]);
    });
  }

  it('has no import cycles', () => {
    const targets = new Map(
      sources.map((file) => [file, imports.filter((it) => it.from === file).map((it) => it.to)]),
    );
    const done = new Set<string>();
    const visit = (file: string, path: readonly string[]): void => {
      expect(path, `a cycle: ${[...path, file].join(' → ')}`).not.to.include(file);
      if (done.has(file)) return;
      for (const target of targets.get(file) ?? []) visit(target, [...path, file]);
      done.add(file);
    };
    for (const file of sources) visit(file, []);
  });

  it('has no files named utils, helpers, common, misc or index', () => {
    const vague = sources.filter((file) => /(^|\/)(utils?|helpers?|common|misc|index)\b/i.test(file));
    expect(vague).to.deep.equal([]);
  });

  it('reads the environment only in entry files', () => {
    const readers = sources.filter(
      (file) => !/^(bin|bench|demo)\//.test(file) && /process\.env/.test(withoutComments(read(file))),
    );
    expect(readers).to.deep.equal([]);
  });

  it('starts every file with a header of one to three lines', () => {
    const without = sources.filter((file) => {
      const [first = '', ...rest] = read(file)
        .replace(/^#!.*\n/, '')
        .split('\n');
      const header = first.startsWith('// ') ? 1 + rest.findIndex((line) => !line.startsWith('// ')) : 0;
      return header < 1 || header > 3;
    });
    expect(without).to.deep.equal([]);
  });

  it('names each file of a walk once', () => {
    for (const heading of ['A record on its way in', 'A request on its way through']) {
      const walk = read('docs/ARCHITECTURE.md').split(`## ${heading}`)[1]?.split('\n## ')[0] ?? '';
      const stops = [...walk.matchAll(/^\d+\. (.*)$/gm)].flatMap(([, line = '']) =>
        [...line.matchAll(/`([\w/-]+\.(?:ts|lua))`/g)].map(([, file = '']) => file),
      );
      expect(stops.length, heading).to.be.at.least(10);
      expect(stops, heading).to.deep.equal([...new Set(stops)]);
    }
  });
});

function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*$/gm, '');
}
