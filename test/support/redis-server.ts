// A real Redis server in a temporary folder for one suite of tests, and the faults that tests make. Servers end with the test
// process, however it ends.

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

/** A private server with the faults a test can inflict on it. */
export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** Freezes the process: connections stay open and nothing answers (SIGSTOP). */
  pause(): void;
  /** Wakes the frozen process (SIGCONT). */
  resume(): void;
  /** Ends the process at once, as a crash would (SIGKILL), and resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts it again on the same port and data folder; ends the running process in order first, if any. */
  restart(): Promise<void>;
  /** Ends the process and removes its folder; does nothing when that was done before. */
  stop(): Promise<void>;
}

export interface TestRedisOptions {
  /** On for tests that expect data to survive `kill` or `restart`. */
  appendOnly?: boolean;
  /** Off for a server without the users of deploy/redis/, to which everybody comes as it says. */
  users?: boolean;
  /** Further settings of Redis. */
  settings?: Readonly<Record<string, string>>;
}

/** Whether the server that tests start can tell when a write is on its disk (WAITAOF): Redis from 7.2 on, and Valkey. */
export function serverKnowsWaitaof(): boolean {
  return advisedFsync() === 'everysec';
}

/** How Redis is set up in proofs: in `npm run prove` as docs/REDIS.md says for its version; in `npm test` it writes nothing. */
export function proofSetUp(): TestRedisOptions {
  const isFull = process.env['PROVE'] === 'full';
  return isFull ? { appendOnly: true, settings: { appendfsync: advisedFsync() } } : {};
}

/** Starts a server for tests; whoever calls this calls `stop`. */
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
      // At once: nobody reads its files any more, and stopping in order takes 100 ms.
      server.process.kill('SIGKILL');
      await server.ended;
      noteUsers(port, false);
      await rm(dataFolder, { recursive: true, force: true });
      process.off('exit', removeAtExit);
    },
  };
}

/** A server that a failed test did not stop does not keep mocha from ending; it ends with mocha. */
async function startUnheld(options: PrivateRedisOptions): Promise<PrivateRedis> {
  const server = await startPrivateRedis(options);
  server.process.unref();
  for (const stream of [server.process.stdout, server.process.stderr]) (stream as Socket).unref();
  return server;
}

/**
 * One server for a mocha suite: started before its tests, stopped after them.
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
