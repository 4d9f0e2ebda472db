import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import { awaitDisk, awaitDurability, diskWarnings } from '../../importer/durability.ts';
import { rollBack } from '../../importer/rollback.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { NotPublishedError } from '../../shared/store/scripts.ts';
import { aheadOfClock, importRecords } from '../support/importing.ts';
import { productKeys as keys } from '../support/keys.ts';
import { medref } from '../support/medref.ts';
import { oneServer } from '../support/one-server.ts';
import { products } from '../support/records.ts';
import { serverKnowsWaitaof, useRedis } from '../support/redis-server.ts';
import { withUser } from '../support/redis-users.ts';

const everySecond = { appendOnly: true, settings: { appendfsync: 'everysec' } };
const onDisk = (redis: Redis) => awaitDisk(redis, keys.live, 'version 7');
const needsWaitaof = serverKnowsWaitaof() ? '' : ' (left out: the Redis here is older than 7.2)';

describe(`a write to a Redis that confirms its disk${needsWaitaof}`, () => {
  if (needsWaitaof) {
    it.skip('is awaited');
    return;
  }
  const server = useRedis(everySecond);
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());

  it('is awaited, without a warning', async () => {
    await redis.set(keys.next, aheadOfClock);
    expect(await onDisk(redis)).to.deep.equal([]);
    expect(await diskWarnings(redis)).to.deep.equal([]);
  });

  it('is awaited for a user who may not read the settings', async () => {
    await redis.call('ACL', 'SETUSER', 'renter', 'on', '>renter-password', '~*', '+@all', '-config');
    const renter = await connectForWriting(withRenter(server().url));
    await renter.set(keys.next, aheadOfClock);
    expect(await onDisk(renter)).to.deep.equal([]);
    await redis.config('SET', 'appendonly', 'no');
    expect(await onDisk(renter), 'no append-only file').to.deep.equal([]);
    await redis.config('SET', 'appendonly', 'yes');
    renter.disconnect();
  });

  it('is awaited for at most two seconds, with a warning in the report', async () => {
    await redis.config('SET', 'appendfsync', 'no');
    const options = { redisUrl: server().url, force: true };
    const report = await importRecords(products(1), productCollection, options);
    await redis.config('SET', 'appendfsync', 'everysec');
    const warning =
      `Redis did not have version ${report.version} on its disk within 2 s. A crash of its machine can lose it. ` +
      'With appendfsync no, the operating system decides when to write to disk. Set it to everysec or always.';
    expect([report.outcome, report.warnings]).to.deep.equal(['published', [warning]]);
    expect(report.durationMs).to.be.within(2_000, 6_000);
  });

  it('cannot be confirmed for a user without the right, who gets a warning', async () => {
    await redis.call('ACL', 'SETUSER', 'importer', '-waitaof');
    const importer = await connectForWriting(withUser(server().url, 'importer'));
    expect(await onDisk(importer)).to.deep.equal([
      'Unknown whether version 7 is on the disk of Redis: The Redis user lacks a right that medref needs. docs/REDIS.md lists the rights.',
    ]);
    importer.disconnect();
  });
});

describe('a write to a Redis that cannot confirm its disk', () => {
  // Acts like a Redis that is older than 7.2.
  const folder = mkdtempSync(join(tmpdir(), 'medref-test-older-'));
  const include = join(folder, 'redis.conf');
  writeFileSync(include, serverKnowsWaitaof() ? 'rename-command WAITAOF ""\n' : '');
  const server = useRedis({ ...everySecond, settings: { ...everySecond.settings, include } });
  const why =
    'This Redis is set to appendfsync everysec and cannot report its writes to disk, as Redis 7.2 can: a crash of its ' +
    'machine may lose reported data. Set appendfsync to always, or use a newer Redis.';
  const warningOf = (what: string) => `Unknown whether ${what} is on the disk of Redis. ${why}`;
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
    await redis.set(keys.next, aheadOfClock);
  });
  after(() => {
    redis.disconnect();
    rmSync(folder, { recursive: true });
  });

  it('gets a warning in the report of an import and of a rollback', async () => {
    const options = { redisUrl: server().url, force: true };
    const report = await importRecords(products(1), productCollection, options);
    expect(report.warnings).to.deep.equal([warningOf(`version ${report.version}`)]);
    await importRecords(products(2), productCollection, options);
    const result = await rollBack(productCollection, {
      ...{ redis, keyPrefix: 'medref', to: null, maxNumberWaitMs: 0 },
    });
    const rolledBack = result.outcome === 'rolled-back' ? result.report : null;
    expect(rolledBack?.warnings).to.deep.equal([warningOf(`version ${aheadOfClock + 3}`)]);
  });

  it('gets a warning when a key is created, rotated or revoked, and in status', async () => {
    const settings = { REDIS_URL: server().url };
    const made = await medref(['keys', 'create', '--client', 'A', '--json'], settings);
    const { id } = made.json<{ id: string }>();
    expect(made.stderr).to.include(warningOf(`key ${id}`));
    const rotated = await medref(['keys', 'rotate', id, '--json'], settings);
    expect(rotated.stderr).to.include(warningOf(`key ${rotated.json<{ id: string }>().id}`));
    const revoked = await medref(['keys', 'revoke', id], settings);
    expect([revoked.code, revoked.stderr.includes(warningOf(`the end of key ${id}`))]).to.deep.equal([
      0,
      true,
    ]);
    const status = await medref(['status', '--json'], settings);
    expect(status.json<{ warnings: string[] }>().warnings).to.deep.equal([why]);
  });

  it('gets no warning if the user may not read the settings', async () => {
    await redis.call('ACL', 'SETUSER', 'renter', 'on', '>renter-password', '~*', '+@all', '-config');
    const renter = await connectForWriting(withRenter(server().url));
    expect([await onDisk(renter), await diskWarnings(renter)]).to.deep.equal([[], []]);
    renter.disconnect();
  });

  it('is safe with appendfsync always; status warns without a file', async () => {
    await redis.config('SET', 'appendfsync', 'always');
    expect([await onDisk(redis), await diskWarnings(redis)]).to.deep.equal([[], []]);
    await redis.config('SET', 'appendfsync', 'everysec');
    await redis.config('SET', 'appendonly', 'no');
    expect(await onDisk(redis)).to.deep.equal([]);
    expect(await diskWarnings(redis)).to.deep.equal([
      'Redis has no append-only file (appendonly no): a restart loses versions and API keys since its last snapshot, or all of them. Set appendonly to yes.',
    ]);
    await redis.config('SET', 'appendonly', 'yes');
  });

  it('gets a warning in status if the operating system decides when to write', async () => {
    await redis.config('SET', 'appendfsync', 'no');
    expect(await diskWarnings(redis)).to.deep.equal([
      'With appendfsync no, the operating system decides when to write to disk. Set it to everysec or always.',
    ]);
  });
});

function withRenter(url: string): string {
  return url.replace('://', '://renter:renter-password@');
}

describe('a publication', () => {
  const master = useRedis({ settings: { 'repl-diskless-sync-delay': '0' } });
  const replica = useRedis();
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

  const warnings = () => awaitDurability(redis, { keys, version, logger });

  it('waits for nothing without a replica', async () => {
    expect([await warnings(), logged]).to.deep.equal([[], []]);
  });

  it('is reported as lost if a failover has lost it', async () => {
    const lost = await awaitDurability(redis, { keys, version: version + 1 }).catch((it) => it);
    expect(lost).to.be.instanceOf(NotPublishedError);
    expect(lost.message).to.equal(
      `Version ${version + 1} was published, but a failover or a crash lost it. Run the command again.`,
    );
  });

  describe('with a replica', () => {
    before(async () => {
      const itself = oneServer(await connectForWriting(replica().url));
      await itself.replicaof('127.0.0.1', master().port);
      while (!(await redis.info('replication')).includes('state=online')) await sleep(20);
      itself.disconnect();
    });

    it('is confirmed by it', async () => {
      expect([await warnings(), logged]).to.deep.equal([[], []]);
    });

    it('gets a warning in report and log if it is not confirmed within a second', async () => {
      replica().pause();
      const report = await importRecords(products(3), productCollection, {
        ...{ redisUrl: master().url, force: true, logger },
      });
      replica().resume();
      expect([report.outcome, report.warnings.length]).to.deep.equal(['published', 1]);
      expect(report.warnings[0]).to.match(/^0 of 1 replicas confirmed version \d+ within 1 s\. A failover /);
      expect(report.durationMs).to.be.within(1_000, 5_000);
      const warned = logged.map((line) => JSON.parse(line)).filter(({ level }) => level === 40);
      expect(warned.map(({ msg }) => msg)).to.deep.equal(report.warnings);
    });

    it('by a rollback gets the same warning', async () => {
      await importRecords(products(2), productCollection, { redisUrl: master().url, force: true });
      replica().pause();
      const context = { redis, keyPrefix: 'medref', to: null, maxNumberWaitMs: 0 };
      const result = await rollBack(productCollection, context);
      replica().resume();
      const warned = result.outcome === 'rolled-back' ? result.report.warnings : [];
      expect(warned[0]).to.match(/^0 of 1 replicas/);
    });

    it('stands with a warning if replicas cannot be asked', async () => {
      await redis.call('ACL', 'SETUSER', 'default', '-wait');
      const reported = await warnings();
      await redis.call('ACL', 'SETUSER', 'default', '+wait');
      expect(reported).to.deep.equal([
        `Unknown whether replicas have version ${version}: The Redis user lacks a right that medref needs. docs/REDIS.md lists the rights.`,
      ]);
    });
  });
});
