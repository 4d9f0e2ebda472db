// The command line: as a function, which is quick; and built, as a process of its own, which is what users run. Either has
// only the settings that a test gives.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { asUser, type RedisUser } from './redis-users.ts';
import { withoutSecrets } from './secrets.ts';

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
      giveWay: () => undefined,
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
      asked.abort(new Error(`It was stopped by ${signal}.`));
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
