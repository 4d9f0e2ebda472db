// Runs a private Redis or Valkey server on a loopback port, with its data in a folder.

import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { findRedisServer } from '../bin/setup.mjs';
import { type Child, startChild } from './child.ts';

export interface PrivateRedisOptions {
  /** The folder of the server's files; created if missing. */
  dataFolder: string;
  /** Writes are on disk before the reply, so that a restart finds the data. By default nothing is written. */
  appendOnly?: boolean;
  /** This port and no other; without it, any free one. */
  port?: number;
  /** Further settings of Redis, or others than ours. */
  settings?: Readonly<Record<string, string>>;
  /** A user that may run INFO, if the settings do not allow that without a password. */
  login?: { readonly user: string; readonly password: string };
}

/** A running server. */
export interface PrivateRedis extends Child {
  readonly url: string;
  readonly port: number;
}

const NO_SERVER =
  'The PATH has no Redis 6.2 or newer, and no Valkey. Run "node bin/setup.mjs", which installs one.';
// Below the system's range for outgoing connections: otherwise a reconnecting client could get the server's own port and
// connect to itself.
const PORTS = { from: 20_000, to: 30_000 };
const TRIES = 20;
const START_TIMEOUT_MS = 20_000;

/** The server's command, once found. */
let command: string | undefined;

/** When Redis flushes its append-only file: before each reply, or each second. */
export type Fsync = 'always' | 'everysec';

/**
 * Returns how the installed server flushes its append-only file by docs/REDIS.md: every second if it can confirm writes (WAITAOF,
 * Redis 7.2 and Valkey).
 */
export function advisedFsync(): Fsync {
  command ??= findRedisServer();
  if (command === undefined) throw new Error(NO_SERVER);
  const told = execFileSync(command, ['--version'], { encoding: 'utf8' });
  const [, major = 0, minor = 0] = (/v=(\d+)\.(\d+)/.exec(told) ?? []).map(Number);
  return major > 7 || (major === 7 && minor >= 2) ? 'everysec' : 'always';
}

/** Starts a private server; resolves when it has loaded its data. */
export async function startPrivateRedis(options: PrivateRedisOptions): Promise<PrivateRedis> {
  command ??= findRedisServer();
  if (command === undefined) throw new Error(NO_SERVER);
  await mkdir(options.dataFolder, { recursive: true });
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? randomInt(PORTS.from, PORTS.to);
    const child = await startChild(command, serverArguments(options, port));
    const outcome = await Promise.race([answers(port, child, options.login), child.ended]);
    if (outcome === 'ready') return { ...child, port, url: `redis://127.0.0.1:${port}` };

    await child.stop();
    const portTaken = /Address already in use/i.test(child.output.stdout);
    if (portTaken && options.port === undefined && attempt < TRIES) continue;
    throw new Error(
      `The private Redis server did not start on port ${port}. Its output: ${child.output.stdout}`,
    );
  }
}

function serverArguments(
  { dataFolder, appendOnly = false, settings: others = {} }: PrivateRedisOptions,
  port: number,
): string[] {
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    'protected-mode': 'yes',
    daemonize: 'no',
    dir: dataFolder,
    appendonly: appendOnly ? 'yes' : 'no',
    appendfsync: 'always', // Otherwise a crash may lose the last writes.
    save: '',
    'maxmemory-policy': 'noeviction',
    'lazyfree-lazy-expire': 'yes',
    ...others,
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

/** Resolves when this process, not another server on its port, has loaded its data; or when it has ended. */
async function answers(
  port: number,
  { pid, process: server }: Child,
  login: PrivateRedisOptions['login'],
): Promise<'ready' | 'silent'> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  const runs = () => server.exitCode === null && server.signalCode === null;
  while (runs() && Date.now() < deadline) {
    const info = await askInfo(port, login);
    if (info.includes(`\nprocess_id:${pid}\r`) && info.includes('\nloading:0\r')) return 'ready';
    await sleep(10);
  }
  return 'silent';
}

/** Returns the server's reply to INFO, or what arrives within a second; an empty text without a server. */
function askInfo(port: number, login: PrivateRedisOptions['login']): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect({ host: '127.0.0.1', port });
    socket.setEncoding('utf8').setTimeout(1_000, () => socket.destroy());
    // After QUIT the server closes the connection, so the end needs no parsing.
    const auth = login ? `AUTH ${login.user} ${login.password}\r\n` : '';
    socket.on('connect', () => socket.write(`${auth}INFO\r\nQUIT\r\n`));
    socket.on('data', (text: string) => {
      answer += text;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
  });
}
