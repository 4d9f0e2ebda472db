// Starts a Redis for tests of the scripts: empty before each test, with the lock `lock`, and with helpers for publications.

import { expect } from 'chai';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { type ContentName, contentKeys } from '../../../shared/store/keys.ts';
import {
  type KeySize,
  type Lock,
  type Publication,
  publish,
  type StagingSession,
} from '../../../shared/store/scripts.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { useRedis } from '../../support/redis-server.ts';

export const token = 'the token';
export const lifetimeMs = 60_000;
export const lock: Lock = { keys, token };

/** Returns the Redis of a suite. */
export function useLockedRedis(): () => Redis {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    await redis.set(keys.lock, token);
  });
  return () => redis;
}

/** Returns the session of a version that was begun under a name. */
export const begun = (name: ContentName): StagingSession => ({ ...lock, name, lifetimeMs });

/** Stages every key of a content, each with one field. Its value does not matter to the scripts. */
export async function stage(redis: Redis, name: ContentName): Promise<void> {
  await redis.sadd(keys.staged, String(name));
  for (const key of contentKeys(keys, name)) {
    await redis.hset(key, '1', `of ${name}`);
    await redis.pexpire(key, lifetimeMs);
  }
}

export const document = (number: number) => JSON.stringify({ version: number, content: number });

/** Publishes a content that was staged. */
export function publishOne(
  redis: Redis,
  number: number,
  { stored = number, ...changes }: Partial<Publication> & { readonly stored?: ContentName } = {},
  rejects: readonly string[] = ['{"total":0}'],
): Promise<void> {
  const publication: Publication = {
    ...{ number, document: document(number), expectedLive: '', sizes: sizes(stored) },
    ...{ changes: [null, null], graceMs: 5_000 },
    leaving: { versions: [], contents: [], changeSets: [] },
    ...{
      pause: '',
      rolledBack: '',
      reinstated: '',
      checkedAt: 'now',
      validators: '',
      candidate: null,
      ...changes,
    },
  };
  return publish(redis, lock, publication, { report: `{"version":${number}}`, historyCap: 3, rejects });
}

/** Returns the key sizes of a content that {@link stage} has staged. */
function sizes(content: ContentName): KeySize[] {
  return contentKeys(keys, content).map((key) => ({ key, command: 'HLEN', size: 1 }));
}

export async function expectError(
  promise: Promise<unknown>,
  type: new (...args: never[]) => Error,
): Promise<void> {
  const outcome = await promise.then(
    () => 'it went well',
    (error: unknown) => error,
  );
  expect(outcome).to.be.instanceOf(type);
}
