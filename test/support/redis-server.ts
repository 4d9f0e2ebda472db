// A real Redis server in a temporary folder for one test suite, and the faults that tests cause. Servers end with the test
// process, even if it crashes.

import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  advisedFsync,
  type PrivateRedis,
  type PrivateRedisOptions,
  startPrivateRedis,
} from '../../demo/private-redis.ts';
import { noteUsers, usersOfTests } from './redis-users.ts';

/** A private server with the faults that a test can cause. */
export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** Freezes the process (SIGSTOP): connections stay open and get no replies. */
  pause(): void;
  /** Wakes the frozen process (SIGCONT). */
  resume(): void;
  /** Ends the process at once, as a crash would (SIGKILL); resolves when it has ended. */
  kill(): Promise<void>;
  /** Starts the server again on the same port and data folder; ends a running process gracefully first. */
  restart(): Promise<void>;
  /** Ends the process and removes its folder; does nothing the second time. */
  stop(): Promise<void>;
}

export interface TestRedisOptions {
  /** Set it if a test expects data to survive `kill` or `restart`. */
  appendOnly?: boolean;
  /** False: a server without the users of deploy/redis/; clients use the URL unchanged. */
  users?: boolean;
  /** More settings of Redis. */
  settings?: Readonly<Record<string, string>>;
}

/** Returns whether the server of tests can confirm that a write is on disk (WAITAOF): Redis 7.2 or newer, and Valkey. */
export function serverKnowsWaitaof(): boolean {
  return advisedFsync() === 'everysec';
}

/** Returns the Redis settings of proofs: docs/REDIS.md for its version in `npm run prove`; in `npm test` Redis writes nothing. */
export function proofSetUp(): TestRedisOptions {
  const isFull = process.env['PROVE'] === 'full';
  return isFull ? { appendOnly: true, settings: { appendfsync: advisedFsync() } } : {};
}

/** Starts a server for tests; the caller calls `stop`. */
export async function startTestRedis({
  appendOnly = false,
  settings: others = {},
  users = !('requirepass' in others),
}: TestRedisOptions = {}): Promise<TestRedis> {
  const settings = { ...(users && { aclfile: usersOfTests() }), ...others };
  const dataFolder = await mkdtemp(join(tmpdir(), 'medref-test-redis-'));
  const removeAtExit = () => rmSync(dataFolder, { recursive: true, force: true });
  process.once('exit', removeAtExit);

  let server = await startUnheld({ dataFolder, appendOnly, settings });
  const { port, url } = server;
  noteUsers(port, users);
  return {
    url,
    port,
    pause: () => void server.process.kill('SIGSTOP'),
    resume: () => void server.process.kill('SIGCONT'),
    async kill() {
      server.process.kill('SIGKILL');
      await server.ended;
    },
    async restart() {
      await server.stop();
      server = await startUnheld({ dataFolder, appendOnly, port, settings });
    },
    async stop() {
      // At once: its files are not needed any more, and a graceful stop takes 100 ms.
      server.process.kill('SIGKILL');
      await server.ended;
      noteUsers(port, false);
      await rm(dataFolder, { recursive: true, force: true });
      process.off('exit', removeAtExit);
    },
  };
}

/** Starts a server that does not keep mocha running if a failed test did not stop it; it ends with mocha. */
async function startUnheld(options: PrivateRedisOptions): Promise<PrivateRedis> {
  const server = await startPrivateRedis(options);
  server.process.unref();
  for (const stream of [server.process.stdout, server.process.stderr]) (stream as Socket).unref();
  return server;
}

/**
 * Declares one server for a mocha suite. It starts before the tests and stops after them.
 *
 *     const redis = useRedis();
 *     it('…', () => connect(redis().url));
 */
export function useRedis(options: TestRedisOptions = {}): () => TestRedis {
  let server: TestRedis | undefined;
  before(async () => {
    server = await startTestRedis(options);
  });
  after(async () => {
    await server?.stop();
  });
  return () => {
    if (server === undefined)
      throw new Error('The Redis of a suite is there inside its hooks and tests only.');
    return server;
  };
}
