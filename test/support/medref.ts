// The built command line, run as its users run it: a process of its own with only the settings that a test gives.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const entry = fileURLToPath(new URL('../../dist/bin/medref.js', import.meta.url));

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

/** Starts `medref` with these arguments and settings, in a session of its own where it is detached. */
export function startMedref(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
  { detached = false } = {},
): RunningCommand {
  const child = spawn(process.execPath, [entry, ...args], {
    detached,
    env: { PATH: process.env['PATH'], LOG_LEVEL: 'warn', ADMIN_PORT: '0', ...settings },
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
  const ended = once(child, 'close').then(([code]) => ({
    code: code as number | null,
    stdout,
    stderr,
    json: () => JSON.parse(stdout),
  }));
  return {
    process: child,
    ended,
    async line(pattern) {
      for (;;) {
        const match = pattern.exec(stdout);
        if (match) return match;
        await Promise.race([
          once(child, 'progress'),
          ended.then((result) => {
            throw new Error(`medref ${args.join(' ')} ended with ${result.code}: ${result.stderr}`);
          }),
        ]);
      }
    },
  };
}

/** Runs `medref` to its end. */
export function medref(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<CommandResult> {
  return startMedref(args, settings).ended;
}
