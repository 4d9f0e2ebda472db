// A Redis for the tests of one script, as new for each of them and with a lock that is held; and the scripts by which a
// version comes as far as the one that is tested.

import { expect } from 'chai';
import type { BegunVersion, Held } from '../../../importer/scripts/held.ts';
import { type KeySize, type Publication, publish } from '../../../importer/scripts/publish.ts';
import { stageBlocks } from '../../../importer/scripts/stage-blocks.ts';
import { stagePages } from '../../../importer/scripts/stage-pages.ts';
import { type StagedRecord, stageRecords } from '../../../importer/scripts/stage-records.ts';
import { stageRuns } from '../../../importer/scripts/stage-runs.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import type { ContentName } from '../../../shared/store/keys.ts';
import { packIds } from '../../../shared/store/packed-ids.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { useRedis } from '../../support/redis-server.ts';

export const token = 'the token';
export const lifetimeMs = 60_000;
export const held: Held = { keys, token };
export const drugs = keys.derived('drugs');

/** The Redis of a suite. */
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

/** A version that was begun under a name. */
export const begun = (name: ContentName): BegunVersion => ({ ...held, name, lifetimeMs });

/** A record as it is staged, without a check behind it. */
export const record = (position: number, id: number, json = `{"id":${id}}`): StagedRecord => ({
  ...{ position, id, stored: Buffer.from(json) },
});

export const block = (number: number, ids: number[], stored: Buffer | null = Buffer.from('block')) => ({
  ...{ number, stored, order: packIds(ids, number) },
});

/** Stages all that a content has: what is in blocks and in the index does not matter here. */
export async function stageWhole(redis: Redis, name: ContentName, records: StagedRecord[]): Promise<void> {
  for (const part of keys.parts) {
    await stageRecords(redis, begun(name), part, records);
    await stageBlocks(redis, begun(name), part, [
      block(
        0,
        records.map(({ id }) => id),
      ),
    ]);
    await stageRuns(redis, begun(name), part, [['0:0', Buffer.from('entry')]]);
    const page = { number: 0, stored: Buffer.from('page'), fence: Buffer.from('entry') };
    await stagePages(redis, begun(name), part, [page]);
  }
}

export const document = (number: number) => JSON.stringify({ version: number, content: number });

/** Publishes a content of one record. */
export function publishOne(
  redis: Redis,
  number: number,
  { stored = number, ...changes }: Partial<Publication> = {},
  rejects: readonly string[] = ['{"total":0}'],
): Promise<void> {
  const publication: Publication = {
    ...{ number, stored, document: document(number), expectedLive: '', sizes: sizes(stored) },
    ...{ changes: [null, null], graceMs: 5_000 },
    leaving: { versions: [], contents: [], changeSets: [] },
    ...{ hold: '', undone: '', redone: '', checkedAt: 'now', validators: '', ...changes },
  };
  return publish(redis, held, publication, { report: `{"version":${number}}`, historyCap: 3, rejects });
}

/** Of a content of one record. */
export function sizes(content: ContentName): KeySize[] {
  return keys.parts.flatMap((part): KeySize[] => {
    const { records, order, blocks, entries, fences } = part.content(content);
    return [
      ...[records, order, blocks, entries].map((key) => ({ key, command: 'HLEN' as const, size: 1 })),
      { key: fences, command: 'ZCARD', size: 1 },
    ];
  });
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
