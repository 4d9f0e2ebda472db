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

// What commands of a machine do; each also writes its name and arguments to a log.
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

describe('The set-up script', () => {
  after(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  describe('finds a server', () => {
    it('takes a redis-server that is on the PATH, and installs nothing', () => {
      const { status, stderr, log } = machine({
        'redis-server': redis('6.2.0'),
        'apt-get': '',
        brew: '',
        npm: '',
      }).setUp();
      expect(stderr).to.equal('');
      expect(status).to.equal(0);
      expect(log).to.deep.equal(['redis-server --version', 'chromium --version']);
    });

    it('takes a valkey-server where there is no redis-server, or an old one', () => {
      expect(machine({ 'valkey-server': valkey('8.1.0') }).setUp().status).to.equal(0);
      expect(
        machine({ 'valkey-server': valkey('7.2.5'), 'redis-server': redis('6.0.16') }).setUp().status,
      ).to.equal(0);
    });

    it('does not take an old redis-server, nor something else of that name', () => {
      for (const server of [redis('6.0.16'), redis('5.9.9'), 'echo v=', 'exit 1']) {
        expect(machine({ 'redis-server': server }).setUp().status, server).to.equal(1);
      }
      for (const version of ['6.2.0', '7.0.15', '10.0.1']) {
        expect(machine({ 'redis-server': redis(version) }).setUp().status, version).to.equal(0);
      }
    });
  });

  describe('installs a server that is missing', () => {
    const debian = {
      id: isRoot,
      env: runsInEnvironment,
      'apt-cache': offers({ 'redis-server': '5:7.0.15-1~deb12u1', 'valkey-server': '8.1.1+dfsg1-1' }),
      'apt-get': installs('redis-server', redis('7.0.15')),
      'update-rc.d': '',
    };

    it('with apt-get as root: lists first, then the package, whose service is then disabled', () => {
      const { status, stderr, log } = machine(debian).setUp();
      expect(status, stderr).to.equal(0);
      expect(
        log
          .filter((line) => /^(apt-get|update-rc)/.test(line))
          .map((line) => line.replace(/ -\S+( DPkg::\S+)?/g, '')),
      ).to.deep.equal(['apt-get update', 'apt-get install redis-server', 'update-rc.d redis-server disable']);
      expect(stderr).to.equal(
        'setup: reading the package lists (apt-get update)\nsetup: installing redis-server (apt-get install)\n',
      );
    });

    it('with apt-get through sudo, where that needs no password', () => {
      const { status, stderr, log } = machine({ ...debian, id: isUser, sudo: runsAsRoot }).setUp();
      expect(status, stderr).to.equal(0);
      expect(log).to.include('sudo -n update-rc.d redis-server disable');
      const elevated = log.filter((line) => line.startsWith('sudo') && line.includes('apt-get'));
      expect(elevated).to.have.length(2);
      for (const line of elevated)
        expect(line).to.match(/^sudo -n env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q -y /);
    });

    it('lets no service be started meanwhile, and leaves nothing behind', () => {
      const looksAround = `case "$*" in *install*)
          for word in "$@"; do case "$word" in DPkg::Path=*) first=\${word#*=}; first=\${first%%:*};; esac; done
          "$first/deb-systemd-invoke" start redis-server && "$first/invoke-rc.d" redis-server start && echo "guard $first" >> "$MACHINE/log";; esac`;
      const { status, log } = machine({
        ...debian,
        'apt-get': `${looksAround}\n${debian['apt-get']}`,
      }).setUp();
      expect(status).to.equal(0);
      const guard = log.find((line) => line.startsWith('guard '))?.slice('guard '.length) as string;
      expect(dirname(guard)).to.equal(tmpdir());
      expect(existsSync(guard)).to.equal(false);
    });

    it('chooses Valkey where the system has no Redis that is new enough', () => {
      const { status, log } = machine({
        ...debian,
        'apt-cache': offers({ 'redis-server': '5:6.0.16-1ubuntu1', 'valkey-server': '8.1.1+dfsg1-1' }),
        'apt-get': installs('valkey-server', valkey('8.1.1')),
      }).setUp();
      expect(status).to.equal(0);
      expect(log.join('\n')).to.include('install valkey-server').and.not.include('install redis-server');
    });

    it('with Homebrew, where there is no apt-get', () => {
      const { status, log } = machine({ brew: installs('redis-server', redis('8.0.0')) }).setUp();
      expect(status).to.equal(0);
      expect(log).to.include('brew install redis');
    });

    it('goes on when some package list can not be read, as long as the package can be had', () => {
      const failsToUpdate = `case "$*" in *update*) exit 100;; esac\n${debian['apt-get']}`;
      expect(machine({ ...debian, 'apt-get': failsToUpdate }).setUp().status).to.equal(0);
    });
  });

  describe('says in one line what to do', () => {
    const advice =
      'Install Redis 6.2 or newer, or Valkey, so that redis-server or valkey-server is on the PATH';

    it('where there is no package manager', () => {
      const { status, stderr } = machine({}).setUp();
      expect(status).to.equal(1);
      expect(stderr).to.equal(`${advice} (no apt-get and no brew here to install it with).\n`);
    });

    it('where the demo could use another server', () => {
      const { status, stderr } = machine({}).setUp(['--demo']);
      expect(status).to.equal(1);
      expect(stderr).to.equal(
        `${advice}, or set REDIS_URL to a server that is running (no apt-get and no brew here to install it with).\n`,
      );
    });

    it('where there is no root and no sudo, or sudo wants a password that nobody can type', () => {
      for (const sudo of [undefined, refuses]) {
        const { status, stderr, log } = machine({ id: isUser, 'apt-get': '', ...(sudo && { sudo }) }).setUp();
        expect(status).to.equal(1);
        expect(stderr).to.equal(`${advice} (apt-get needs root or sudo).\n`);
        expect(log.some((line) => line.startsWith('apt-get'))).to.equal(false);
      }
    });

    it('where the installation fails, with the reason', () => {
      const noPackage = {
        id: isRoot,
        env: runsInEnvironment,
        'apt-cache': offers({ 'redis-server': '7.0' }),
      };
      const failing = machine({
        ...noPackage,
        'apt-get': 'echo noise; echo "E: Could not get lock" >&2; exit 100',
      }).setUp();
      expect(failing.status).to.equal(1);
      expect(lastLine(failing.stderr)).to.equal(
        `${advice} (apt-get install redis-server failed: E: Could not get lock).`,
      );

      const tap = machine({ brew: 'echo "Error: no network" >&2; exit 1' }).setUp();
      expect(tap.status).to.equal(1);
      expect(lastLine(tap.stderr)).to.equal(`${advice} (brew install redis failed: Error: no network).`);
    });

    it('where the system has only an old Redis, which it does not install', () => {
      const { status, stderr, log } = machine({
        id: isRoot,
        env: runsInEnvironment,
        'apt-cache': offers({ 'redis-server': '5:6.0.16-1' }),
        'apt-get': '',
      }).setUp();
      expect(status).to.equal(1);
      expect(lastLine(stderr)).to.equal(
        `${advice} (the package lists of apt-get have no redis-server or valkey-server that is new enough).`,
      );
      expect(log.some((line) => line.includes('install'))).to.equal(false);
    });

    it('where what was installed can not be found', () => {
      const { status, stderr } = machine({ brew: '' }).setUp();
      expect(status).to.equal(1);
      expect(lastLine(stderr)).to.equal(`${advice} (the one that was installed is not on the PATH).`);
    });

    it('on an argument that it does not know', () => {
      const { status, stderr } = machine({ 'redis-server': redis('7.0.15') }).setUp(['--dmeo']);
      expect(status).to.equal(2);
      expect(stderr).to.equal('bin/setup.mjs takes --demo, --packages or nothing, not "--dmeo".\n');
    });

    it('on a Node that is too old', () => {
      const old = machine({ 'redis-server': redis('7.0.15'), npm: '' });
      const pretend = 'Object.defineProperty(process.versions, "node", { value: "20.18.3" })';
      const { status, stderr, log } = old.setUp([], {
        NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(pretend)}"`,
      });
      expect(status).to.equal(2);
      expect(stderr).to.equal(
        'medref needs Node 20.19 or newer, and this is 20.18.3: get one from https://nodejs.org\n',
      );
      expect(log).to.deep.equal([]);
    });
  });

  describe('installs a Chromium that is missing', () => {
    const withoutChromium = { 'redis-server': redis('7.0.15'), chromium: null };
    const debian = {
      ...withoutChromium,
      ...{ id: isRoot, env: runsInEnvironment, 'apt-get': installs('chromium', 'true') },
    };
    const advice =
      'Install Chromium, so that chromium or chromium-browser or google-chrome is on the PATH: tests of pages need it';

    it('not where one is on the PATH and starts, by whichever name', () => {
      for (const name of ['chromium-browser', 'google-chrome'])
        expect(machine({ ...withoutChromium, [name]: '' }).setUp().status, name).to.equal(0);
      expect(machine({ ...withoutChromium, chromium: 'exit 1' }).setUp().status).to.equal(1);
    });

    it('with apt-get: lists first, then the package', () => {
      const { status, stderr, log } = machine(debian).setUp();
      expect(status, stderr).to.equal(0);
      const asked = log
        .filter((it) => it.startsWith('apt-get'))
        .map((it) => it.replace(/ -o \S+| --?\S+/g, ''));
      expect(asked).to.deep.equal(['apt-get update', 'apt-get install chromium']);
      expect(stderr).to.equal(
        'setup: reading the package lists (apt-get update)\nsetup: installing chromium (apt-get install)\n',
      );
    });

    it('with Homebrew, where there is no apt-get', () => {
      const { status, log } = machine({ ...withoutChromium, brew: installs('chromium', 'true') }).setUp();
      expect(status).to.equal(0);
      expect(log).to.include('brew install --cask chromium');
    });

    it('not for a demo', () => {
      expect(machine(withoutChromium).setUp(['--demo'])).to.include({ status: 0, stderr: '' });
    });

    it('or says in one line what to do', () => {
      for (const [commands, reason] of [
        [{}, 'no apt-get and no brew here to install it with'],
        [{ id: isUser, 'apt-get': '' }, 'apt-get needs root or sudo'],
        [
          { brew: 'echo "Error: no network" >&2; exit 1' },
          'brew install --cask chromium failed: Error: no network',
        ],
        [
          { id: isRoot, env: runsInEnvironment, 'apt-get': 'echo "E: no such package" >&2; exit 100' },
          'apt-get install chromium failed: E: no such package',
        ],
        [{ brew: '' }, 'the one that was installed is not on the PATH, or does not start'],
      ] as const) {
        const { status, stderr } = machine({ ...withoutChromium, ...commands }).setUp();
        expect([status, lastLine(stderr)]).to.deep.equal([1, `${advice} (${reason}).`]);
      }
    });
  });

  it('needs no server of its own for a demo on the server of REDIS_URL; the tests need one all the same', () => {
    const elsewhere = { REDIS_URL: 'redis://127.0.0.1:6379' };
    expect(machine({}).setUp(['--demo'], elsewhere).status).to.equal(0);
    expect(machine({}).setUp([], elsewhere).status).to.equal(1);
    expect(machine({}).setUp(['--demo'], { REDIS_URL: '' }).status).to.equal(1);
  });

  describe('installs the packages of the lock file', () => {
    const good = { 'redis-server': redis('7.0.15'), npm: '' };
    const wanted = lock(
      ['', '0.1.0'],
      ['node_modules/a', '1.0.0'],
      ['node_modules/b', '2.0.0'],
      ['node_modules/c', '3.0.0', { optional: true }],
    );
    const asWanted = lock(['node_modules/a', '1.0.0'], ['node_modules/b', '2.0.0']);

    it('not when they are there, with or without the optional ones', () => {
      expect(machine(good, { wanted, installed: asWanted }).setUp().log).to.deep.equal([
        'redis-server --version',
        'chromium --version',
      ]);
      const everything = lock(
        ['node_modules/a', '1.0.0'],
        ['node_modules/b', '2.0.0'],
        ['node_modules/c', '3.0.0'],
      );
      expect(machine(good, { wanted, installed: everything }).setUp().log).to.deep.equal([
        'redis-server --version',
        'chromium --version',
      ]);
    });

    const differences: Record<string, string | undefined> = {
      'when there are none': undefined,
      'when one is missing': lock(['node_modules/a', '1.0.0']),
      'when one has another version': lock(['node_modules/a', '1.0.0'], ['node_modules/b', '2.0.1']),
      'when one has other contents': lock(
        ['node_modules/a', '1.0.0'],
        ['node_modules/b', '2.0.0', { integrity: 'sha512-other' }],
      ),
      'when an optional one has another version': lock(
        ['node_modules/a', '1.0.0'],
        ['node_modules/b', '2.0.0'],
        ['node_modules/c', '3.0.1'],
      ),
      'when there is one too many': lock(
        ['node_modules/a', '1.0.0'],
        ['node_modules/b', '2.0.0'],
        ['node_modules/d', '4.0.0'],
      ),
    };
    for (const [when, installed] of Object.entries(differences)) {
      it(when, () => {
        const { status, stderr, log } = machine(good, { wanted, installed }).setUp();
        expect(status).to.equal(0);
        expect(log).to.include('npm ci --include=dev --ignore-scripts --loglevel=error --no-progress');
        expect(stderr).to.equal('setup: installing the packages of package-lock.json (npm ci)\n');
      });
    }

    it('when the folder of one was deleted', () => {
      const it = machine(good, { wanted, installed: asWanted });
      rmSync(join(it.folder, 'node_modules/b'), { recursive: true });
      expect(it.setUp().log).to.include(
        'npm ci --include=dev --ignore-scripts --loglevel=error --no-progress',
      );
    });

    it('and stops when npm can not', () => {
      const { status, stderr, log } = machine(
        { ...good, npm: 'echo "npm error network" >&2; exit 1' },
        { wanted, installed: undefined },
      ).setUp();
      expect(status).to.equal(1);
      expect(lastLine(stderr)).to.equal(
        'npm ci could not install the packages: see its message above, then run this again.',
      );
      expect(log).to.have.length(1);
    });
  });
});

interface Packages {
  wanted: string;
  installed: string | undefined;
}

const folders: string[] = [];

/** A machine that has these commands, a Chromium unless it is `null`, and no others; and a copy of the set-up script. */
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
