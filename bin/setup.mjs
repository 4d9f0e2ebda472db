// In: a machine with Node and npm. Out: the packages of the lock file, a Redis or Valkey server and a Chromium,
// or one line that says what to do. Runs before there is a node_modules: nothing but Node's own modules.
// `--demo`: a server that REDIS_URL names will do as well. `--packages`: the packages alone.

import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MINIMUM_NODE = [20, 19];
const MINIMUM_REDIS = [6, 2];
const SERVERS = ['redis-server', 'valkey-server'];
const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome'];
/** Where Homebrew puts it. */
const MAC_CHROMIUM = '/Applications/Chromium.app/Contents/MacOS/Chromium';
const root = fileURLToPath(new URL('..', import.meta.url));

/** The first server on the PATH that is new enough, or undefined. */
export function findRedisServer() {
  return SERVERS.map(onPath).find((command) => {
    if (command === undefined) return false;
    const version = /v=(\d+)\.(\d+)/.exec(run(command, ['--version']).output);
    return version !== null && isAtLeast(version, MINIMUM_REDIS);
  });
}

/** The first browser on the PATH that starts, or undefined. */
export function findChromium() {
  return [...BROWSERS.map(onPath), MAC_CHROMIUM].find(
    (command) => command !== undefined && run(command, ['--version']).status === 0,
  );
}

function setUp(args) {
  const given = args.join(' ');
  const forDemo = given === '--demo';
  if (!['', '--demo', '--packages'].includes(given))
    stop(2, `bin/setup.mjs takes --demo, --packages or nothing, not "${given}".`);

  const node = process.versions.node;
  if (!isAtLeast([node, ...node.split('.')], MINIMUM_NODE)) {
    stop(
      2,
      `medref needs Node ${MINIMUM_NODE.join('.')} or newer, and this is ${node}: get one from https://nodejs.org`,
    );
  }
  if (!packagesAreInstalled()) installPackages();
  if (given === '--packages') return;
  if (!(forDemo && process.env.REDIS_URL) && findRedisServer() === undefined) installRedisServer(forDemo);
  if (!forDemo && findChromium() === undefined) installChromium();
}

// ---- packages

/** Whether node_modules is what `npm ci` would make of the lock file, as told by npm's own note of what it did. */
function packagesAreInstalled() {
  const wanted = readPackages('package-lock.json');
  const installed = readPackages('node_modules/.package-lock.json');
  const isSame = (path) =>
    installed[path]?.version === wanted[path]?.version &&
    installed[path]?.integrity === wanted[path]?.integrity;
  return (
    Object.entries(wanted).every(
      ([path, { optional }]) => path === '' || isSame(path) || (optional && !installed[path]),
    ) && Object.keys(installed).every((path) => isSame(path) && existsSync(join(root, path)))
  );
}

function readPackages(lockFile) {
  const path = join(root, lockFile);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : {};
}

function installPackages() {
  say('installing the packages of package-lock.json (npm ci)');
  // Production machines leave out development packages, but those run the demo and the tests.
  const npm = spawnSync(
    'npm',
    ['ci', '--include=dev', '--ignore-scripts', '--loglevel=error', '--no-progress'],
    {
      cwd: root,
      stdio: ['ignore', 2, 2],
    },
  );
  if (npm.status !== 0)
    stop(1, 'npm ci could not install the packages: see its message above, then run this again.');
}

// ---- Redis

function installRedisServer(forDemo) {
  const problem = onPath('apt-get')
    ? installWithApt()
    : onPath('brew')
      ? installWithBrew()
      : 'no apt-get and no brew here to install it with';
  if (problem === undefined && findRedisServer() !== undefined) return;
  const advice = `Install Redis ${MINIMUM_REDIS.join('.')} or newer, or Valkey, so that redis-server or valkey-server is on the PATH`;
  const otherwise = forDemo ? ', or set REDIS_URL to a server that is running' : '';
  stop(1, `${advice}${otherwise} (${problem ?? 'the one that was installed is not on the PATH'}).`);
}

function installWithBrew() {
  return brew('redis');
}

function installWithApt() {
  const asRoot = rootPrefix();
  if (asRoot === undefined) return 'apt-get needs root or sudo';
  const apt = (...args) => aptGet(asRoot, args);
  say('reading the package lists (apt-get update)');
  apt('update'); // one list of many that can't be had need not matter: what counts is whether the package is there
  const name = SERVERS.find(aptHasNewEnough);
  if (name === undefined)
    return `the package lists of apt-get have no ${SERVERS.join(' or ')} that is new enough`;

  say(`installing ${name} (apt-get install)`);
  const { status, lastLine } = withoutServices((path) =>
    apt(
      '-o',
      'DPkg::Lock::Timeout=120',
      '-o',
      `DPkg::Path=${path}`,
      '--no-install-recommends',
      'install',
      name,
    ),
  );
  if (status !== 0) return `apt-get install ${name} failed: ${lastLine}`;
  const [command, ...rest] = [...asRoot, 'update-rc.d', name, 'disable'];
  run(command, rest); // nor at the next boot
  return undefined;
}

// ---- Chromium

function installChromium() {
  const problem = onPath('apt-get')
    ? installChromiumWithApt()
    : onPath('brew')
      ? brew('--cask', 'chromium')
      : 'no apt-get and no brew here to install it with';
  if (problem === undefined && findChromium() !== undefined) return;
  const reason = problem ?? 'the one that was installed is not on the PATH, or does not start';
  stop(
    1,
    `Install Chromium, so that ${BROWSERS.join(' or ')} is on the PATH: tests of pages need it (${reason}).`,
  );
}

function installChromiumWithApt() {
  const asRoot = rootPrefix();
  if (asRoot === undefined) return 'apt-get needs root or sudo';
  say('reading the package lists (apt-get update)');
  aptGet(asRoot, ['update']); // as with Redis: the package may be there all the same
  say('installing chromium (apt-get install)');
  const args = ['-o', 'DPkg::Lock::Timeout=120', '--no-install-recommends', 'install', 'chromium'];
  const { status, lastLine } = aptGet(asRoot, args);
  return status === 0 ? undefined : `apt-get install chromium failed: ${lastLine}`;
}

// ---- package managers

/** @returns what was wrong, or undefined */
function brew(...names) {
  const what = `brew install ${names.join(' ')}`;
  say(`installing ${names[names.length - 1]} (${what})`);
  const { status, lastLine } = run('brew', ['install', ...names]);
  return status === 0 ? undefined : `${what} failed: ${lastLine}`;
}

function aptGet(asRoot, args) {
  const fixed = ['env', 'LC_ALL=C', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q', '-y'];
  const [command, ...rest] = [...asRoot, ...fixed, ...args];
  return run(command, rest);
}

/** What goes before a command to run it as root; undefined when there is no way. */
function rootPrefix() {
  if (run('id', ['-u']).output.trim() === '0') return [];
  if (run('sudo', ['-n', 'true']).status === 0) return ['sudo', '-n'];
  return onPath('sudo') && process.stdin.isTTY ? ['sudo'] : undefined;
}

function aptHasNewEnough(name) {
  const candidate = /Candidate: (?:\d+:)?(\d+)\.(\d+)/.exec(run('apt-cache', ['policy', name]).output);
  return candidate !== null && isAtLeast(candidate, MINIMUM_REDIS);
}

/**
 * Runs an installation whose packages can start no service: the two commands with which they would are, on the
 * PATH that apt-get gives them, ones that do nothing. The system itself is left as it is, even if this is killed.
 */
function withoutServices(install) {
  const folder = mkdtempSync(join(tmpdir(), 'medref-setup-'));
  try {
    for (const command of ['invoke-rc.d', 'deb-systemd-invoke'])
      symlinkSync('/bin/true', join(folder, command));
    return install(
      [folder, '/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'].join(delimiter),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// ---- commands and lines

/** The path of an executable, or undefined. */
function onPath(command) {
  const paths = (process.env.PATH ?? '')
    .split(delimiter)
    .filter(Boolean)
    .map((folder) => join(folder, command));
  return paths.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function run(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C' },
  });
  const lines = `${stdout ?? ''}\n${stderr || error?.message || ''}`.trim().split('\n');
  return { status, output: stdout ?? '', lastLine: lines[lines.length - 1] };
}

function isAtLeast([, major, minor], [leastMajor, leastMinor]) {
  return Number(major) > leastMajor || (Number(major) === leastMajor && Number(minor) >= leastMinor);
}

function say(line) {
  process.stderr.write(`setup: ${line}\n`);
}

function stop(code, line) {
  process.stderr.write(`${line}\n`);
  process.exit(code);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  setUp(process.argv.slice(2));
}
