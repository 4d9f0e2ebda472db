import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { pino } from 'pino';
import { awaitDisk, diskWarnings } from '../../../importer/publishing/disk.ts';
import { rollBack } from '../../../importer/rollback.ts';
import { products as productCollection } from '../../../shared/collections/product.ts';
import { type HistoryEntry, readHistory } from '../../../shared/ended-imports.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { aheadOfClock, importRecords } from '../../support/importing.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { medref } from '../../support/medref.ts';
import { products } from '../../support/records.ts';
import { serverKnowsWaitaof, useRedis } from '../../support/redis-server.ts';
import { withUser } from '../../support/redis-users.ts';

const everySecond = { appendOnly: true, settings: { appendfsync: 'everysec' } };
const written = { key: keys.live, what: 'version 7' };
const needsWaitaof = serverKnowsWaitaof() ? '' : ' (left out: the Redis here is older than 7.2)';

describe(`what was written to a Redis that tells when it is on its disk${needsWaitaof}`, () => {
  if (needsWaitaof) {
    it.skip('is waited for');
    return;
  }
  const server = useRedis(everySecond);
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());

  it('is waited for, without a warning, and the log tells of it', async () => {
    const logged: string[] = [];
    const logger = pino({ base: null, timestamp: false }, { write: (line) => void logged.push(line) });
    for (let i = 0; i < 2; i++) {
      await redis.set(keys.next, aheadOfClock + i);
      expect(await awaitDisk(redis, { ...written, logger })).to.deep.equal([]);
    }
    const told = { level: 30, what: 'version 7', msg: 'It is on the disk of Redis.' };
    expect(logged.map((line) => JSON.parse(line))).to.deep.equal([told, told]);
    expect(await diskWarnings(redis)).to.deep.equal([]);
  });

  it('is waited for likewise by a user who may not ask how Redis is set up', async () => {
    await redis.call('ACL', 'SETUSER', 'renter', 'on', '>renter-password', '~*', '+@all', '-config');
    const renter = await connectForWriting(withRenter(server().url));
    await renter.set(keys.next, aheadOfClock);
    expect(await awaitDisk(renter, written)).to.deep.equal([]);
    await redis.config('SET', 'appendonly', 'no');
    expect(await awaitDisk(renter, written), 'no append-only file').to.deep.equal([]);
    await redis.config('SET', 'appendonly', 'yes');
    renter.disconnect();
  });

  it('is no longer waited for than two seconds, and warned of, in the report and in the history', async () => {
    await redis.config('SET', 'appendfsync', 'no');
    const options = { redisUrl: server().url, force: true };
    const report = await importRecords(products(1), productCollection, options);
    await redis.config('SET', 'appendfsync', 'everysec');
    const warning =
      `Redis did not have version ${report.version} on its disk within 2 s. If its machine crashes now, that may be lost. ` +
      'With appendfsync no, Redis leaves it to its system when it writes to its disk: set it to everysec or always.';
    expect([report.outcome, report.warnings]).to.deep.equal(['published', [warning]]);
    expect(report.durationMs).to.be.within(2_000, 6_000);
    const [last] = await readHistory(redis, keys, 1);
    expect(last).to.deep.include({ version: report.version, warnings: [warning] });
  });

  it('cannot be asked about by a user without the right, which is said', async () => {
    await redis.call('ACL', 'SETUSER', 'importer', '-waitaof');
    const importer = await connectForWriting(withUser(server().url, 'importer'));
    expect(await awaitDisk(importer, written)).to.deep.equal([
      'Whether version 7 is on the disk of Redis is not known: The Redis user may not do what medref needs. See docs/OPERATIONS.md for its rights.',
    ]);
    importer.disconnect();
  });
});

describe('what was written to a Redis that does not tell when it is on its disk', () => {
  // As one older than 7.2 would be.
  const folder = mkdtempSync(join(tmpdir(), 'medref-test-older-'));
  const include = join(folder, 'redis.conf');
  writeFileSync(include, serverKnowsWaitaof() ? 'rename-command WAITAOF ""\n' : '');
  const server = useRedis({ ...everySecond, settings: { ...everySecond.settings, include } });
  const why =
    'This Redis is set to appendfsync everysec and cannot tell when it has written to its disk, as Redis 7.2 can: a crash of its ' +
    'machine may lose what was reported. Set appendfsync to always, or take a newer Redis.';
  const warningOf = (what: string) => `Whether ${what} is on the disk of Redis is not known. ${why}`;
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
    await redis.set(keys.next, aheadOfClock);
  });
  after(() => {
    redis.disconnect();
    rmSync(folder, { recursive: true });
  });

  it('is warned of in the report and in the history of an import, and of a rollback', async () => {
    const options = { redisUrl: server().url, force: true };
    const report = await importRecords(products(1), productCollection, options);
    expect(report.warnings).to.deep.equal([warningOf(`version ${report.version}`)]);
    await importRecords(products(2), productCollection, options);
    const result = await rollBack(productCollection, {
      ...{ redis, keyPrefix: 'medref', to: null, maxNumberWaitMs: 0 },
    });
    const rolledBack = result.outcome === 'rolled-back' ? result.report : null;
    const history = (await readHistory(redis, keys, 100)) as HistoryEntry[];
    expect(history.map(({ outcome, warnings }) => [outcome, warnings])).to.deep.equal([
      ['rolled-back', [warningOf(`version ${aheadOfClock + 3}`)]],
      ['published', [warningOf(`version ${aheadOfClock + 2}`)]],
      ['published', [warningOf(`version ${aheadOfClock + 1}`)]],
    ]);
    expect(rolledBack?.warnings).to.deep.equal(history[0]?.warnings);
  });

  it('is warned of where a key is made, rotated and revoked, and by status', async () => {
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

  it('is not warned of where nobody may ask how Redis is set up', async () => {
    await redis.call('ACL', 'SETUSER', 'renter', 'on', '>renter-password', '~*', '+@all', '-config');
    const renter = await connectForWriting(withRenter(server().url));
    expect([await awaitDisk(renter, written), await diskWarnings(renter)]).to.deep.equal([[], []]);
    renter.disconnect();
  });

  it('is there before the reply with appendfsync always, and never without a file: nothing is warned of', async () => {
    await redis.config('SET', 'appendfsync', 'always');
    expect([await awaitDisk(redis, written), await diskWarnings(redis)]).to.deep.equal([[], []]);
    await redis.config('SET', 'appendfsync', 'everysec');
    await redis.config('SET', 'appendonly', 'no');
    expect([await awaitDisk(redis, written), await diskWarnings(redis)]).to.deep.equal([[], []]);
    await redis.config('SET', 'appendonly', 'yes');
  });

  it('is warned of by status where Redis leaves it to its system', async () => {
    await redis.config('SET', 'appendfsync', 'no');
    expect(await diskWarnings(redis)).to.deep.equal([
      'With appendfsync no, Redis leaves it to its system when it writes to its disk: set it to everysec or always.',
    ]);
  });
});

function withRenter(url: string): string {
  return url.replace('://', '://renter:renter-password@');
}
