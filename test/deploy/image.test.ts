import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { read, root } from '../support/project-files.ts';

const run = promisify(execFile);

describe('the image', function () {
  this.timeout(60_000);
  const lines = read('Dockerfile').split('\n');
  const copied = lines.flatMap((line) => {
    const words = line.split(' ');
    return words[0] === 'COPY' && !line.includes('--from') ? words.slice(1, -1) : [];
  });

  it('is built in two stages on the same Node, and does not run as root', () => {
    const stages = lines.filter((line) => line.startsWith('FROM'));
    expect(stages.map((line) => line.split(' ')[1])).to.deep.equal(Array(2).fill('node:26-trixie-slim'));
    expect(lines.indexOf('USER node')).to.be.above(lines.lastIndexOf(stages[1] as string));
  });

  it('starts with the options of Node in the first line of the program', () => {
    const [, options] = /^#!\/usr\/bin\/env -S node (.+)\n/.exec(read('bin/medref.ts')) ?? [];
    expect(lines).to.include(`ENTRYPOINT ["node", "${options}", "/app/dist/bin/medref.js"]`);
  });

  it('receives only the files that its build copies', () => {
    const ignored = read('.dockerignore').trim().split('\n');
    expect(ignored[0]).to.equal('*');
    expect(ignored.slice(1).map((line) => line.slice(1))).to.have.members(copied);
  });

  it('builds from exactly the copied files', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'medref-image-'));
    try {
      for (const path of copied) {
        expect(existsSync(join(root, path)), path).to.equal(true);
        await cp(join(root, path), join(folder, path), { recursive: true });
      }
      await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
      await run('npm', ['run', 'build'], { cwd: folder });
      const { stdout } = await run(process.execPath, [join(folder, 'dist/bin/medref.js'), '--help']);
      expect(stdout).to.match(/^Usage: medref/);
      expect(existsSync(join(folder, 'dist/test'))).to.equal(false);
      expect(existsSync(join(folder, 'dist/demo'))).to.equal(false);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('has every imported package among its dependencies, not its development dependencies', async () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    const { stdout } = await run(
      'grep',
      [
        '-rhoE',
        "from '[^.][^']*'",
        ...copied.filter((it) => !it.includes('.')),
        '--include=*.ts',
        '--include=*.mjs',
        '--exclude-dir=demo',
      ],
      { cwd: root },
    );
    const packages = new Set(
      stdout
        .split('\n')
        .map((line) => line.slice("from '".length, -1))
        .filter((name) => name !== '' && !name.startsWith('node:'))
        .map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/')),
    );
    expect([...packages].sort()).to.deep.equal(Object.keys(dependencies).sort());
  });
});
