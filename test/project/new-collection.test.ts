import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { useRedis } from '../support/redis-server.ts';
import { closedPort } from '../support/upstream-server.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

const substanceFile = `// Active substances.

import Joi from 'joi';
import { defineCollection } from './define.ts';
import { id, name, textOrNull } from './rules.ts';

export interface Substance {
  id: number;
  name: string;
  code: string | null;
  groups: number[];
}

export const substances = defineCollection<Substance>({
  name: 'substances',
  singular: 'substance',
  describe: 'Active substances.',
  id: ['id'],
  searchBy: {
    name: { type: 'prefix', path: ['name'], describe: 'Only substances whose name begins with this.' },
    code: { type: 'prefix', path: ['code'], describe: 'Only substances whose code begins with this.' },
    group: { type: 'id', valuesOf: ({ groups }) => groups, describe: 'Only substances of the group with this id.' },
  },
  schema: Joi.object<Substance, true>({ id, name, code: textOrNull, groups: Joi.array().items(id) }),
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
  { id: 7, name: 'DUPILUMAB', code: 'D11AH05', groups: [4, 5] },
  { id: 3, name: 'ASPİRİN', code: 'N02BA01', groups: [5] },
  { id: 9, name: 'Dup Acid', code: null, groups: [] },
];

describe('a new collection', function () {
  this.timeout(60_000);
  const server = useRedis();
  const children: ChildProcess[] = [];
  let folder: string;
  let adminPort: number;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-new-collection-'));
    adminPort = await closedPort();
    for (const part of [
      'api',
      'bench',
      'bin',
      'config',
      'importer',
      'shared',
      'package.json',
      'tsconfig.json',
    ]) {
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

  /** Runs commands in one process, one after the other. Each prints one line. The last command may keep running. */
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
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    return { child, next: async () => JSON.parse((await lines.next()).value ?? '') };
  }

  it('needs one file and one line to be configured, imported, served, searched and browsed', async () => {
    const list = join(folder, 'substances.json');
    await writeFile(list, JSON.stringify({ data: [...substances, { id: 8 }] }));
    const commands = [
      ['import', 'substances'],
      ['rejects', 'substances'],
      ['status'],
      ['keys', 'create', '--client', 'a', '--collections', 'substances'],
      ['serve'],
    ];
    const running = medref(
      commands.map((words) => [...words, '--json']),
      { SUBSTANCES_URL: `file://${list}`, MAX_REJECT_PERCENT: '50', ADMIN_PORT: String(adminPort) },
    );
    running.child.stderr.pipe(process.stderr);
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
    const [dupilumab, aspirin, dupAcid] = substances;
    expect(await get('/substances/7')).to.deep.equal({ data: dupilumab, success: true });
    const found: Readonly<Record<string, unknown[]>> = {
      '/substances': substances,
      '/substances?name=dup': [dupAcid, dupilumab],
      [`/substances?name=DUPİLUMAB&version=${version}`]: [dupilumab],
      '/substances?code=d11': [dupilumab],
      '/substances?code=n02&name=asp': [aspirin],
      '/substances?group=5': [dupilumab, aspirin],
      '/substances?group=5&name=asp': [aspirin],
      '/substances?group=6': [],
      '/substances?ids=9,3': [dupAcid, aspirin],
      [`/substances/changes?since=${version}`]: [],
    };
    for (const [path, records] of Object.entries(found)) {
      expect(((await get(path)) as { data: unknown }).data, path).to.deep.equal(records);
    }
    const errors: Readonly<Record<string, string>> = {
      '/substances?barcode=8690000000001': 'is unknown; this route accepts name, code, words, group, ids',
      '/substances?group=x': 'The parameter group is "x"; it accepts a whole number',
      '/substances?code=%20': 'The parameter code is blank; it accepts a prefix of a code',
      '/substances?ids=3&group=5': 'cannot be combined with group',
    };
    for (const [path, message] of Object.entries(errors)) {
      const { data } = (await get(path)) as { data: { status: number; message: string } };
      expect([data.status, data.message.includes(message)], data.message).to.deep.equal([400, true]);
    }

    const openApi = (await get('/openapi.json')) as {
      paths: Record<string, { get: { parameters: { name?: string; description?: string }[] } }>;
      components: { schemas: Record<string, unknown> };
    };
    expect(openApi.components.schemas).to.include.keys('Substance', 'SubstanceList', 'SubstanceChange');
    const parameters = openApi.paths['/substances']?.get.parameters ?? [];
    const described = parameters.flatMap(({ name = [] }) => name);
    expect(described).to.deep.equal(['name', 'code', 'words', 'group']);
    expect(parameters[3]?.description).to.equal('Only substances of the group with this id.');

    const page = await (
      await fetch(`http://127.0.0.1:${adminPort}/browse?collection=substances&group=5`)
    ).text();
    for (const label of ['Name starts with', 'Code starts with', 'Group']) expect(page).to.include(label);
    expect(page)
      .to.match(/2 of 3 records/)
      .and.to.include('DUPILUMAB')
      .and.not.to.include('Dup Acid');

    running.child.kill('SIGTERM');
    const [code] = await once(running.child, 'close');
    expect(code).to.equal(0);
  });

  it('has its own settings, which are validated', async () => {
    const running = medref([['import', 'substances', '--json']], { SUBSTANCES_URL: 'ftp://nowhere' });
    let log = '';
    for await (const chunk of running.child.stderr) log += chunk;
    expect(log).to.include('SUBSTANCES_URL');
  });
});
