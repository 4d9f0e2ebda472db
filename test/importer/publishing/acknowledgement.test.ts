import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import { awaitAcknowledgement } from '../../../importer/publishing/acknowledgement.ts';
import { rollBack } from '../../../importer/rollback.ts';
import { NotPublishedError } from '../../../importer/scripts/publish.ts';
import { products as productCollection } from '../../../shared/collections/product.ts';
import { readHistory } from '../../../shared/ended-imports.ts';
import { collectionKeys } from '../../../shared/keys.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { aheadOfClock, importRecords } from '../../support/importing.ts';
import { oneServer } from '../../support/one-server.ts';
import { products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('a publication', () => {
  const master = useRedis({ settings: { 'repl-diskless-sync-delay': '0' } });
  const replica = useRedis();
  const keys = collectionKeys('medref', productCollection);
  const version = aheadOfClock + 1;
  const logged: string[] = [];
  const logger = pino({ base: null, timestamp: false }, { write: (line) => void logged.push(line) });
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(master().url);
    await redis.set(keys.next, aheadOfClock);
    await importRecords(products(1), productCollection, { redisUrl: master().url });
  });
  beforeEach(() => logged.splice(0));
  after(() => redis.disconnect());

  const warnings = (replicas?: number) => awaitAcknowledgement(redis, { keys, version, replicas, logger });

  it('waits for nobody, and says nothing, where there is no replica', async () => {
    expect([await warnings(), await warnings(0), logged]).to.deep.equal([[], [], []]);
  });

  it('that a failover has lost already is told from one that is there', async () => {
    const lost = await awaitAcknowledgement(redis, { keys, version: version + 1, replicas: undefined }).catch(
      (it) => it,
    );
    expect(lost).to.be.instanceOf(NotPublishedError);
    expect(lost.message).to.equal(
      `Version ${version + 1} was published, and a failover or a crash has lost it. Run it again.`,
    );
  });

  describe('with a replica', () => {
    before(async () => {
      const itself = oneServer(await connectForWriting(replica().url));
      await itself.replicaof('127.0.0.1', master().port);
      while (!(await redis.info('replication')).includes('state=online')) await sleep(20);
      itself.disconnect();
    });

    it('is acknowledged by it, which the log tells', async () => {
      expect(await warnings()).to.deep.equal([]);
      expect(JSON.parse(logged[0] as string)).to.deep.include({ version, replicas: 1, acknowledged: 1 });
    });

    it('warns where that does not have it within a second, or where more are asked for', async () => {
      replica().pause();
      const report = await importRecords(products(3), productCollection, {
        ...{ redisUrl: master().url, force: true },
      });
      replica().resume();
      expect([report.outcome, report.warnings.length]).to.deep.equal(['published', 1]);
      expect(report.warnings[0]).to.match(/^0 of 1 replicas had version \d+ within 1 s\. A failover /);
      expect(report.durationMs).to.be.within(1_000, 5_000);
      const [last] = await readHistory(redis, keys, 1);
      expect(last).to.deep.include({ version: report.version, warnings: report.warnings });
      expect((await warnings(2))[0]).to.match(/^1 of 2 replicas had version /);
    });

    it('of a rollback warns likewise; where nobody is asked for, it waits for nobody', async () => {
      await importRecords(products(2), productCollection, {
        redisUrl: master().url,
        force: true,
        waitReplicas: 0,
      });
      replica().pause();
      const context = { redis, keyPrefix: 'medref', to: null, maxNumberWaitMs: 0 };
      const result = await rollBack(productCollection, context);
      replica().resume();
      const told = result.outcome === 'rolled-back' ? result.report.warnings : [];
      expect(told[0]).to.match(/^0 of 1 replicas/);
      expect((await readHistory(redis, keys, 1))[0]).to.deep.include({ warnings: told });
    });

    it('whose replicas cannot be asked about says so, and stands', async () => {
      await redis.call('ACL', 'SETUSER', 'default', '-wait');
      const told = await warnings();
      await redis.call('ACL', 'SETUSER', 'default', '+wait');
      expect(told).to.deep.equal([
        `Whether replicas have version ${version} is not known: The Redis user may not do what medref needs. See docs/OPERATIONS.md for its rights.`,
      ]);
    });
  });
});
