// Runs the service with the sample catalogue until Ctrl-C. REDIS_URL: a server instead of a private one. API_PORT: the first
// port to try. ADMIN_PORT, CORS_ORIGINS: as for the service. DEMO_FOLDER: the folder of its data (.demo).

import { once } from 'node:events';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { settingDefinitions } from '../config/definitions.ts';
import { readSettings } from '../config/settings.ts';
import { startPrivateRedis } from './private-redis.ts';
import { sampleProducts } from './sample-catalogue.ts';
import { startSampleUpstream } from './sample-upstream.ts';

const SAMPLE = { seed: 868_869, products: 5_000, companies: 300 };
const CLIENT = 'demo';
/** The rate of the second key. */
const RATE = '5/s';
/** The exit code of an import that a check refused. */
const REFUSED = 3;
const FIRST_PORT = 3_000;
const READY_TIMEOUT_MS = 30_000;
const REMEMBERED_CHARACTERS = 100_000;

/** Settings of the demo's commands. */
type Environment = Record<string, string>;

const project = fileURLToPath(new URL('..', import.meta.url));
const folder = resolve(project, process.env['DEMO_FOLDER'] || '.demo');

/** Aborted at the end of the demo, with ASKED or the error that ended it. */
const ending = new AbortController();
const ASKED = 'asked to end';
/** Functions that stop what was started, in order of start. */
const stops: (() => Promise<void>)[] = [];

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => ending.abort(ASKED));
try {
  await demo();
} catch (error) {
  const reason = ending.signal.aborted ? ending.signal.reason : error;
  if (reason !== ASKED) {
    process.stderr.write(`${reason.message}\n`);
    process.exitCode = 1;
  }
} finally {
  ending.abort(ASKED);
  for (const stop of stops.reverse()) await stop();
}

/** Runs the demo. It ends by throwing, after an error or on request. */
async function demo(): Promise<never> {
  const { ADMIN_PORT = '', REDIS_URL = '' } = process.env;
  readSettings(settingsOf({ ADMIN_PORT, REDIS_URL }));
  stops.push(await occupyFolder(folder));
  const environment = {
    REDIS_URL: REDIS_URL || (await startRedis()),
    ADMIN_PORT: ADMIN_PORT || '0',
    KEY_PREFIX: 'medref-demo',
  };
  await importSample(environment);
  const keys = await makeKeys(environment);
  const addresses = await startApi(environment);
  await writeFile(noteIn(folder), `${process.pid} ${addresses.address}`);
  process.stdout.write(welcome(addresses, keys, environment));
  return untilEnding();
}

async function startRedis(): Promise<string> {
  say('starting a private Redis');
  const redis = await startPrivateRedis({ dataFolder: join(folder, 'redis'), appendOnly: true });
  stops.push(redis.stop);
  redis.ended.then((code) => {
    ending.abort(new Error(`The private Redis of the demo has ended (${code}), so the demo ends, too.`));
  });
  return redis.url;
}

/**
 * Imports the sample catalogue over HTTP, as real lists are imported. On first start, companies also get a history: an earlier
 * list before the current one, and a refused one after it.
 */
async function importSample(environment: Environment): Promise<void> {
  say(`importing ${SAMPLE.products} products and ${SAMPLE.companies} companies over HTTP`);
  const upstream = await startSampleUpstream(SAMPLE);
  stops.push(upstream.stop);
  const { productsUrl: PRODUCTS_URL, companiesUrl, formerCompaniesUrl, shrunkenCompaniesUrl } = upstream;
  const isFirst = await nothingIsLive(environment);
  // A later start may find the sample of another release.
  const force = isFirst ? [] : ['--force'];
  const importCompanies = (COMPANIES_URL: string, ...options: string[]) =>
    importList({ ...environment, COMPANIES_URL }, ['companies', ...options]);
  const importHistory = async () => {
    if (isFirst) await importCompanies(formerCompaniesUrl);
    await importCompanies(companiesUrl, ...force);
    if (isFirst) await importCompanies(shrunkenCompaniesUrl);
  };
  // In parallel, since each publication waits until the second of its number is over.
  await Promise.all([importList({ ...environment, PRODUCTS_URL }, ['products', ...force]), importHistory()]);
}

/** Imports one list, and prints the outcome. */
async function importList(environment: Environment, args: readonly string[]): Promise<void> {
  const { imports } = (await medref(['import', ...args], environment, [0, REFUSED])) as {
    imports: { collection: string; outcome: string; version: number | null }[];
  };
  for (const { collection, outcome, version } of imports) {
    const what = version === null ? 'because the list had shrunk' : `version ${version}`;
    say(`${collection}: ${outcome}, ${what}`);
  }
}

async function nothingIsLive(environment: Environment): Promise<boolean> {
  const { collections } = (await medref(['status'], environment)) as { collections: { live: unknown }[] };
  return collections.every(({ live }) => live === null);
}

/** The keys of the demo: one without a rate, and one with it. */
interface DemoKeys {
  readonly free: { readonly id: string; readonly key: string };
  readonly limited: { readonly id: string; readonly key: string };
}

/** Returns the keys of an earlier demo if they are still valid. Otherwise creates both, and revokes the earlier ones. */
async function makeKeys(environment: Environment): Promise<DemoKeys> {
  const file = join(folder, 'keys.json');
  const { keys } = (await medref(['keys', 'list'], environment)) as {
    keys: { id: string; client: string }[];
  };
  const earlier = keys.filter(({ client }) => client === CLIENT).map(({ id }) => id);
  const stored = await readFile(file, 'utf8').then(JSON.parse, () => null);
  if (earlier.length === 2 && earlier.includes(stored?.free?.id) && earlier.includes(stored?.limited?.id))
    return stored;
  for (const id of earlier) await medref(['keys', 'revoke', id], environment);
  const create = async (...options: string[]) =>
    (await medref(['keys', 'create', '--client', CLIENT, ...options], environment)) as DemoKeys['free'];
  const { id, key } = await create();
  const limited = await create('--rate', RATE);
  const made = { free: { id, key }, limited: { id: limited.id, key: limited.key } };
  await writeFile(file, JSON.stringify(made), { mode: 0o600 });
  return made;
}

/** The addresses of the API and the admin listener. */
interface Addresses {
  readonly address: string;
  /** `null` if it could not listen. */
  readonly admin: string | null;
}

/** Starts the API on the first free port; resolves with its addresses when it is ready. */
async function startApi(environment: Environment): Promise<Addresses> {
  say('starting the API');
  for (let port = Number(process.env['API_PORT']) || FIRST_PORT; ; port++) {
    if (!(await isFree(port))) {
      say(`port ${port} is taken`);
      continue;
    }
    const address = `http://127.0.0.1:${port}`;
    const api = await startCommand(['serve'], { ...environment, API_PORT: String(port) });
    if (await getsReady(api, address)) {
      stops.push(async () => void (await api.ended));
      return { address, admin: adminOf(api) };
    }
    const takenMeanwhile = api.said.stderr.includes('EADDRINUSE');
    if (!takenMeanwhile)
      throw new Error(`The API did not become ready on ${address}. Its output:\n${api.said.stderr}`);
  }
}

/** Returns whether the API becomes ready; `false` if it ends or takes too long. */
async function getsReady(api: Command, address: string): Promise<boolean> {
  let isOver = false;
  api.ended.then(() => {
    isOver = true;
  });
  for (const deadline = Date.now() + READY_TIMEOUT_MS; Date.now() < deadline; await sleep(20)) {
    ending.signal.throwIfAborted();
    if (isOver) return false;
    const answer = await fetch(`${address}/health/ready`, { signal: AbortSignal.timeout(1_000) }).catch(
      () => undefined,
    );
    if (answer?.ok) return true;
  }
  return false;
}

/** Returns the address of the admin listener from the log of a ready API. */
function adminOf({ said }: Command): string | null {
  return /"address":"([^"]+)","msg":"The admin listener is ready/.exec(said.stderr)?.[1] ?? null;
}

/** Returns whether a loopback port is free. */
async function isFree(port: number): Promise<boolean> {
  const listener = createServer();
  try {
    listener.listen(port, '127.0.0.1');
    await once(listener, 'listening');
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  } finally {
    listener.close();
  }
}

/** A medref command inside this process. */
interface Command {
  /** Its output so far; very long output is cut at the start. */
  readonly said: { stdout: string; stderr: string };
  /** Resolves with its exit code. */
  readonly ended: Promise<number>;
}

/** Starts a command, which is stopped at the end of the demo. */
async function startCommand(args: readonly string[], environment: Environment): Promise<Command> {
  ending.signal.throwIfAborted();
  const { commandLine } = await import('../bin/command-line.ts');
  const said = { stdout: '', stderr: '' };
  const into = (stream: 'stdout' | 'stderr') =>
    new Writable({
      write(chunk, _encoding, done) {
        said[stream] = (said[stream] + chunk).slice(-REMEMBERED_CHARACTERS);
        done();
      },
    });
  const stderr = into('stderr');
  const ended = commandLine([...args, '--json'], {
    ...{ env: settingsOf(environment), stdout: into('stdout'), stderr, log: (line) => stderr.write(line) },
    ...{
      stopSignal: () => ending.signal,
      lowerPriority: () => undefined,
      stayUp: () => undefined,
      mindResults: () => undefined,
    },
  });
  return { said, ended };
}

/** Runs a command to its end. @returns its JSON output */
async function medref(
  args: readonly string[],
  environment: Environment,
  expected: readonly number[] = [0],
): Promise<unknown> {
  const { said, ended } = await startCommand(args, environment);
  const code = await ended;
  ending.signal.throwIfAborted();
  if (expected.includes(code)) return JSON.parse(said.stdout);
  throw new Error(`"medref ${args.join(' ')}" failed (${code}). Output:\n${said.stderr.trimEnd()}`);
}

/** Returns the settings of a command: these, and of this process's environment only the ones that the demo passes on. */
function settingsOf(environment: Environment): Record<string, string | undefined> {
  const env = { ...process.env };
  for (const { name } of settingDefinitions)
    if (!['API_PORT', 'CORS_ORIGINS'].includes(name)) delete env[name];
  return { ...env, ...environment };
}

/** Rejects at the end of the demo. */
async function untilEnding(): Promise<never> {
  if (!ending.signal.aborted) await once(ending.signal, 'abort');
  throw ending.signal.reason;
}

function welcome(
  { address, admin }: Addresses,
  { free: { key }, limited }: DemoKeys,
  { REDIS_URL, KEY_PREFIX }: Environment,
): string {
  const curl = (path: string) => `  curl -s -H 'Authorization: Bearer ${key}' '${address}${path}'`;
  const [first] = sampleProducts({ ...SAMPLE, count: 1 });
  return `
medref serves ${SAMPLE.products} invented products and ${SAMPLE.companies} invented companies.

  address    ${address}
  key        ${key}
  with rate  ${limited.key} (${RATE})
  read, try  ${address}/docs
  dashboard  ${admin ?? 'none: its port is taken'}

  export MEDREF_URL=${address} MEDREF_KEY=${key}
  REDIS_URL=${REDIS_URL} KEY_PREFIX=${KEY_PREFIX} node --import tsx bin/medref.ts status

${curl('/products')}
${curl(`/products/${first?.product.id}`)}
${curl('/companies?page=2&per-page=5')}

API_PORT and ADMIN_PORT choose other ports. Ctrl-C stops everything that was started here; its data and keys stay in ${folder}.
`;
}

function say(line: string): void {
  process.stderr.write(`demo: ${line}\n`);
}

/** Creates the folder and locks it. @throws if another demo uses it @returns a function that unlocks it */
async function occupyFolder(folder: string): Promise<() => Promise<void>> {
  const note = noteIn(folder);
  await mkdir(folder, { recursive: true });
  const owner = await readOwner(note);
  if (owner !== undefined && isAlive(owner.pid)) {
    throw new Error(
      `A demo is already running in ${folder} (process ${owner.pid}${owner.address && `, ${owner.address}`}). Use it, stop it, or set DEMO_FOLDER to a different folder. ` +
        `If that process is no demo, delete ${note}.`,
    );
  }
  await rm(note, { force: true });
  // Fails if another demo was faster.
  await writeFile(note, String(process.pid), { flag: 'wx' });
  return () => rm(note, { force: true });
}

/** Returns the file that names the demo that uses the folder. */
function noteIn(folder: string): string {
  return join(folder, 'running');
}

async function readOwner(note: string): Promise<{ pid: number; address: string } | undefined> {
  try {
    const [pid, address = ''] = (await readFile(note, 'utf8')).split(' ');
    return { pid: Number(pid), address };
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
