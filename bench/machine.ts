// In: the machine. Out: what a reader of figures must know of it: hardware, kernel, and the versions of everything involved.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { arch, cpus, freemem, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { findRedisServer } from '../bin/setup.mjs';
import { advisedFsync } from '../demo/private-redis.ts';
import { onPath } from './installed.ts';
import { postgresPrograms } from './peers/postgres.ts';
import { project } from './project.ts';

/** Name and value, in the order of the page. */
export type Machine = readonly (readonly [name: string, value: string])[];

const packages = ['@hapi/hapi', 'ioredis', 'undici', 'joi', 'stream-json', 'json-server', 'pg'];

/** Describes this machine. */
export function describeMachine(): Machine {
  const processors = cpus();
  const programs = postgresPrograms();
  return [
    ['Processor', `${processors[0]?.model.trim() ?? 'unknown'}, ${processors.length} cores`],
    ['Memory', `${Math.round(totalmem() / 1024 ** 3)} GiB`],
    ['System', `${platform()} ${release()}, ${arch()}`],
    ['Node', process.versions.node],
    ['Redis', versionOf(findRedisServer(), ['--version'], /v=([\d.]+)/)],
    ['Its append-only file', `appendfsync ${advisedFsync()}`],
    ['wrk', versionOf('wrk', ['-v'], /^wrk (\S+)/)],
    ['nginx', versionOf(onPath('nginx'), ['-v'], /nginx\/([\d.]+)/)],
    ['PostgreSQL', versionOf(programs && join(programs, 'postgres'), ['--version'], /([\d.]+)/)],
    ['Packages', packages.map((name) => `${name} ${installedVersion(name)}`).join(', ')],
  ];
}

/** How many bytes programs may still take: of memory, and of the disk that has a folder. */
export async function freeRoom(folder: string): Promise<{ memory: number; disk: number }> {
  const { bavail, bsize } = await statfs(folder);
  return { memory: freeMemory(), disk: bavail * bsize };
}

/** Linux says how much there is without what it only keeps for later; other systems say less. */
function freeMemory(): number {
  try {
    const kibibytes = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1];
    return kibibytes === undefined ? freemem() : Number(kibibytes) * 1024;
  } catch {
    return freemem();
  }
}

function versionOf(program: string | undefined, args: readonly string[], pattern: RegExp): string {
  if (program === undefined) return 'not there';
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return pattern.exec(`${stdout ?? ''}${stderr ?? ''}`)?.[1] ?? 'unknown';
}

function installedVersion(name: string): string {
  const text = readFileSync(join(project, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
