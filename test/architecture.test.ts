import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const root = fileURLToPath(new URL('..', import.meta.url));

/** One import of one source file, both relative to the project. */
interface Import {
  readonly from: string;
  /** A file of the project, or the name of a package. */
  readonly to: string;
}

const sources = ['api', 'bench', 'bin', 'config', 'importer', 'shared'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join(folder, file)),
);
const imports: readonly Import[] = sources.flatMap((from) =>
  [...readFileSync(join(root, from), 'utf8').matchAll(/^(?:import|export)\b[^;]*?from '([^']+)';/gms)].map(
    ([, to = '']) => ({ from, to: to.startsWith('.') ? normalize(join(dirname(from), to)) : to }),
  ),
);

const inFolder = (folder: string) => (file: string) => file.startsWith(`${folder}/`);
/** Rules of where a package stays are the product's: the bench compares it with what is built in other ways. */
const isProduct = (file: string) => !inFolder('bench')(file);
const isPackage = (name: string) => (to: string) => to === name || to.startsWith(`${name}/`);
const shown = ({ from, to }: Import) => `${from} imports ${to}`;

describe('the architecture', () => {
  it('was found: there are sources, and they import each other', () => {
    expect(sources.length).to.be.above(40);
    expect(imports.length).to.be.above(150);
  });

  const forbidden: [title: string, from: (file: string) => boolean, to: (name: string) => boolean][] = [
    ['importer/ never imports api/', inFolder('importer'), inFolder('api')],
    ['api/ never imports importer/', inFolder('api'), inFolder('importer')],
    ['shared/ imports neither api/ nor importer/', inFolder('shared'), (to) => /^(api|importer)\//.test(to)],
    ['shared/ imports no settings', inFolder('shared'), inFolder('config')],
    ['only entry files read settings', (from) => !/^(bin|config)\//.test(from), inFolder('config')],
    ['nothing imports bin/ but bin/', (from) => isProduct(from) && !inFolder('bin')(from), inFolder('bin')],
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
    ['node-cron stays in one file', (from) => from !== 'importer/schedule.ts', isPackage('node-cron')],
    [
      'ioredis stays in shared/redis.ts and shared/scripts.ts',
      (from) => !['shared/redis.ts', 'shared/scripts.ts'].includes(from),
      isPackage('ioredis'),
    ],
    ['commander stays in bin/medref.ts', (from) => from !== 'bin/medref.ts', isPackage('commander')],
    ['no test or bench code is used by the product', isProduct, (to) => /^(test|bench)\//.test(to)],
    ['no test code is used by the bench', inFolder('bench'), inFolder('test')],
  ];
  for (const [title, from, to] of forbidden) {
    it(title, () => {
      expect(imports.filter((it) => from(it.from) && to(it.to)).map(shown)).to.deep.equal([]);
      // The rule means something: what it forbids exists somewhere, or the folder that it guards does.
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

  it('names no file utils, helpers, common, misc or index', () => {
    const vague = sources.filter((file) => /(^|\/)(utils?|helpers?|common|misc|index)\b/i.test(file));
    expect(vague).to.deep.equal([]);
  });

  it('reads the environment nowhere but in entry files', () => {
    const readers = sources.filter(
      (file) =>
        !inFolder('bin')(file) &&
        !inFolder('bench')(file) &&
        /process\.env/.test(withoutComments(readFileSync(join(root, file), 'utf8'))),
    );
    expect(readers).to.deep.equal([]);
  });

  it('begins every file with a header of one to three lines that says what it is for', () => {
    const without = sources.filter((file) => {
      const [first = '', ...rest] = readFileSync(join(root, file), 'utf8')
        .replace(/^#!.*\n/, '')
        .split('\n');
      const header = first.startsWith('// ') ? 1 + rest.findIndex((line) => !line.startsWith('// ')) : 0;
      return header < 1 || header > 3;
    });
    expect(without).to.deep.equal([]);
  });
});

function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*$/gm, '');
}
