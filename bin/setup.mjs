// Prepares a machine with Node and npm for the demo and the tests: packages, a Redis or Valkey server, and Chromium. If it cannot,
// it prints one line that says what to do. It uses only Node's own modules, because it runs before `npm ci`.
// `--demo`: no Chromium, and no server if REDIS_URL is set. `--packages`: packages only.

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
import { delimiter, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const leastNode = [20, 19];
const leastRedis = [6, 2];
const servers = ['redis-server', 'valkey-server'];
const browsers = ['chromium', 'chromium-browser', 'google-chrome'];
/** The path of Homebrew's Chromium. */
const macChromium = '/Applications/Chromium.app/Contents/MacOS/Chromium';
const root = fileURLToPath(new URL('..', import.meta.url));
/** The folder of the tools of consumers, which only tests run. */
const consumerFolder = 'test/consumer';

/** Returns the first server on the PATH of a supported version, or `undefined`. */
export function findRedisServer() {
  return servers.map(onPath).find((command) => {
    if (command === undefined) return false;
    const version = /v=(\d+)\.(\d+)/.exec(run(command, ['--version']).output);
    return version !== null && isAtLeast(version, leastRedis);
  });
}

/** Returns the first browser on the PATH that starts, or `undefined`. */
export function findChromium() {
  return [...browsers.map(onPath), macChromium].find(
    (command) => command !== undefined && run(command, ['--version']).status === 0,
  );
}

function setUp(args) {
  const given = args.join(' ');
  const forDemo = given === '--demo';
  if (!['', '--demo', '--packages'].includes(given))
    stop(2, `bin/setup.mjs accepts --demo, --packages or nothing, not "${given}".`);
  const node = process.versions.node;
  if (!isAtLeast([node, ...node.split('.')], leastNode))
    stop(2, `medref needs Node ${leastNode.join('.')} or newer, not ${node}: get it from https://nodejs.org`);
  installPackages(root);
  if (given === '--packages') return;
  if (!forDemo) installPackages(join(root, consumerFolder));
  if (!(forDemo && process.env.REDIS_URL))
    install({
      find: findRedisServer,
      apt: () => servers.find(aptHasNewEnough),
      brew: ['redis'],
      advice: `Install Redis ${leastRedis.join('.')} or newer, or Valkey, so that ${servers.join(' or ')} is on the PATH${forDemo ? ', or set REDIS_URL to a server that is running' : ''}`,
    });
  if (!forDemo)
    install({
      find: findChromium,
      apt: () => 'chromium',
      brew: ['--cask', 'chromium'],
      advice: `Install Chromium, so that ${browsers.join(' or ')} is on the PATH: tests of pages need it`,
    });
}

/** Returns whether node_modules of a folder matches its lock file, by npm's own record. */
function packagesAreInstalled(folder) {
  const wanted = readPackages(join(folder, 'package-lock.json'));
  const installed = readPackages(join(folder, 'node_modules/.package-lock.json'));
  const isSame = (path) =>
    installed[path]?.version === wanted[path]?.version &&
    installed[path]?.integrity === wanted[path]?.integrity;
  return (
    Object.entries(wanted).every(
      ([path, { optional }]) => path === '' || isSame(path) || (optional && !installed[path]),
    ) && Object.keys(installed).every((path) => isSame(path) && existsSync(join(folder, path)))
  );
}

function readPackages(lockFile) {
  return existsSync(lockFile) ? JSON.parse(readFileSync(lockFile, 'utf8')).packages : {};
}

function installPackages(folder) {
  if (packagesAreInstalled(folder)) return;
  say(`installing the packages of ${join(relative(root, folder), 'package-lock.json')} (npm ci)`);
  // With development packages even if NODE_ENV is production: the demo and the tests need them.
  const options = ['--include=dev', '--ignore-scripts', '--loglevel=error', '--no-progress'];
  const { status } = spawnSync('npm', ['ci', ...options], { cwd: folder, stdio: ['ignore', 2, 2] });
  if (status !== 0)
    stop(1, 'npm ci could not install the packages: see its message above, then run this again.');
}

/** Installs a missing program with the machine's package manager, or ends with advice. */
function install({ find, apt, brew, advice }) {
  if (find() !== undefined) return;
  let problem = 'neither apt-get nor brew is available';
  if (onPath('apt-get')) problem = installWithApt(apt);
  else if (onPath('brew')) problem = installBy(['brew', 'install', ...brew]);
  if (problem === undefined && find() === undefined)
    problem = 'the installed program is not on the PATH, or does not start';
  if (problem !== undefined) stop(1, `${advice} (${problem}).`);
}

/** Installs a package without starting a service. @param choose returns its name @returns the problem, or `undefined` */
function installWithApt(choose) {
  const isRoot = run('id', ['-u']).output.trim() === '0';
  const canSudo =
    !isRoot && (run('sudo', ['-n', 'true']).status === 0 || (onPath('sudo') && process.stdin.isTTY));
  if (!isRoot && !canSudo) return 'apt-get needs root or sudo';
  const apt = [...(isRoot ? [] : ['sudo']), 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q', '-y'];
  installBy([...apt, 'update']); // The package may be available even if a list cannot be updated.
  const name = choose();
  if (name === undefined) return 'apt-get has no package that is new enough';
  // Package scripts find these empty commands on their PATH, so no service starts.
  const folder = mkdtempSync(join(tmpdir(), 'medref-setup-'));
  for (const command of ['invoke-rc.d', 'deb-systemd-invoke'])
    symlinkSync('/bin/true', join(folder, command));
  const path = `${folder}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;
  const options = ['-o', 'DPkg::Lock::Timeout=120', '-o', `DPkg::Path=${path}`, '--no-install-recommends'];
  try {
    return installBy([...apt, ...options, 'install', name]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function aptHasNewEnough(name) {
  const candidate = /Candidate: (?:\d+:)?(\d+)\.(\d+)/.exec(run('apt-cache', ['policy', name]).output);
  return candidate !== null && isAtLeast(candidate, leastRedis);
}

/** Runs a command of a package manager. @returns the problem, or `undefined` */
function installBy([command, ...args]) {
  const shown = [command, ...args].filter((it) => !/^-|^sudo$|^env$|=/.test(it)).join(' ');
  say(shown);
  const { status, lastLine } = run(command, args);
  return status === 0 ? undefined : `${shown} failed: ${lastLine}`;
}

/** Returns the path of an executable, or `undefined`. */
function onPath(command) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return folders
    .map((folder) => join(folder, command))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

function run(command, args) {
  const env = { ...process.env, LC_ALL: 'C' };
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', env });
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

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  setUp(process.argv.slice(2));
