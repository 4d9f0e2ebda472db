import { expect } from 'chai';
import { readLastImportSince } from '../../importer/report.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { productKeys as keys } from '../support/keys.ts';
import { useRedis } from '../support/redis-server.ts';

describe('the history of imports', () => {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(() => redis.flushall());

  const due = '2026-03-01T03:00:00.000Z';
  const found = () => readLastImportSince(redis, keys, new Date(due));
  const add = (outcome: string, startedAt: string) =>
    redis.xadd(keys.imports, '*', 'report', JSON.stringify({ outcome, startedAt }));

  for (const outcome of ['published', 'unchanged', 'refused', 'paused']) {
    it(`knows an import that was ${outcome} and began when the next one was due, not one that began before`, async () => {
      await add(outcome, '2026-03-01T02:59:59.999Z');
      expect(await found()).to.equal(null);
      await add(outcome, due);
      for (let n = 0; n < 98; n++) await add('failed', '2026-03-01T03:00:01.000Z');
      expect(await found()).to.include({ outcome, startedAt: due });
    });
  }

  for (const outcome of ['failed', 'locked', 'rolled-back']) {
    it(`does not take one that was ${outcome} for an import that came to its end`, async () => {
      await add(outcome, '2026-03-01T03:00:01.000Z');
      expect(await found()).to.equal(null);
    });
  }

  it('is empty where there is none yet, and where its key is of another type', async () => {
    expect(await found()).to.equal(null);
    await redis.set(keys.imports, 'no history');
    expect(await found()).to.equal(null);
  });
});
