import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');

/** One import of one source file, both relative to the project. */
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

/** Imports of all kinds: at the top of a file, when code comes by them, and of types within them. */
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
/** Rules of where a package stays are the product's: the bench compares it with what is built in other ways. */
const isProduct = (file: string) => !inFolder('bench')(file);
const isPackage = (name: string) => (to: string) => to === name || to.startsWith(`${name}/`);
const shown = ({ from, to }: Import) => `${from} imports ${to}`;

/** Folders below these are stops of a road; the files beside them are a folder of their own. */
const roads = ['importer', 'api'];

/** The folder of a file as the rules name it. */
function folderOf(file: string): string {
  const [top = '', ...below] = file.split('/');
  return roads.includes(top) && below.length > 1 ? `${top}/${below[0]}/` : `${top}/`;
}

/** The table of who may import a folder, by folder, as docs/ARCHITECTURE.md has it. */
const mayImport = new Map(
  (read('docs/ARCHITECTURE.md').split('| Folder | Only from |')[1]?.split('\n\n')[0] ?? '')
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => {
      const [, folder = '', from = ''] = line.split('|');
      const named = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
      return [named(folder)[0]?.replace('server.ts', '') ?? '', named(from)] as const;
    }),
);

describe('the architecture', () => {
  it('was found: there are sources, and they import each other, also when code comes by', () => {
    expect(sources.length).to.be.above(150);
    expect(imports.length).to.be.above(500);
    expect(imports).to.deep.include({ from: 'bin/command-line.ts', to: 'bin/commands/serve.ts' });
  });

  it('has a rule for each folder: who may import it', () => {
    const folders = [...new Set(sources.map(folderOf))].sort();
    expect([...mayImport.keys()].sort()).to.deep.equal(folders);
  });

  it('has each test run by one command', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const foldersOf = (command: string) =>
      [...(scripts[command] ?? '').matchAll(/"test\/\{(.+?)\}\/\*\*\/\*\.test\.ts"/g)].flatMap(
        ([, names = '']) => names.split(','),
      );
    const tests = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.test.ts'))
      .filter((file) => file.includes('/'));
    expect(scripts['test']).to.include('"test/*.test.ts"');
    expect([...foldersOf('test'), ...foldersOf('test:delivery')]).to.have.members([
      ...new Set(tests.map((file) => file.slice(0, file.indexOf('/')))),
    ]);
  });

  /** Whether a folder is meant by a name of the table: `importer/*` means the folders below, too. */
  const isNamed = (folder: string, name: string) =>
    name.endsWith('*') ? folder.startsWith(name.slice(0, -1)) : folder === name;

  for (const [folder, allowed] of mayImport) {
    it(`lets ${folder} be imported only from ${allowed.join(', ') || 'itself'}`, () => {
      const isMeant = ({ from, to }: Import) =>
        sources.includes(to) && folderOf(to) === folder && isProduct(from);
      const wrong = imports.filter((it) => {
        const from = folderOf(it.from);
        return isMeant(it) && from !== folder && !allowed.some((name) => isNamed(from, name));
      });
      expect(wrong.map(shown)).to.deep.equal([]);
      const users = imports.filter(({ to }) => sources.includes(to) && folderOf(to) === folder);
      const isNeeded = (name: string) => users.some(({ from }) => isNamed(folderOf(from), name));
      expect(
        allowed.filter((name) => !isNeeded(name)),
        'allowed, and not needed',
      ).to.deep.equal([]);
    });
  }

  it('has in shared/ what both programs use, and no more', () => {
    const usedFrom = (starts: readonly string[]) => {
      const seen = new Set<string>();
      const visit = (file: string): void => {
        if (seen.has(file)) return;
        seen.add(file);
        for (const { to } of imports.filter((it) => it.from === file)) if (sources.includes(to)) visit(to);
      };
      for (const start of starts) visit(start);
      return seen;
    };
    const ofTheApi = [...sources.filter(inFolder('api')), 'bin/commands/serve.ts'];
    const ofTheImporter = [
      ...sources.filter(inFolder('importer')),
      ...sources.filter((file) => inFolder('bin/commands')(file) && file !== 'bin/commands/serve.ts'),
    ];
    const [api, importer] = [usedFrom(ofTheApi), usedFrom(ofTheImporter)];
    const oneSided = sources
      .filter(inFolder('shared'))
      .filter((file) => !api.has(file) || !importer.has(file));
    expect(oneSided).to.deep.equal([]);
  });

  const forbidden: [title: string, from: (file: string) => boolean, to: (name: string) => boolean][] = [
    [
      '@hapi stays in api/',
      (from) => isProduct(from) && !inFolder('api')(from),
      (to) => to.startsWith('@hapi/'),
    ],
    [
      'undici stays in one file',
      (from) => isProduct(from) && from !== 'importer/upstream/http.ts',
      isPackage('undici'),
    ],
    [
      'stream-json stays in one file',
      (from) => isProduct(from) && from !== 'importer/reader/json-values.ts',
      isPackage('stream-json'),
    ],
    [
      'packages that only the bench compares with stay in bench/',
      isProduct,
      (to) => /^(pg|json-server)$/.test(to),
    ],
    ['bench/ knows of Redis keys no more than a client', inFolder('bench'), (to) => to === 'shared/keys.ts'],
    ['node-cron stays in one file', (from) => from !== 'shared/due-times.ts', isPackage('node-cron')],
    [
      'ioredis stays in two files',
      (from) => !['shared/redis/connections.ts', 'shared/redis/lasting-client.ts'].includes(from),
      isPackage('ioredis'),
    ],
    ['commander stays in one file', (from) => from !== 'bin/command-line.ts', isPackage('commander')],
    ['client/ imports nothing', inFolder('client'), (to) => !inFolder('client')(to)],
    ['no test code is used by what is not a test', () => true, inFolder('test')],
  ];
  for (const [title, from, to] of forbidden) {
    it(title, () => {
      expect(imports.filter((it) => from(it.from) && to(it.to)).map(shown)).to.deep.equal([]);
      // The rule means something: what it forbids exists somewhere.
      expect(imports.some((it) => to(it.to)) || sources.some(to) || title.includes('test code')).to.equal(
        true,
      );
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

  it('names no file utils, helpers, common, misc or index, and no two files of the roads alike', () => {
    const vague = sources.filter((file) => /(^|\/)(utils?|helpers?|common|misc|index)\b/i.test(file));
    expect(vague).to.deep.equal([]);
    const names = sources
      .filter((file) => /^(api|importer|shared)\//.test(file))
      .map((file) => file.split('/').at(-1) as string);
    const twice = names.filter((name, n) => names.indexOf(name) !== n);
    expect(twice).to.deep.equal([]);
  });

  it('reads the environment nowhere but in entry files', () => {
    const readers = sources.filter(
      (file) => !/^(bin|bench|demo)\//.test(file) && /process\.env/.test(withoutComments(read(file))),
    );
    expect(readers).to.deep.equal([]);
  });

  it('begins every file with a header of one to three lines that says what it is for', () => {
    const without = sources.filter((file) => {
      const [first = '', ...rest] = read(file)
        .replace(/^#!.*\n/, '')
        .split('\n');
      const header = first.startsWith('// ') ? 1 + rest.findIndex((line) => !line.startsWith('// ')) : 0;
      return header < 1 || header > 3;
    });
    expect(without).to.deep.equal([]);
  });

  it('has each file of a walk through it once', () => {
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
