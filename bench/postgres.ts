// Starts a private PostgreSQL server in a temporary folder, which listens on a socket only.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Child } from '../demo/child.ts';
import { onPath } from './installed.ts';
import type { Workspace } from './workspace.ts';

/** A running server. */
export interface Postgres {
  readonly child: Child;
  readonly socketFolder: string;
}

const packaged = '/usr/lib/postgresql';
const startTimeoutMs = 30_000;

/** Returns the folder of the newest PostgreSQL's programs; `undefined` if there is none. */
export function postgresPrograms(): string | undefined {
  const folders = existsSync(packaged) ? readdirSync(packaged) : [];
  const versions = folders.sort((a, b) => Number(b) - Number(a)).map((name) => join(packaged, name, 'bin'));
  const initdb = onPath('initdb');
  const all = initdb === undefined ? versions : [join(initdb, '..'), ...versions];
  return all.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')));
}

/** Starts an empty server with default settings. */
export async function startPostgres(workspace: Workspace, programs: string): Promise<Postgres> {
  const folder = workspace.path('postgres');
  const data = join(folder, 'data');
  await mkdir(folder);
  const [command, ...prefix] = await asOwner(folder);
  const run = (program: string, args: readonly string[]): [string, string[]] => {
    const whole = [...prefix, join(programs, program), ...args];
    return command === undefined ? [whole[0] as string, whole.slice(1)] : [command, whole];
  };
  await workspace.run(
    ...run('initdb', ['-D', data, '-U', 'bench', '-A', 'trust', '-E', 'UTF8', '--no-sync']),
  );
  const child = await workspace.start(...run('postgres', ['-D', data, '-k', folder, '-h', '']));
  for (const deadline = Date.now() + startTimeoutMs; !existsSync(join(folder, '.s.PGSQL.5432')); ) {
    if (child.process.exitCode !== null || Date.now() > deadline)
      throw new Error(`PostgreSQL did not start: ${child.output.stderr.trim()}`);
    await sleep(50);
  }
  await untilReady(child);
  return { child, socketFolder: folder };
}

/** Returns a command prefix for root, because PostgreSQL refuses to run as root: the package's user owns the folder and runs it. */
async function asOwner(folder: string): Promise<string[]> {
  if (process.getuid?.() !== 0) return [];
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'])));
  await chown(folder, uid as number, gid as number);
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
}

async function untilReady(child: Child): Promise<void> {
  for (const deadline = Date.now() + startTimeoutMs; Date.now() < deadline; await sleep(50)) {
    if (child.output.stderr.includes('database system is ready')) return;
  }
  throw new Error(`PostgreSQL did not become ready: ${child.output.stderr.trim()}`);
}
