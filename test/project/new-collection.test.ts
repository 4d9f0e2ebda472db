import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { useRedis } from '../support/redis-server.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

const substanceFile = `// Active substances: what one is, what makes it valid.

import Joi from 'joi';
import { defineCollection } from './define.ts';
import { id, name } from './rules.ts';

export interface Substance {
  id: number;
  name: string;
}

export const substances = defineCollection<Substance>({
  name: 'substances',
  singular: 'substance',
  describe: 'Active substances.',
  id: ['id'],
  searchBy: { name: { type: 'prefix', path: ['name'], describe: 'Only substances whose name begins with this.' } },
  schema: Joi.object<Substance, true>({ id, name }),
});
`;

const runFile = `import { commandLine } from './bin/command-line.ts';
import process from 'node:process';

const { env, stdout, stderr } = process;
const nothing = () => undefined;
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
for (const args of JSON.parse(process.argv[2] ?? ''))
  await commandLine(args, {
    ...{ env, stdout, stderr, stopSignal: () => stop.signal, log: (line) => void stderr.write(line) },
    ...{ lowerPriority: nothing, stayUp: nothing, mindResults: nothing },
  });
`;

const substances = [
  { id: 7, name: 'DUPILUMAB' },
  { id: 3, name: 'ASPİRİN' },
  { id: 9, name: 'Dup Acid' },
];

describe('a new collection', function () {
  this.timeout(60_000);
  const server = useRedis();
  const children: ChildProcess[] = [];
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-new-collection-'));
    for (const part of ['api', 'bin', 'config', 'importer', 'shared', 'package.json', 'tsconfig.json']) {
      await cp(join(root, part), join(folder, part), { recursive: true });
    }
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'shared/collections/substance.ts'), substanceFile);
    await writeFile(join(folder, 'run.ts'), runFile);
    const list = join(folder, 'shared/collections/collections.ts');
    const text = await readFile(list, 'utf8');
    const withImport = text.replace(
      "from './products.ts';",
      "from './products.ts';\nimport { substances } from './substance.ts';",
    );
    const withSubstances = withImport.replace('[products, companies]', '[products, companies, substances]');
    expect(withSubstances, 'the list of collections').not.to.equal(withImport);
    await writeFile(list, withSubstances);
  });
  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  /** Runs commands in one process, one after the other; each prints one line. The last may run on. */
  function medref(commands: readonly string[][], settings: Record<string, string>) {
    const child = spawn(process.execPath, ['--import', 'tsx', 'run.ts', JSON.stringify(commands)], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        REDIS_URL: server().url,
        LOG_LEVEL: 'warn',
        API_PORT: '0',
        ADMIN_PORT: '0',
        ...settings,
      },
    });
    children.push(child);
    child.stderr.pipe(process.stderr);
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    return { child, next: async () => JSON.parse((await lines.next()).value ?? '') };
  }

  it('is one file and one line: it can then be set, imported, looked at, served and searched', async () => {
    const list = join(folder, 'substances.json');
    await writeFile(list, JSON.stringify({ data: [...substances, { id: 8 }] }));
    const settings = { SUBSTANCES_URL: `file://${list}`, MAX_REJECT_PERCENT: '50' };
    const commands = [
      ['import'],
      ['rejects', 'substances'],
      ['status'],
      ['keys', 'create', '--client', 'a'],
      ['serve'],
    ];
    const running = medref(
      commands.map((words) => [...words, '--json']),
      settings,
    );
    const imported = await running.next();
    expect(imported.imports[0]).to.deep.include({
      collection: 'substances',
      outcome: 'published',
      written: substances.length,
    });
    const { version } = imported.imports[0];
    const { rejects } = await running.next();
    expect(rejects[0]).to.deep.include({
      position: substances.length + 1,
      path: '$.name',
      reason: 'is required',
    });
    const { collections } = await running.next();
    expect(collections.at(-1)).to.deep.include({ collection: 'substances' });

    const { key } = await running.next();
    const { address } = await running.next();
    const get = async (path: string) =>
      (await fetch(`${address}${path}`, { headers: { authorization: `Bearer ${key}` } })).json();
    expect(await get('/substances/7')).to.deep.equal({ data: { id: 7, name: 'DUPILUMAB' }, success: true });
    const dataOf = async (path: string) => ((await get(path)) as { data: unknown }).data;
    expect(await dataOf('/substances')).to.deep.equal(substances);
    expect(await dataOf('/substances?name=dup')).to.deep.equal([substances[2], substances[0]]);
    expect(await dataOf(`/substances?name=DUPİLUMAB&version=${version}`)).to.deep.equal([substances[0]]);
    expect(await dataOf(`/substances/changes?since=${version}`)).to.deep.equal([]);
    expect(await dataOf('/substances?barcode=8690000000001')).to.deep.include({ status: 400 });
    running.child.kill('SIGTERM');
    const [code] = await once(running.child, 'close');
    expect(code).to.equal(0);
  });
});
