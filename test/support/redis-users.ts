// The users of deploy/redis/: a test's Redis knows them, and each command of a test uses its own user.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRedisServer } from '../../bin/setup.mjs';

/** The users in the files. */
export type RedisUser = 'api' | 'importer' | 'operator' | 'admin' | 'health';

/** The ports of servers that know the users. */
const knowing = new Set<number>();

/** Returns the text of the users file for a major version of Redis. */
export function usersFile(majorVersion: number): string {
  const name = majorVersion < 7 ? 'users-6.2.acl' : 'users.acl';
  return readFileSync(new URL(`../../deploy/redis/${name}`, import.meta.url), 'utf8');
}

/** Returns the major version of the server that tests start. */
export function majorVersion(): number {
  const printed = execFileSync(findRedisServer() as string, ['--version'], { encoding: 'utf8' });
  return Number(/v=(\d+)/.exec(printed)?.[1] ?? 7);
}

let path: string | undefined;

/** Writes a file with the users and returns its path; in it, the default user of tests may do everything. */
export function usersOfTests(): string {
  if (path !== undefined) return path;
  const folder = mkdtempSync(join(tmpdir(), 'medref-test-users-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  path = join(folder, 'users.acl');
  writeFileSync(
    path,
    usersFile(majorVersion()).replace(/^user default .*$/m, 'user default on nopass ~* &* +@all'),
  );
  return path;
}

/** Records whether a server knows the users. */
export function noteUsers(port: number, areKnown: boolean): void {
  if (areKnown) knowing.add(port);
  else knowing.delete(port);
}

/** Returns the URL with a user. It is unchanged if it names a user already, or if the server does not know the users. */
export function asUser(url: string, user: RedisUser): string {
  const port = Number(/^redis:\/\/127\.0\.0\.1:(\d+)(?:\/|$)/.exec(url)?.[1]);
  return knowing.has(port) ? withUser(url, user) : url;
}

/** Returns the URL with a user and its password in the files. */
export function withUser(url: string, user: RedisUser): string {
  return url.replace('://', `://${user}:${user}-password@`);
}
