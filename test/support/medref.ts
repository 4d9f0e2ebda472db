// Runs commands as a function, which is quick, or as a process from dist/ or a bundle. A command has only the settings of its
// test, and its output is searched for secrets.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Plugin } from 'esbuild';
import { asUser, type RedisUser } from './redis-users.ts';

const entry = fileURLToPath(new URL('../../dist/bin/medref.js', import.meta.url));

/** Settings that do not matter to a test. */
const quiet = { LOG_LEVEL: 'warn', ADMIN_PORT: '0' };

/** The Redis user of each command; all others use the importer. */
const users: Readonly<Record<string, RedisUser>> = { serve: 'api', keys: 'operator' };

function asItsUser([command = '']: readonly string[], settings: Readonly<Record<string, string>>) {
  const { REDIS_URL: url, KEY_PREFIX: otherKeys } = settings;
  return url && !otherKeys ? { ...settings, REDIS_URL: asUser(url, users[command] ?? 'importer') } : settings;
}

/** The exit code and output of a command. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Returns stdout as JSON; the test names its shape. */
  json<Shape>(): Shape;
}

/** A running command in a process. */
export interface RunningCommand {
  readonly process: ChildProcess;
  readonly ended: Promise<CommandResult>;
  /** Waits until stdout has a line that matches. */
  line(pattern: RegExp): Promise<RegExpExecArray>;
}

/** Runs `medref` within this process until it ends. */
export function medref(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<CommandResult> {
  return beginMedref(args, settings).ended;
}

/** Creates an API key. @param options for example `--rate 50/s` */
export async function createKey(redisUrl: string, ...options: string[]): Promise<string> {
  const args = ['keys', 'create', '--client', 'test', '--json', ...options];
  return (await medref(args, { REDIS_URL: redisUrl })).json<{ key: string }>().key;
}

/** A running command within this process. */
export interface BegunCommand extends Pick<RunningCommand, 'ended' | 'line'> {
  /** Its output so far. */
  readonly stdout: { readonly text: string };
  readonly stderr: { readonly text: string };
  /** Asks the command to stop, as a signal to its process would. @returns its exit code and output */
  stop(signal?: 'SIGTERM' | 'SIGINT'): Promise<CommandResult>;
}

/** Starts `medref` within this process. */
export function beginMedref(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
): BegunCommand {
  const [stdout, stderr, asked] = [new Collected(), new Collected(), new AbortController()];
  const given = asItsUser(args, settings);
  const run = async () => {
    // Imported as in the commands at run time: tsx would load a module twice if it is both required and imported.
    const { commandLine } = await import('../../bin/command-line.ts');
    const code = await commandLine(args, {
      env: { ...quiet, ...given },
      ...{ stdout, stderr, log: (line) => stderr.write(line) },
      stopSignal: () => asked.signal,
      lowerPriority: () => undefined,
      stayUp: () => undefined,
      mindResults: () => undefined,
    });
    const printed = { stdout: stdout.text, stderr: stderr.text };
    return withoutSecrets(args, given, { code, ...printed, json: () => JSON.parse(stdout.text) });
  };
  const ended = run();
  return {
    ...{ ended, stdout, stderr },
    line: (pattern) =>
      awaitLine(pattern, { text: () => stdout.text, more: () => once(stdout, 'progress'), ended }),
    stop(signal = 'SIGTERM') {
      asked.abort(new Error(`Stopped by ${signal}.`));
      return ended;
    },
  };
}

/** Waits until the output of a command has a line that matches. @throws Error if the command ends before */
async function awaitLine(
  pattern: RegExp,
  { text, more, ended }: { text: () => string; more: () => Promise<unknown>; ended: Promise<CommandResult> },
): Promise<RegExpExecArray> {
  for (;;) {
    const match = pattern.exec(text());
    if (match) return match;
    await Promise.race([
      more(),
      ended.then(({ code, stderr }) => {
        throw new Error(`medref ended with ${code}: ${stderr}`);
      }),
    ]);
  }
}

/** A stream that keeps everything written to it. */
class Collected extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    this.emit('progress');
    done();
  }
}

/**
 * Starts `medref` as a process with these arguments and settings, from dist/ or from another `program`, for example a bundle.
 * `detached` gives it a separate session.
 */
export function startMedref(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
  { detached = false, program = entry } = {},
): RunningCommand {
  const given = asItsUser(args, settings);
  const child = spawn(process.execPath, [program, ...args], {
    detached,
    env: { PATH: process.env['PATH'], ...quiet, ...given },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
    child.emit('progress');
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = once(child, 'close').then(([code]) =>
    withoutSecrets(args, given, {
      code: code as number | null,
      ...{ stdout, stderr, json: () => JSON.parse(stdout) },
    }),
  );
  return {
    process: child,
    ended,
    line: (pattern) => awaitLine(pattern, { text: () => stdout, more: () => once(child, 'progress'), ended }),
  };
}

/** Runs `medref` as a process until it ends. */
export function medrefProcess(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<CommandResult> {
  return startMedref(args, settings).ended;
}

/** An API key. Only the command that creates one may print it, and only on stdout. */
const key = /medref_[0-9A-Za-z]{49}/;

/** The shortest secret that is searched for: a shorter word may be printed for another reason. */
const leastLength = 6;

/** Searches the output of a command for secrets, for every command of the tests. @throws Error that names the secret's setting */
export function withoutSecrets<Result extends Pick<CommandResult, 'stdout' | 'stderr'>>(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
  result: Result,
): Result {
  const makesKeys = args[0] === 'keys' && ['create', 'rotate'].includes(args[1] ?? '');
  const { stdout, stderr } = result;
  if (key.test(stderr) || (!makesKeys && key.test(stdout)))
    throw new Error(`medref ${args.join(' ')} has printed a key.`);
  for (const [name, secret] of secretsIn(settings))
    if (stdout.includes(secret) || stderr.includes(secret))
      throw new Error(`medref ${args.join(' ')} has printed what is secret of ${name}.`);
  return result;
}

/** Returns tokens and secrets, passwords and queries of URLs, and the path of the webhook's URL. */
function secretsIn(settings: Readonly<Record<string, string>>): [name: string, secret: string][] {
  const found: [string, string][] = [];
  for (const [name, value] of Object.entries(settings)) {
    if (/_(?:TOKEN|SECRET)$/.test(name)) found.push([name, value]);
    if (!name.endsWith('_URL')) continue;
    const [, password = ''] = /^[a-z+]+:\/\/[^/@]*?:([^/@]+)@/.exec(value) ?? [];
    found.push([name, password], [name, /^https?:[^?]*\?(.+)$/.exec(value)?.[1] ?? '']);
    if (name === 'WEBHOOK_URL') found.push([name, /^https?:\/\/[^/]+(\/.+)$/.exec(value)?.[1] ?? '']);
  }
  return found.filter(([, secret]) => secret.length >= leastLength);
}

const projectFolder = fileURLToPath(new URL('../..', import.meta.url));

/** Keeps the location of each module in a bundle, so that it finds the files in its folder. */
const placesOfModules: Plugin = {
  name: 'places of modules',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const place = JSON.stringify(pathToFileURL(path).href);
      return { contents: text.replaceAll('import.meta.url', place), loader: 'ts' };
    });
  },
};

const bundles = new Map<string, Promise<string>>();

/**
 * Bundles a program, once for each test process.
 * @param program its path within the project, for example `bin/medref.ts`
 * @returns the path of the bundle, which is deleted when this process ends
 */
export function bundled(program: string): Promise<string> {
  const known = bundles.get(program);
  if (known) return known;
  const made = bundle(program);
  bundles.set(program, made);
  return made;
}

async function bundle(program: string): Promise<string> {
  const { build, stop } = await import('esbuild');
  const outdir = mkdtempSync(join(tmpdir(), 'medref-test-bundle-'));
  process.once('exit', () => rmSync(outdir, { recursive: true, force: true }));
  await build({
    ...{ entryPoints: [join(projectFolder, program)], outdir, outExtension: { '.js': '.mjs' } },
    // Split, so that a command loads only the modules that it imports at run time.
    ...{ bundle: true, splitting: true, format: 'esm', platform: 'node', target: 'node20' },
    // Prefer the ES modules of packages: the bundler cannot see the modules that jsonc-parser requires.
    mainFields: ['module', 'main'],
    ...{ plugins: [placesOfModules], logLevel: 'error' },
    // Packages require modules of Node, and an ES module has no `require` of its own.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
  });
  await stop();
  return join(outdir, `${basename(program, '.ts')}.mjs`);
}
