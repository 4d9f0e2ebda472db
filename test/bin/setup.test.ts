import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const setupScript = fileURLToPath(new URL('../../bin/setup.mjs', import.meta.url));

// Scripts that replace commands of a machine. Each also writes its name and arguments to a log.
const redis = (version: string) =>
  `echo "Redis server v=${version} sha=00000000:0 malloc=jemalloc-5.3.0 bits=64"`;
const valkey = (version: string) =>
  `echo "Valkey server v=${version} sha=00000000:0 malloc=jemalloc-5.3.0 bits=64"`;
const isRoot = 'echo 0';
const isUser = 'echo 1000';
const refuses = 'echo "sudo: a password is required" >&2; exit 1';
const runsAsRoot = 'while [ "$1" = -n ]; do shift; done; [ "$1" = true ] || "$@"';
const runsInEnvironment = 'while case "$1" in *=*) true;; *) false;; esac; do shift; done; "$@"';
const installs = (server: string, is: string) => `case "$*" in *install*)
    printf '#!/bin/sh\\n%s\\n' '${is}' > "$MACHINE/bin/${server}"; /bin/chmod +x "$MACHINE/bin/${server}";; esac`;
const offers = (versions: Record<string, string>) =>
  Object.entries(versions)
    .map(([name, version]) => `[ "$2" = ${name} ] && echo "  Candidate: ${version}"`)
    .concat('true')
    .join('\n');

const lock = (...packages: [path: string, version: string, more?: object][]) =>
  JSON.stringify({
    packages: Object.fromEntries(
      packages.map(([path, version, more]) => [path, { version, integrity: `sha512-${version}`, ...more }]),
    ),
  });

describe('the set-up script', () => {
  after(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
  const server = { 'redis-server': redis('7.0.15') };
  const debian = {
    id: isRoot,
    env: runsInEnvironment,
    'apt-cache': offers({ 'redis-server': '5:7.0.15-1~deb12u1', 'valkey-server': '8.1.1+dfsg1-1' }),
    'apt-get': installs('redis-server', redis('7.0.15')),
  };
  const advice =
    'Install Redis 6.2 or newer, or Valkey, so that redis-server or valkey-server is on the PATH';

  it('accepts a server and a browser on the PATH, and installs nothing', () => {
    const { status, stderr, log } = machine({ ...server, 'apt-get': '', brew: '', npm: '' }).setUp();
    expect([status, stderr]).to.deep.equal([0, '']);
    expect(log).to.deep.equal(['redis-server --version', 'chromium --version']);
    const both = { 'valkey-server': valkey('7.2.5'), 'redis-server': redis('6.0.16') };
    expect(machine(both).setUp().status).to.equal(0);
    expect(machine({ ...server, chromium: null, 'google-chrome': '' }).setUp().status).to.equal(0);
  });

  it('accepts no old server and no other program of that name', () => {
    for (const [does, code] of [
      ...[redis('6.0.16'), redis('5.9.9'), 'echo v=', 'exit 1'].map((it) => [it, 1] as const),
      ...[redis('6.2.0'), redis('10.0.1')].map((it) => [it, 0] as const),
    ])
      expect(machine({ 'redis-server': does }).setUp().status, does).to.equal(code);
  });

  it('installs a server with apt-get, as root or with sudo, after an update', () => {
    for (const how of [{}, { id: isUser, sudo: runsAsRoot }]) {
      const { status, stderr, log } = machine({ ...debian, ...how }).setUp();
      expect(status, stderr).to.equal(0);
      expect(stderr).to.equal('setup: apt-get update\nsetup: apt-get install redis-server\n');
      expect(log.filter((line) => line.startsWith('apt-get'))).to.have.length(2);
    }
    const failsToUpdate = `case "$*" in *update*) exit 100;; esac\n${debian['apt-get']}`;
    expect(machine({ ...debian, 'apt-get': failsToUpdate }).setUp().status).to.equal(0);
  });

  it('starts no service, and leaves nothing behind', () => {
    const looksAround = `case "$*" in *install*)
        for word in "$@"; do case "$word" in DPkg::Path=*) first=\${word#*=}; first=\${first%%:*};; esac; done
        "$first/deb-systemd-invoke" start redis-server && "$first/invoke-rc.d" redis-server start && echo "guard $first" >> "$MACHINE/log";; esac`;
    const { status, log } = machine({ ...debian, 'apt-get': `${looksAround}\n${debian['apt-get']}` }).setUp();
    expect(status).to.equal(0);
    const guard = log.find((line) => line.startsWith('guard '))?.slice('guard '.length) as string;
    expect(dirname(guard)).to.equal(tmpdir());
    expect(existsSync(guard)).to.equal(false);
  });

  it("installs Valkey if the system's Redis is too old", () => {
    const { status, log } = machine({
      ...debian,
      'apt-cache': offers({ 'redis-server': '5:6.0.16-1ubuntu1', 'valkey-server': '8.1.1+dfsg1-1' }),
      'apt-get': installs('valkey-server', valkey('8.1.1')),
    }).setUp();
    expect(status).to.equal(0);
    expect(log.join('\n')).to.include('install valkey-server').and.not.include('install redis-server');
  });

  it('installs with Homebrew without apt-get', () => {
    const ofRedis = machine({ brew: installs('redis-server', redis('8.0.0')) }).setUp();
    expect([ofRedis.status, ofRedis.log.includes('brew install redis')]).to.deep.equal([0, true]);
    const brew = installs('chromium', 'true');
    const ofChromium = machine({ ...server, chromium: null, brew }).setUp();
    expect(ofChromium.status).to.equal(0);
    expect(ofChromium.log).to.include('brew install --cask chromium');
  });

  it('installs Chromium with apt-get for tests, but not for the demo', () => {
    const without = { ...debian, ...server, chromium: null, 'apt-get': installs('chromium', 'true') };
    const { status, stderr } = machine(without).setUp();
    expect([status, stderr]).to.deep.equal([0, 'setup: apt-get update\nsetup: apt-get install chromium\n']);
    expect(machine(without).setUp(['--demo'])).to.include({ status: 0, stderr: '' });
  });

  it('prints one line of advice if it cannot install', () => {
    const old = { ...debian, 'apt-cache': offers({ 'redis-server': '5:6.0.16-1' }) };
    const failing = { ...debian, 'apt-get': 'echo noise; echo "E: Could not get lock" >&2; exit 100' };
    for (const [commands, reason] of [
      [{}, 'neither apt-get nor brew is available'],
      [{ ...debian, id: isUser }, 'apt-get needs root or sudo'],
      [{ ...debian, id: isUser, sudo: refuses }, 'apt-get needs root or sudo'],
      [old, 'apt-get has no package that is new enough'],
      [failing, 'apt-get install redis-server failed: E: Could not get lock'],
      [{ brew: 'echo "Error: no network" >&2; exit 1' }, 'brew install redis failed: Error: no network'],
      [{ brew: '' }, 'the installed program is not on the PATH, or does not start'],
    ] as const) {
      const { status, stderr } = machine(commands).setUp();
      expect([status, lastLine(stderr)]).to.deep.equal([1, `${advice} (${reason}).`]);
    }
    const { stderr } = machine({ ...server, chromium: null }).setUp();
    expect(stderr).to.match(
      /^Install Chromium, so that .* is on the PATH: tests of pages need it \(.*\)\.\n$/,
    );
  });

  it('needs no server for a demo with REDIS_URL, but for the tests', () => {
    const elsewhere = { REDIS_URL: 'redis://127.0.0.1:6379' };
    expect(machine({}).setUp(['--demo'], elsewhere).status).to.equal(0);
    expect(machine({}).setUp([], elsewhere).status).to.equal(1);
    const { status, stderr } = machine({}).setUp(['--demo'], { REDIS_URL: '' });
    expect(status).to.equal(1);
    expect(stderr).to.include(', or set REDIS_URL to a server that is running (');
  });

  it('rejects an unknown argument and an old Node', () => {
    const it = machine({ ...server, npm: '' });
    const unknown = it.setUp(['--dmeo']);
    expect([unknown.status, unknown.stderr]).to.deep.equal([
      2,
      'bin/setup.mjs accepts --demo, --packages or nothing, not "--dmeo".\n',
    ]);
    const pretend = 'Object.defineProperty(process.versions, "node", { value: "20.18.3" })';
    const NODE_OPTIONS = `--import "data:text/javascript,${encodeURIComponent(pretend)}"`;
    const old = it.setUp([], { NODE_OPTIONS });
    expect([old.status, old.stderr, old.log]).to.deep.equal([
      2,
      'medref needs Node 20.19 or newer, not 20.18.3: get it from https://nodejs.org\n',
      [],
    ]);
  });

  describe('installs the packages of the lock file', () => {
    const npmCi = 'npm ci --include=dev --ignore-scripts --loglevel=error --no-progress';
    const [a, b] = [['node_modules/a', '1.0.0'] as const, ['node_modules/b', '2.0.0'] as const];
    const wanted = lock(['', '0.1.0'], [...a], [...b], ['node_modules/c', '3.0.0', { optional: true }]);
    const cases: [when: string, installed: string | undefined, isInstalled: boolean][] = [
      ['not if they are there', lock([...a], [...b], ['node_modules/c', '3.0.0']), false],
      ['not if only an optional one is missing', lock([...a], [...b]), false],
      ['if there are none', undefined, true],
      ['if one is missing', lock([...a]), true],
      ['if one has another version', lock([...a], ['node_modules/b', '2.0.1']), true],
      ['if one has other contents', lock([...a], ['node_modules/b', '2.0.0', { integrity: 'x' }]), true],
      ['if there is one too many', lock([...a], [...b], ['node_modules/d', '4.0.0']), true],
    ];
    for (const [when, installed, isInstalled] of cases) {
      it(when, () => {
        const { status, log } = machine({ ...server, npm: '' }, { wanted, installed }).setUp();
        expect([status, log.includes(npmCi)]).to.deep.equal([0, isInstalled]);
      });
    }

    it('and stops if npm fails', () => {
      const npm = 'echo "npm error network" >&2; exit 1';
      const { status, stderr } = machine({ ...server, npm }, { wanted, installed: undefined }).setUp();
      expect([status, lastLine(stderr)]).to.deep.equal([
        1,
        'npm ci could not install the packages: see its message above, then run this again.',
      ]);
    });
  });
});

interface Packages {
  wanted: string;
  installed: string | undefined;
}

const folders: string[] = [];

/** Makes a machine with only these commands, a Chromium unless it is `null`, and a copy of the set-up script. */
function machine(
  commands: Record<string, string | null>,
  packages: Packages = { wanted: lock(), installed: lock() },
) {
  const folder = mkdtempSync(join(tmpdir(), 'medref-test-setup-'));
  folders.push(folder);
  mkdirSync(join(folder, 'bin'));
  cpSync(setupScript, join(folder, 'bin/setup.mjs'));
  writeFileSync(join(folder, 'package-lock.json'), packages.wanted);
  if (packages.installed !== undefined) {
    for (const path of Object.keys(JSON.parse(packages.installed).packages))
      mkdirSync(join(folder, path), { recursive: true });
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    writeFileSync(join(folder, 'node_modules/.package-lock.json'), packages.installed);
  }
  for (const [name, does] of Object.entries({ chromium: '', ...commands })) {
    if (does === null) continue;
    const path = join(folder, 'bin', name);
    writeFileSync(path, `#!/bin/sh\necho "${name} $*" >> "$MACHINE/log"\n${does}\n`);
    chmodSync(path, 0o755);
  }
  return {
    folder,
    setUp(args: string[] = [], env: NodeJS.ProcessEnv = {}) {
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        [join(folder, 'bin/setup.mjs'), ...args],
        {
          encoding: 'utf8',
          env: { PATH: join(folder, 'bin'), MACHINE: folder, TMPDIR: tmpdir(), ...env },
        },
      );
      expect(stdout, 'progress goes to stderr').to.equal('');
      const logFile = join(folder, 'log');
      const log = existsSync(logFile) ? readFileSync(logFile, 'utf8').trimEnd().split('\n') : [];
      return { status, stderr, log };
    },
  };
}

const lastLine = (text: string) => text.trimEnd().split('\n').at(-1);
