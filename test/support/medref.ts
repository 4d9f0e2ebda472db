// The command line: as a function, which is quick, or as a process from dist/ or from a bundle. A command has only the settings
// of its test, and everything that it prints is searched for secrets.

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

/** Settings that a test does not care about. */
const quiet = { LOG_LEVEL: 'warn', ADMIN_PORT: '0' };

/** The Redis user that each command comes as; all others come as the importer. */
const users: Readonly<Record<string, RedisUser>> = { serve: 'api', keys: 'operator' };

function asItsUser([command = '']: readonly string[], settings: Readonly<Record<string, string>>) {
  const { REDIS_URL: url, KEY_PREFIX: otherKeys } = settings;
  return url && !otherKeys ? { ...settings, REDIS_URL: asUser(url, users[command] ?? 'importer') } : settings;
}

/** What a command left behind. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Stdout as JSON; the test says of what shape. */
  json<Shape>(): Shape;
}

/** A command that runs. */
export interface RunningCommand {
  readonly process: ChildProcess;
  readonly ended: Promise<CommandResult>;
  /** Waits until stdout has a line that matches. */
  line(pattern: RegExp): Promise<RegExpExecArray>;
}

/** Runs `medref` to its end, within this process. */
export function medref(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<CommandResult> {
  return beginMedref(args, settings).ended;
}

/** Creates an API key. @param options such as `--rate 50/s` */
export async function createKey(redisUrl: string, ...options: string[]): Promise<string> {
  const args = ['keys', 'create', '--client', 'test', '--json', ...options];
  return (await medref(args, { REDIS_URL: redisUrl })).json<{ key: string }>().key;
}

/** A command that runs within this process. */
export interface BegunCommand extends Pick<RunningCommand, 'ended' | 'line'> {
  /** What it has written so far. */
  readonly stdout: { readonly text: string };
  readonly stderr: { readonly text: string };
  /** Asks it to stop, as its process does when it gets that signal. @returns what it left behind */
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
    // Imported as its commands are when they run: tsx would load what is required and what is imported twice.
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

/** Waits until what a command writes has a line that matches. @throws Error where it ends before */
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

/** A stream that keeps what is written to it. */
class Collected extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    this.emit('progress');
    done();
  }
}

/**
 * Starts `medref` as a process with these arguments and settings, in a session of its own where it is detached: from dist/,
 * or from another program than that, such as its bundle.
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

/** Runs `medref` to its end, as a process. */
export function medrefProcess(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<CommandResult> {
  return startMedref(args, settings).ended;
}

/** A key; none is printed but by the command that makes it, on stdout. */
const key = /medref_[0-9A-Za-z]{49}/;

/** A word that is shorter may be printed for what it means else. */
const leastLength = 6;

/** Looks through what a command left behind, which every command of the tests does. @throws Error that names the secret's setting */
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

/** Tokens and secrets as they are, passwords and queries of URLs, and the path of the webhook's. */
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

/** A module that reads files beside itself finds them where it lies, wherever the bundle lies. */
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
 * Bundles a program, once in a process of tests.
 * @param program its path within the project, such as `bin/medref.ts`
 * @returns the path of the bundle, which is gone when this process ends
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
    // Split, so that a command loads what it imports as it runs, and nothing else.
    ...{ bundle: true, splitting: true, format: 'esm', platform: 'node', target: 'node20' },
    // A package of both kinds as a module: jsonc-parser hides what it requires from a bundler.
    mainFields: ['module', 'main'],
    ...{ plugins: [placesOfModules], logLevel: 'error' },
    // What packages require of Node, which a module does not have by itself.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
  });
  await stop();
  return join(outdir, `${basename(program, '.ts')}.mjs`);
}
