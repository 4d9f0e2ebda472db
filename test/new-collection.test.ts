import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { useRedis } from './support/redis-server.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const substanceFile = `// Active substances: what one is, what makes it valid.

import Joi from 'joi';
import type { Collection } from './collection.ts';
import { id, name } from './rules.ts';

export const substances: Collection = {
  name: 'substances',
  idPath: ['id'],
  schema: Joi.object({ id, name }),
};
`;

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
    const list = join(folder, 'shared/collections/collections.ts');
    const text = await readFile(list, 'utf8');
    const withImport = text.replace(
      "from './product.ts';",
      "from './product.ts';\nimport { substances } from './substance.ts';",
    );
    await writeFile(list, withImport.replace('[products, companies]', '[products, companies, substances]'));
  });
  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  function medref(args: string[], settings: Record<string, string> = {}) {
    const child = spawn(process.execPath, ['--import', 'tsx', 'bin/medref.ts', ...args], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        REDIS_URL: server().url,
        LOG_LEVEL: 'warn',
        API_PORT: '0',
        ...settings,
      },
    });
    children.push(child);
    child.stderr.pipe(process.stderr);
    let stdout = '';
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
    });
    return { child, ended: once(child, 'close').then(() => stdout), stdout: () => stdout };
  }

  it('is one file and one line: it can then be set, imported, looked at and served', async () => {
    const list = join(folder, 'substances.json');
    await writeFile(list, JSON.stringify({ data: [{ id: 7, name: 'DUPILUMAB' }, { id: 8 }] }));
    const settings = { SUBSTANCES_URL: `file://${list}`, MAX_REJECT_PERCENT: '50' };
    const imported = JSON.parse(await medref(['import', '--json'], settings).ended);
    expect(imported.imports[0]).to.deep.include({
      collection: 'substances',
      outcome: 'published',
      written: 1,
    });
    const { rejects } = JSON.parse(await medref(['rejects', 'substances', '--json']).ended);
    expect(rejects[0]).to.deep.include({ position: 2, path: '$.name', reason: 'is required' });
    const { collections } = JSON.parse(await medref(['status', '--json']).ended);
    expect(collections[2]).to.deep.include({ collection: 'substances' });

    const { key } = JSON.parse(await medref(['keys', 'create', '--client', 'test', '--json']).ended);
    const serving = medref(['serve', '--json']);
    while (!serving.stdout().includes('\n')) await once(serving.child.stdout, 'data');
    const { address } = JSON.parse(serving.stdout());
    const get = async (path: string) =>
      (await fetch(`${address}${path}`, { headers: { authorization: `Bearer ${key}` } })).json();
    expect(await get('/substances/7')).to.deep.equal({ data: { id: 7, name: 'DUPILUMAB' }, success: true });
    expect(((await get('/substances')) as { data: unknown }).data).to.deep.equal([
      { id: 7, name: 'DUPILUMAB' },
    ]);
    serving.child.kill('SIGTERM');
    await serving.ended;
  });
});
