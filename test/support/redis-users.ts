// The users of deploy/redis/: a test's Redis knows them, and what a test starts comes as the one that it would be.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRedisServer } from '../../bin/setup.mjs';

/** Whom the files name. */
export type RedisUser = 'api' | 'importer' | 'operator' | 'admin' | 'health';

/** Servers that know the users, by their port. */
const knowing = new Set<number>();

/** The file for a server of this version. */
export function usersFile(majorVersion: number): string {
  const name = majorVersion < 7 ? 'users-6.2.acl' : 'users.acl';
  return readFileSync(new URL(`../../deploy/redis/${name}`, import.meta.url), 'utf8');
}

/** The first part of the version of the server that tests start. */
export function majorVersion(): number {
  const printed = execFileSync(findRedisServer() as string, ['--version'], { encoding: 'utf8' });
  return Number(/v=(\d+)/.exec(printed)?.[1] ?? 7);
}

let path: string | undefined;

/** A file with the users, beside whom tests may do everything by hand. */
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

/** Notes that a server knows the users, or knows them no more. */
export function noteUsers(port: number, areKnown: boolean): void {
  if (areKnown) knowing.add(port);
  else knowing.delete(port);
}

/** The URL with which one of them comes; as it is where it names somebody, or the server knows none of them. */
export function asUser(url: string, user: RedisUser): string {
  const port = Number(/^redis:\/\/127\.0\.0\.1:(\d+)(?:\/|$)/.exec(url)?.[1]);
  return knowing.has(port) ? withUser(url, user) : url;
}

/** The URL with the user and the password of the files. */
export function withUser(url: string, user: RedisUser): string {
  return url.replace('://', `://${user}:${user}-password@`);
}
