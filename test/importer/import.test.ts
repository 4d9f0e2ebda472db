import { pbkdf2 } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import { type ImportResult, reportOf } from '../../importer/report.ts';
import { rollBack } from '../../importer/rollback.ts';
import { companies as companyCollection } from '../../shared/collections/companies.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { readHistory, readLastRejects } from '../../shared/import-history.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { collectionKeys, contentKeys } from '../../shared/store/keys.ts';
import { documentOf, readKeptVersions, readLiveVersion, type Version } from '../../shared/store/versions.ts';
import {
  aheadOfClock,
  type ImportChanges,
  importFrom,
  importRecords,
  importText,
} from '../support/importing.ts';
import { keepKeySpace, readKeySpace } from '../support/key-space.ts';
import { productKeys as keys, readRecords } from '../support/keys.ts';
import { company, product, products } from '../support/records.ts';
import { startRedisProxy, strikeOnce } from '../support/redis-proxy.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

describe('an import', () => {
  const server = useRedis();
  const startUpstream = upstreamServers();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(() => redis.flushall());

  const importProducts = (records: readonly unknown[], changes: ImportChanges & { redisUrl?: string } = {}) =>
    importRecords(records, productCollection, { redisUrl: server().url, ...changes });
  const importProductText = (text: string, changes: ImportChanges = {}) =>
    importText(text, productCollection, { redisUrl: server().url, ...changes });
  const live = () => readLiveVersion(redis, keys);
  const liveRecords = async () => {
    const { content } = (await live()) ?? { content: '0' };
    return (await readRecords(redis, keys.content(content))).map((text) => JSON.parse(text));
  };
  /** Publishes a list that no check refuses. @returns the new version's number */
  const publish = async (records: readonly unknown[], changes: ImportChanges = {}): Promise<number> => {
    const { outcome, version, reason } = await importProducts(records, changes);
    expect(outcome, reason ?? '').to.equal('published');
    return version as number;
  };
  /** Returns the names of all contents and change sets of which Redis has keys, staged or published. */
  const storedNames = async () => {
    const names = (await redis.keys('*:*:*:*')).map((key) => key.split(':').at(-2));
    return [...new Set(names)].sort();
  };

  it('reports its progress, without a percentage for a paged list', async () => {
    const reported: boolean[] = [];
    const onProgress: ImportChanges['onProgress'] = ({ arrival }) => void reported.push(arrival !== null);
    await importProducts(products(3), { onProgress });
    expect(reported).to.deep.equal([true]);
    const upstream = await startUpstream((response, request) => {
      const page = Number(new URL(request.url ?? '', 'http://x').searchParams.get('page') ?? 1);
      const next = page < 3 ? { next: { href: `?page=${page + 1}` } } : {};
      response.end(JSON.stringify({ data: [product(page)], _links: next }));
    });
    reported.length = 0;
    await importFrom(upstream.url(), productCollection, { redisUrl: server().url, force: true, onProgress });
    expect(reported, 'the first page may be the only page').to.deep.equal([true, false, false]);
  });

  it("publishes the list in upstream's order", async () => {
    const records = [product(5), product(3), product(9)];
    const report = await importProducts(records);
    const { version } = report;
    expect(report).to.deep.equal({
      ...{ collection: 'products', outcome: 'published', version, previousVersion: null },
      ...{ read: 3, written: 3, rejected: 0, added: 3, changed: 0, removed: 0 },
      ...{ durationMs: report.durationMs, reason: null, causes: [], despite: [], warnings: [] },
      ...{ by: null, why: null, candidate: null },
      isLiveDamaged: false,
    });
    expect(report.durationMs).to.be.a('number').within(0, 30_000);
    expect(await liveRecords()).to.deep.equal(records);
    expect(await live()).to.deep.include({ version, content: String(version), totalCount: 3, forced: false });
    expect(String(version)).to.match(/^20\d{12}$/);
  });

  it('counts added, changed and removed records', async () => {
    const first = await publish(products(10));
    const next = [...products(9).slice(1), product(1, { published: false }), product(20), product(21)];
    const report = await importProducts(next);
    expect(report).to.deep.include({ outcome: 'published', previousVersion: first });
    expect(report.version).to.be.above(first);
    expect(report).to.deep.include({ added: 2, changed: 1, removed: 1 });
    expect(await liveRecords()).to.deep.equal(next);
  });

  it('publishes nothing if the records, in order, equal the live version', async () => {
    const version = await publish(products(5));
    const before = await live();
    expect(await importProducts(products(5))).to.deep.include({
      ...{ outcome: 'unchanged', version, previousVersion: version },
      ...{ read: 5, written: 5, rejected: 0, added: 0, changed: 0, removed: 0 },
    });
    expect(await live()).to.deep.equal(before);
    expect(await storedNames()).to.deep.equal([String(version)]);
  });

  it('recognizes the same records by another URL or in another JSON form', async () => {
    const version = await publish(products(5));
    const other = products(5).map(({ product: named, ...rest }) => ({ more: 1, ...rest, product: named }));
    const escaped = JSON.stringify(other, null, '\t').replaceAll('D', '\\u0044');
    expect(await importProductText(escaped)).to.deep.include({ outcome: 'unchanged', version });
    const upstream = await startUpstream((response) => {
      response.end(
        products(5)
          .map((record) => JSON.stringify(record))
          .join('\n'),
      );
    });
    const report = await importFrom(upstream.url('/all.jsonl'), productCollection, {
      redisUrl: server().url,
    });
    expect(report).to.deep.include({ outcome: 'unchanged', version });
  });

  it('publishes another order as a new version without changed records', async () => {
    await importProducts(products(5));
    const report = await importProducts(products(5).reverse());
    expect(report).to.deep.include({ outcome: 'published', added: 0, changed: 0, removed: 0 });
    expect(await liveRecords()).to.deep.equal(products(5).reverse());
  });

  it('rejects records individually, with position, path, reason and raw text', async () => {
    const texts = [
      JSON.stringify(product(1)),
      JSON.stringify(product(2)).replace('"id":2', '"id":9007199254740993'),
      JSON.stringify(product(1, { published: false })),
      JSON.stringify(product(3)).replace('true', '"yes"'),
      '[1]',
      JSON.stringify(product(4)).replace('{"product"', '{"published":false,"product"'),
    ];
    const report = await importProductText(`[${texts.join(',')}]`, { maxRejectPercent: 100 });
    expect(report).to.deep.include({ outcome: 'published', read: 6, written: 1, rejected: 5 });
    const { total, rejects } = await readLastRejects(redis, keys);
    expect(total).to.equal(5);
    expect(rejects.map(({ position, path, reason }) => [position, path, reason])).to.deep.equal([
      [2, '$.product.id', 'must be an integer from 1 to 9007199254740991'],
      [3, '$.product.id', 'is a duplicate of the record at position 1'],
      [4, '$.published', 'must be a boolean'],
      [5, '$', 'must be of type object'],
      [6, '$.published', rejects[4]?.reason],
    ]);
    expect(rejects.map(({ raw }) => raw)).to.deep.equal(texts.slice(1));
  });

  it('stores a limited number of rejects with their total, and a limited part of each', async () => {
    const bad = Array.from({ length: 1_010 }, (_, i) => ({ nothing: 'x'.repeat(i === 0 ? 10_000 : 1) }));
    await importProducts([product(1), ...bad], { maxRejectPercent: 100 });
    const { total, rejects } = await readLastRejects(redis, keys);
    expect(total).to.equal(1_010);
    expect(rejects).to.have.length(1_000);
    expect(rejects[0]?.raw).to.have.length(4_097);
    expect(rejects.map(({ position }) => position)).to.deep.equal(
      Array.from({ length: 1_000 }, (_, i) => i + 2),
    );
  });

  it('finds duplicates across many batches', async () => {
    const records = [...products(450), product(1), product(350), product(451)];
    const report = await importProducts(records);
    expect(report).to.deep.include({ outcome: 'published', read: 453, written: 451, rejected: 2 });
    const { rejects } = await readLastRejects(redis, keys);
    expect(rejects.map(({ position, reason }) => [position, reason])).to.deep.equal([
      [451, 'is a duplicate of the record at position 1'],
      [452, 'is a duplicate of the record at position 350'],
    ]);
  });

  it('reports unknown members once, with the number of records', async () => {
    const records = products(3).map((record, i) => (i === 0 ? record : { ...record, atc: 'B01' }));
    const { warnings } = await importProducts(records);
    expect(warnings).to.deep.equal(['Unknown members were ignored: $.atc (2 records).']);
    expect(await liveRecords()).to.deep.equal(products(3));
  });

  describe('is refused, and the live version stays,', () => {
    let version: number;
    const expectRefused = async (report: ImportResult, reason: RegExp) => {
      expect(report).to.deep.include({ outcome: 'refused', version: null, previousVersion: version });
      expect(report.reason).to.match(reason);
      expect(await live()).to.deep.include({ version });
      expect(await liveRecords()).to.deep.equal(products(100));
      const candidate = report.written === 0 ? [] : [String(report.candidate)];
      expect(await storedNames()).to.deep.equal([String(version), ...candidate]);
    };
    let restore: () => Promise<void>;
    before(async () => {
      await redis.flushall();
      version = await publish(products(100));
      restore = await keepKeySpace(redis);
    });
    beforeEach(() => restore());

    it('if there are no records', async () => {
      await expectRefused(await importProducts([]), /no valid record: 0 read/);
    });

    it('if no record is valid', async () => {
      const report = await importProducts([{}, {}], { maxRejectPercent: 100 });
      await expectRefused(report, /no valid record: 2 read, 2 rejected/);
    });

    it('if more live ids than MAX_SHRINK_PERCENT are absent', async () => {
      await expectRefused(await importProducts(products(79)), /21 of the 100 live ids are absent \(21.0 %\)/);
    });

    it('if other ids replaced too many live ones', async () => {
      const others = products(130).slice(30);
      await expectRefused(await importProducts(others), /30 of the 100 live ids are absent/);
    });

    it('if more records than MAX_REJECT_PERCENT are rejected', async () => {
      const records = [...products(100), {}, {}];
      await expectRefused(
        await importProducts(records),
        /2 of the 102 records read were rejected \(2\.0 %\)/,
      );
    });

    it('if more of the remaining records than MAX_CHANGE_PERCENT changed', async () => {
      const next = products(90).map((it, i) => (i < 46 ? { ...it, published: false } : it));
      await expectRefused(
        await importProducts(next),
        /^46 of the 90 remaining records differ \(51\.1 %\); MAX_CHANGE_PERCENT allows 50 %\.$/,
      );
    });

    it('with all reasons, not only the first', async () => {
      const { reason } = await importProducts([...products(50), {}]);
      expect(reason).to.match(/1 of the 51 records.*50 of the 100 live ids/);
    });

    it('even with --force if no record is valid', async () => {
      await expectRefused(await importProducts([], { force: true }), /no valid record/);
      await expectRefused(await importProducts([{}], { force: true }), /no valid record/);
    });
  });

  it('passes exactly at the limit of a check', async () => {
    await importProducts(products(100));
    expect((await importProducts(products(80))).outcome).to.equal('published');
    const records = [...products(99), {}];
    expect((await importProducts(records, { maxRejectPercent: 1 })).outcome).to.equal('published');
  });

  describe('with changed records', () => {
    /** Returns the products from 1 to 10, with this many changed records. */
    const changing = (count: number) =>
      products(10).map((it, i) => (i < count ? { ...it, published: false } : it));
    beforeEach(() => importProducts(products(10)));

    it('passes exactly at MAX_CHANGE_PERCENT; added and removed ids do not count', async () => {
      expect((await importProducts(changing(6))).outcome).to.equal('refused');
      expect((await importProducts([...changing(6), ...products(30).slice(10)])).outcome).to.equal('refused');
      expect((await importProducts(changing(5))).outcome).to.equal('published');
      expect((await importProducts(products(10), { maxChangePercent: 49.9 })).outcome).to.equal('refused');
      // Of the nine remaining products, three change: 33.3 %.
      const next = changing(5)
        .slice(0, 9)
        .map((it, i) => (i < 3 ? { ...it, published: true } : it));
      expect((await importProducts(next, { maxChangePercent: 33 })).reason).to.match(
        /^3 of the 9 remaining records/,
      );
      expect((await importProducts(next, { maxChangePercent: 34 })).outcome).to.equal('published');
    });

    it('uses the singular for one record', async () => {
      const { reason } = await importProducts(changing(1), { maxChangePercent: 0 });
      expect(reason).to.match(/^1 of the 10 remaining records differs \(10\.0 %\)/);
    });

    it('reports a refusal in a dry run, and passes with --force', async () => {
      const dry = await importProducts(changing(10), { dryRun: true });
      expect(dry).to.deep.include({ outcome: 'dry-run', changed: 10 });
      expect(dry.reason).to.match(/^10 of the 10 remaining records differ \(100\.0 %\)/);
      expect(await importProducts(changing(10), { dryRun: true, force: true })).to.deep.include({
        ...{ outcome: 'dry-run', reason: null },
      });
      expect(await importProducts(changing(10), { force: true })).to.deep.include({
        ...{ outcome: 'published', changed: 10 },
      });
    });

    it('passes without a live version, and with a damaged one, which is not compared', async () => {
      const live = await readLiveVersion(redis, keys);
      await redis.del(keys.content(live?.version as number).records);
      const report = await importProducts(changing(10), { maxChangePercent: 0 });
      expect(report).to.deep.include({ outcome: 'published', changed: 0, reason: null });
      await redis.flushall();
      expect((await importProducts(changing(10), { maxChangePercent: 0 })).outcome).to.equal('published');
    });
  });

  it('publishes in spite of the checks with --force, and says so', async () => {
    await importProducts(products(100));
    const report = await importProducts([product(1), {}], { force: true });
    expect(report).to.deep.include({ outcome: 'published', written: 1, rejected: 1, removed: 99 });
    expect(await live()).to.deep.include({ version: report.version, forced: true });
    expect((await readHistory(redis, keys, 1))[0]).to.deep.include({ forced: true });
  });

  it('stays unchanged with --force if the records equal the live version', async () => {
    await importProducts(products(3));
    expect((await importProducts(products(3), { force: true })).outcome).to.equal('unchanged');
  });

  it('runs checks before it compares: live records with too many rejects are refused', async () => {
    await importProducts(products(10));
    expect((await importProducts([...products(10), {}])).outcome).to.equal('refused');
  });

  it('keeps the configured number of versions, and deletes the oldest', async () => {
    const versions: number[] = [];
    for (const count of [10, 11, 12]) versions.push(await publish(products(count), { keepVersions: 3 }));
    await redis.hset(keys.damaged, String(versions[0]), 'It leaves.', String(versions[1]), 'It stays.');
    versions.push(await publish(products(13), { keepVersions: 3, force: true }));
    const kept = await readKeptVersions(redis, keys);
    expect(kept.map(({ version }) => version)).to.deep.equal(versions.slice(1));
    for (const key of contentKeys(keys, versions[0] as number))
      expect(await redis.pttl(key), key).to.be.within(50_000, 60_000);
    expect(await redis.hkeys(keys.damaged), 'damage that readers found').to.deep.equal([String(versions[1])]);
    for (const key of versions.slice(1).flatMap((number) => contentKeys(keys, number)))
      expect(await redis.pttl(key), key).to.equal(-1);
  });

  it('writes the history, newest first', async () => {
    await importProducts(products(10));
    await importProducts(products(10));
    await importProducts([]);
    await importProductText('nonsense');
    const history = await readHistory(redis, keys, 10);
    expect(history.map(({ outcome }) => outcome)).to.deep.equal([
      'failed',
      'refused',
      'unchanged',
      'published',
    ]);
    for (const entry of history) expect(entry.endedAt >= entry.startedAt).to.equal(true);
    expect(history[1]?.reason).to.match(/no valid record/);
  });

  it('gives versions increasing numbers, each with its own second', async () => {
    const versions: number[] = [];
    for (const count of [1, 2, 3]) versions.push(await publish(products(count)));
    expect([...new Set(versions)].sort((a, b) => a - b)).to.deep.equal(versions);
    const kept = await readKeptVersions(redis, keys);
    expect(kept.map(({ version }) => version)).to.deep.equal(versions);
    const seconds = kept.map(({ publishedAt }) => Math.floor(Date.parse(publishedAt) / 1000));
    expect(new Set(seconds)).to.have.property('size', 3);
    expect([...seconds].sort((a, b) => a - b)).to.deep.equal(seconds);
  });

  it('dates the version after a wrongly dated one by the clock again, with a warning', async () => {
    const version = await publish(products(1));
    const [published] = await readKeptVersions(redis, keys);
    const wrong = documentOf({ ...(published as Version), publishedAt: '2099-01-01T00:00:00.000Z' });
    await redis.set(keys.live, wrong);
    await redis.hset(keys.versionDocuments, String(version), wrong);
    const logged: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line) => void logged.push(line) });
    const { warnings } = await importProducts(products(2), { logger });
    expect(warnings).to.have.length(1);
    expect(warnings[0]?.startsWith(`Version ${version} is dated 2099-01-01T00:00:00.000Z, `)).to.equal(true);
    expect(warnings[0]).to.include('which is in the future: a clock was wrong');
    expect(logged.join('')).to.include('which is in the future');
    expect(Date.parse((await live())?.publishedAt ?? '')).to.be.within(Date.now() - 60_000, Date.now());
    expect((await importProducts(products(3), { logger })).warnings).to.deep.equal([]);
  });

  it('is locked while another import holds the lock, and names the holder', async () => {
    let respond: () => void = () => undefined;
    const asked = new Promise<void>((resolveAsked) => {
      respond = resolveAsked;
    });
    let finish: () => void = () => undefined;
    const upstream = await startUpstream((response) => {
      finish = () => response.end(JSON.stringify(products(1)));
      respond();
    });
    const first = importFrom(upstream.url(), productCollection, { redisUrl: server().url });
    await asked;
    const second = await importProducts(products(2));
    expect(second).to.deep.include({ outcome: 'locked', version: null, read: 0, written: 0, rejected: 0 });
    expect(second.reason).to.match(/^The lock is held by process \d+ on \S+ since \d{4}-\d\d-\d\dT/);
    const other = await importRecords([company(1)], companyCollection, { redisUrl: server().url });
    expect(other.outcome).to.equal('published');
    finish();
    expect((await first).outcome).to.equal('published');
    expect(await redis.exists(keys.lock)).to.equal(0);
    expect((await importProducts(products(2))).outcome).to.equal('published');
  });

  it('cannot publish after another import has taken over its lock', async () => {
    const upstream = await startUpstream((response) => {
      response.write('[');
      response.write(JSON.stringify(product(1)));
      redis.set(keys.lock, JSON.stringify({ holder: 'another', since: 'now' })).then(() => response.end(']'));
    });
    const report = await importFrom(upstream.url(), productCollection, { redisUrl: server().url });
    expect(report).to.deep.include({ outcome: 'failed' });
    expect(report.reason).to.match(/lost its lock/);
    expect(await live()).to.equal(null);
    const [last] = await readHistory(redis, keys, 9);
    expect(last, 'its end is in the history nevertheless').to.deep.include({ outcome: 'failed' });
    expect(last?.reason).to.match(/lost its lock/);
    expect(await redis.exists(keys.lock)).to.equal(1);
  });

  it('reports a publication whose reply did not arrive', async () => {
    const lost = { moment: 'after', commandsPass: true, act: () => sleep(700) } as const;
    const proxy = await startRedisProxy(
      server().port,
      strikeOnce(({ name }) => name === 'publish', lost),
    );
    try {
      const report = await importProducts(products(2), { redisUrl: proxy.url, replyMs: 500 });
      expect(report).to.deep.include({ outcome: 'published', written: 2 });
      expect(report.reason).to.equal(null);
      expect(await live()).to.deep.include({ version: report.version, totalCount: 2 });
    } finally {
      await proxy.close();
    }
    const history = await readHistory(redis, keys, 9);
    expect(history.map(({ outcome }) => outcome)).to.deep.equal(['published']);
  });

  it('deletes the staged keys of a dead import before it stages its own', async () => {
    const staged = [...contentKeys(keys, aheadOfClock)];
    await redis.multi().set(keys.next, aheadOfClock).sadd(keys.staged, aheadOfClock).exec();
    for (const key of staged) await redis.set(key, 'x');
    await importProducts(products(2));
    expect(await redis.exists(...staged, keys.staged)).to.equal(0);
    expect(await live(), 'its number is not used again').to.deep.include({ version: aheadOfClock + 1 });
  });

  it('restarts when upstream changes during the read, up to three times, then fails', async () => {
    let changes = 2;
    let version = 0;
    const upstream = await startUpstream((response, request) => {
      const page = Number(new URL(request.url ?? '', 'http://x').searchParams.get('page') ?? 1);
      if (page === 2 && changes > 0) {
        changes -= 1;
        version += 1;
      }
      const next = page === 1 ? { next: { href: '/list?page=2' } } : {};
      response.setHeader('medref-version', String(version));
      response.end(JSON.stringify({ data: [product(page)], _links: next }));
    });
    await redis.set(keys.next, aheadOfClock);
    const report = await importFrom(upstream.url('/list'), productCollection, { redisUrl: server().url });
    const third = aheadOfClock + 3; // Each walk takes one number.
    expect(report).to.deep.include({ outcome: 'published', version: third, read: 2, written: 2 });
    expect(await liveRecords()).to.deep.equal(products(2));
    changes = 4;
    const failed = await importFrom(upstream.url('/list'), productCollection, { redisUrl: server().url });
    expect(failed.outcome).to.equal('failed');
    expect(upstream.requests).to.have.length(6 + 8);
    expect(await redis.exists(keys.staged)).to.equal(0);
  });

  it('deletes the staged keys of an abandoned attempt, even if writes were pending', async () => {
    let version = 0;
    const upstream = await startUpstream((response, request, nth) => {
      const page = Number(new URL(request.url ?? '', 'http://x').searchParams.get('page') ?? 1);
      // The threads that compress are busy for a while.
      if (nth === 1) for (let n = 0; n < 8; n++) pbkdf2('', '', 30_000, 64, 'sha512', () => undefined);
      if (nth === 2) version = 1;
      const next = page === 1 ? { next: { href: '/list?page=2' } } : {};
      response.setHeader('medref-version', String(version));
      const data = page === 1 ? products(200) : [product(201)];
      response.end(JSON.stringify({ data, _links: next }));
    });
    await redis.set(keys.next, aheadOfClock);
    const report = await importFrom(upstream.url('/list'), productCollection, { redisUrl: server().url });
    expect(report).to.deep.include({ outcome: 'published', version: aheadOfClock + 2, written: 201 });
    expect(await redis.keys(`medref:{products}:${aheadOfClock + 1}:*`)).to.deep.equal([]);
  });

  describe('that restarts because Redis lost its staged keys before the publication', () => {
    /** Runs an import, and deletes a part of its staged data right before the first publication, or before another script. */
    const importLosing = async (records: readonly unknown[], changes: ImportChanges = {}, at = 'publish') => {
      const act = async () => {
        for (const name of await redis.smembers(keys.staged)) await redis.del(keys.content(name).records);
      };
      const fate = strikeOnce(({ name }) => name === at, { moment: 'before', act });
      const proxy = await startRedisProxy(server().port, fate);
      try {
        return await importProducts(records, { redisUrl: proxy.url, ...changes });
      } finally {
        await proxy.close();
      }
    };

    it('evaluates no lost data, which would look like changed records', async () => {
      await publish(products(10));
      const report = await importLosing(products(11), {}, 'stage-pages');
      expect(report).to.deep.include({ outcome: 'published', read: 11, added: 1, changed: 0, reason: null });
    });

    it('counts nothing of the first attempt if it fails before the next one', async () => {
      await importProducts([...products(100), {}]);
      const rejects = await readLastRejects(redis, keys);
      const logger = pino(
        { level: 'warn' },
        { write: (line) => void (line.includes('The import starts again.') && redis.del(keys.lock)) },
      );
      const report = await importLosing([...products(99), {}, {}], { logger, maxRejectPercent: 100 });
      expect(report).to.deep.include({ outcome: 'failed', read: 0, written: 0, rejected: 0, added: 0 });
      expect(report.reason).to.match(/lost its lock/);
      const [last] = await readHistory(redis, keys, 1);
      expect(last).to.deep.include({ read: 0, validators: null });
      expect(last, 'the version of upstream').not.to.have.property('upstreamVersion');
      expect(await readLastRejects(redis, keys)).to.deep.equal(rejects);
    });
  });

  const failures: Record<string, [text: string, reason: RegExp]> = {
    'is not JSON': ['<html>Not here</html>', /JSON/],
    'is truncated in the middle of a record': [
      JSON.stringify(products(50)).slice(0, 5_000),
      /cut off|ended|ends/i,
    ],
    'has no data': ['{"items":[]}', /data/],
    'has data that is not an array': ['{"data":{"1":2}}', /data/],
    'is nothing at all': ['', /empty|nothing|no /i],
  };
  for (const [what, [text, reason]] of Object.entries(failures)) {
    it(`fails with a plain reason, and the live version stays, if upstream ${what}`, async () => {
      const version = await publish(products(3));
      const report = await importProductText(text);
      expect(report).to.deep.include({ outcome: 'failed', version: null, previousVersion: version });
      expect(report.reason).to.match(reason).and.match(/\.$/);
      expect(report.read).to.equal(report.written + report.rejected);
      expect(await liveRecords()).to.deep.equal(products(3));
      expect(await storedNames()).to.deep.equal([String(version)]);
      expect(await redis.exists(keys.lock)).to.equal(0);
    });
  }

  it('closes its connections to upstream, however it ends', async () => {
    const upstream = await startUpstream((response, _, nth) => {
      if (nth <= 3) response.writeHead(404).end('not here');
      else response.end(nth === 4 ? JSON.stringify(products(3)) : '{"items":[]}');
    });
    for (const outcome of ['failed', 'failed', 'failed', 'published', 'failed']) {
      const report = await importFrom(upstream.url(), productCollection, { redisUrl: server().url });
      expect(report.outcome).to.equal(outcome);
    }
    // Without a close, the server would end idle connections after 5 s, and undici after 4 s.
    const soon = performance.now() + 1_500;
    while ((await upstream.openConnections()) > 0 && performance.now() < soon) await sleep(20);
    expect(await upstream.openConnections()).to.equal(0);
  });

  it('is interrupted by SIGTERM, and stores nothing', async () => {
    const stop = new AbortController();
    const upstream = await startUpstream((response) => {
      response.write(
        `[${products(250)
          .map((record) => JSON.stringify(record))
          .join(',')}`,
      );
      setTimeout(() => stop.abort(new Error('Stopped by SIGTERM.')), 100);
    });
    const report = await importFrom(upstream.url(), productCollection, {
      redisUrl: server().url,
      signal: stop.signal,
    });
    expect(report).to.deep.include({ outcome: 'interrupted', reason: 'Stopped by SIGTERM.' });
    expect((await redis.keys('*')).sort()).to.deep.equal([keys.next, keys.imports, keys.rejects].sort());
  });

  it('rebuilds a live version with any lost key, and reports it', async () => {
    let version = await publish(products(10));
    for (const n of contentKeys(keys, version).keys()) {
      const lost = contentKeys(keys, version)[n] as string;
      expect(await redis.del(lost), lost).to.equal(1);
      const report = await importProducts(products(10));
      expect(report, lost).to.deep.include({ outcome: 'published', previousVersion: version, added: 0 });
      expect(report.version).to.be.above(version);
      expect(report.warnings).to.have.length(2);
      const reason = `Version ${version} is incomplete in Redis; comparison skipped. The Redis key ${lost} has 0 elements, not `;
      expect(report.warnings[0]?.startsWith(reason), report.warnings[0]).to.equal(true);
      expect(await liveRecords()).to.deep.equal(products(10));
      version = report.version as number;
    }
  });

  it('builds a search index that the previous release did not have, although the list is the same', async () => {
    const version = await publish(products(5));
    const { searches, ...document } = JSON.parse((await redis.get(keys.live)) ?? '');
    const { drug, ...earlier } = searches;
    const text = JSON.stringify({ ...document, searches: earlier });
    await redis.multi().set(keys.live, text).hset(keys.versionDocuments, version, text).exec();
    const index = keys.content(version).exact['drug'] as string;
    await redis.del(index);
    const report = await importProducts(products(5));
    expect(report).to.deep.include({ outcome: 'published', added: 0, changed: 0, removed: 0 });
    expect(report.warnings[0]).to.include(`The search index ${index} is missing`);
    const built = keys.content(report.version as number).exact['drug'] as string;
    expect([drug > 0, await redis.hlen(built)]).to.deep.equal([true, drug]);
  });

  it('runs checks against a damaged live version by its known counts', async () => {
    const version = await publish(products(100));
    await redis.hdel(keys.content(version).records, '77');
    const report = await importProducts(products(1));
    expect(report).to.deep.include({ outcome: 'refused', removed: 99 });
    expect(report.reason).to.match(
      /^99 of the 100 live ids are absent .*\. \$\.barcodes fell from 100 elements/,
    );
    expect(await live()).to.deep.include({ version });
  });

  it('deletes versions if fewer are to be kept, even if nothing has changed', async () => {
    const versions: number[] = [];
    for (const count of [1, 2, 3, 4]) versions.push(await publish(products(count), { keepVersions: 4 }));
    const numbers = async () => (await readKeptVersions(redis, keys)).map(({ version }) => version);
    expect(await numbers()).to.deep.equal(versions);
    expect((await importProducts(products(4), { keepVersions: 2, dryRun: true })).outcome).to.equal(
      'dry-run',
    );
    expect(await numbers(), 'after a dry run').to.deep.equal(versions);
    await redis.hset(keys.damaged, String(versions[1]), 'It leaves.', String(versions[2]), 'It stays.');
    expect((await importProducts(products(4), { keepVersions: 2 })).outcome).to.equal('unchanged');
    expect(await numbers()).to.deep.equal(versions.slice(2));
    expect(await redis.hkeys(keys.damaged), 'damage that readers found').to.deep.equal([String(versions[2])]);
    for (const number of versions.slice(0, 2))
      for (const key of contentKeys(keys, number))
        expect(await redis.pttl(key), key).to.be.within(50_000, 60_000);
    for (const key of contentKeys(keys, versions[2] as number))
      expect(await redis.pttl(key), key).to.equal(-1);
  });

  it('keeps the earlier rejects if it reads nothing', async () => {
    await importProducts([...products(100), {}]);
    const rejected = await readLastRejects(redis, keys);
    expect(rejected.total).to.equal(1);
    expect(
      (await importFrom(new URL('file:///nothing/there.json'), productCollection, { redisUrl: server().url }))
        .outcome,
    ).to.equal('failed');
    expect(await readLastRejects(redis, keys)).to.deep.equal(rejected);
    await importProducts(products(100));
    expect((await readLastRejects(redis, keys)).total).to.equal(0);
  });

  it('enters the history as locked, unless it is a dry run or scheduled', async () => {
    const version = await publish(products(3));
    await redis.set(keys.lock, JSON.stringify({ holder: 'another', since: 'now', token: 'x' }));
    const report = await importProducts(products(4));
    expect(report).to.deep.include({ outcome: 'locked', previousVersion: version });
    await importProducts(products(4), { dryRun: true });
    expect((await importProducts(products(4), { scheduled: true })).outcome).to.equal('locked');
    const outcomes = (await readHistory(redis, keys, 9)).map(({ outcome }) => outcome);
    expect(outcomes).to.deep.equal(['locked', 'published']);
  });

  it('shows in a dry run the first records that would be rejected', async () => {
    const report = await importProducts([...products(5), {}, { product: 1 }], {
      dryRun: true,
      maxRejectPercent: 50,
    });
    expect(report.warnings).to.deep.equal([
      'The record at position 6 would be rejected: $.product is required.',
      'The record at position 7 would be rejected: $.product must be of type object.',
    ]);
  });

  it('accepts a share of rejects exactly at the limit, despite binary fractions', async () => {
    const records = [...products(93), ...Array.from({ length: 7 }, () => ({}))];
    expect((await importProducts(records, { maxRejectPercent: 7 })).outcome).to.equal('published');
    expect((await importProducts([...records, {}], { maxRejectPercent: 7 })).outcome).to.equal('refused');
  });

  it('counts and stores what it read before a failure, to the last record', async () => {
    const texts = Array.from({ length: 40 }, (_, i) => JSON.stringify(i % 2 ? {} : product(i + 1)));
    const report = await importProductText(`[${texts.join(',')},`);
    expect(report).to.deep.include({ outcome: 'failed', read: 40, written: 20, rejected: 20 });
    expect(await readLastRejects(redis, keys)).to.have.property('total', 20);
  });

  it('lists unknown members briefly, and says if there are more', async () => {
    const members = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`m${i}`, 1]));
    const { warnings } = await importProducts([{ ...product(1), ...members, ['x'.repeat(5_000)]: 1 }]);
    expect(warnings).to.have.length(1);
    expect(warnings[0])
      .to.have.length.below(5_000)
      .and.to.match(/others \(51 records\)/);
  });

  it('skips a paused collection if scheduled, and says since when', async () => {
    await importProducts(products(10));
    await redis.set(keys.pause, JSON.stringify({ since: 'yesterday', version: 1 }));
    const before = await readKeySpace(redis);
    const report = await importProducts(products(11), { scheduled: true });
    expect(report).to.deep.include({
      outcome: 'paused',
      reason: 'Paused since yesterday, after a rollback to version 1.',
    });
    const { [keys.imports]: history, ...after } = await readKeySpace(redis);
    expect(after).to.deep.equal(
      Object.fromEntries(Object.entries(before).filter(([key]) => key !== keys.imports)),
    );
    expect(history, 'the history says so').to.have.length(2);
    expect((await importProducts(products(11))).outcome).to.equal('published');
    expect(await redis.exists(keys.pause)).to.equal(0);
    expect((await importProducts(products(12), { scheduled: true })).outcome).to.equal('published');
  });

  describe('asks upstream conditionally', () => {
    let list: readonly unknown[];
    let etag: string;
    let asked: (string | undefined)[];
    let url: URL;
    beforeEach(async () => {
      [list, etag, asked] = [products(10), '"one"', []];
      const upstream = await startUpstream((response, request) => {
        asked.push(request.headers['if-none-match']);
        response.setHeader('etag', etag);
        if (request.headers['if-none-match'] === etag) response.statusCode = 304;
        response.end(response.statusCode === 304 ? '' : JSON.stringify({ data: list }));
      });
      url = upstream.url('/list?key=secret');
    });
    const importAgain = (changes: ImportChanges & { redisUrl?: string } = {}) =>
      importFrom(url, productCollection, { redisUrl: server().url, ...changes });
    /** Returns the report, without the duration, of an import that got 304 from upstream. */
    const unchanged = (version: number | null) => ({
      ...{ collection: 'products', outcome: 'unchanged', version, previousVersion: version, reason: null },
      ...{ read: 0, written: 0, rejected: 0, added: 0, changed: 0, removed: 0, warnings: [] },
    });

    it('for a single document; 304 is a success that renews the time of the check', async () => {
      const { version } = await importAgain();
      await redis.set(keys.checked, 'long ago');
      expect(await importAgain()).to.deep.include({
        ...{ outcome: 'unchanged', version, previousVersion: version, reason: null },
        ...{ read: 0, written: 0, rejected: 0, added: 0, changed: 0, removed: 0 },
      });
      expect(asked).to.deep.equal([undefined, '"one"']);
      const [last] = await readHistory(redis, keys, 1);
      expect(last?.validators).to.deep.equal({ etag: '"one"', lastModified: null });
      expect(await redis.get(keys.checked)).to.match(/^\d{4}-/);
      [list, etag] = [products(11), '"two"'];
      expect((await importAgain()).outcome).to.equal('published');
      expect((await importAgain()).read).to.equal(0);
      expect(asked).to.deep.equal([undefined, '"one"', '"one"', '"two"']);
      expect(JSON.stringify(await readKeySpace(redis))).not.to.include('secret');
    });

    it('with newer validators, if the same records come with others', async () => {
      await importAgain();
      etag = '"two"';
      expect((await importAgain()).outcome).to.equal('unchanged');
      await importAgain();
      expect(asked.at(-1)).to.equal('"two"');
    });

    it('but not after a refusal: the next import reads everything', async () => {
      await importAgain();
      [list, etag] = [[], '"two"'];
      expect((await importAgain()).outcome).to.equal('refused');
      await importAgain();
      expect(asked.at(-1)).to.equal(undefined);
    });

    it('but not after a rollback', async () => {
      await importAgain();
      [list, etag] = [products(11), '"two"'];
      await importAgain();
      await rollBack(productCollection, { redis, keyPrefix: 'medref', to: null, maxNumberWaitMs: 0 });
      expect((await importAgain()).reason).to.match(/data that you rolled back/);
      expect(asked.at(-1)).to.equal(undefined);
    });

    it('but not with --force, in a dry run, for another URL, or with a damaged live version', async () => {
      const { version } = await importAgain();
      await importAgain({ force: true });
      await importAgain({ dryRun: true });
      url = new URL('?key=other', url);
      await importAgain();
      url = new URL('?key=secret', url);
      await importAgain();
      await importAgain();
      expect(await redis.del(keys.content(version as number).order)).to.equal(1);
      expect((await importAgain()).outcome).to.equal('published');
      expect(asked).to.deep.equal([
        undefined,
        undefined,
        undefined,
        undefined,
        undefined,
        '"one"',
        undefined,
      ]);
    });

    it('and omits an earlier attempt whose pages changed meanwhile', async () => {
      let isMoving = false;
      const upstream = await startUpstream((response, request) => {
        const { pathname, searchParams } = new URL(request.url ?? '', 'http://x');
        const page = Number(searchParams.get('page') ?? 1);
        if (!isMoving) response.setHeader('etag', etag);
        if (!isMoving && request.headers['if-none-match'] === etag) response.writeHead(304).end();
        else if (!isMoving) response.end(JSON.stringify({ data: products(10) }));
        else {
          // The first attempt finds a different list, which changes back while it is read.
          const next = page === 1 ? { next: { href: `${pathname}?page=2` } } : {};
          const data = page === 1 ? [...products(250), { odd: 1 }] : [product(300)];
          if (page === 2) isMoving = false;
          const _meta = { totalCount: page === 1 ? '252' : '253' };
          response.end(JSON.stringify({ data, _links: next, _meta }));
        }
      });
      const again = () => importFrom(upstream.url('/list'), productCollection, { redisUrl: server().url });
      const { version } = await again();
      isMoving = true;
      const report = await again();
      expect(reportOf(report)).to.deep.equal({ ...unchanged(version), durationMs: report.durationMs });
      expect(upstream.requests).to.have.length(1 + 2 + 1);
      expect(await readLastRejects(redis, keys)).to.deep.include({ total: 0, rejects: [] });
      expect(await redis.exists(keys.staged)).to.equal(0);
    });

    it('and omits an earlier attempt that lost its staged keys', async () => {
      const { version } = await importAgain();
      const before = { ...(await readKeySpace(redis)) };
      [list, etag] = [[...products(9), { ...product(11), more: 1 }, {}], '"two"'];
      const lose = async () => {
        for (const name of await redis.smembers(keys.staged)) await redis.del(keys.content(name).records);
        [list, etag] = [products(10), '"one"'];
      };
      const proxy = await startRedisProxy(
        server().port,
        strikeOnce(({ name }) => name === 'publish', { moment: 'before', act: lose }),
      );
      try {
        const report = await importAgain({ redisUrl: proxy.url, maxRejectPercent: 100 });
        expect(reportOf(report)).to.deep.equal({ ...unchanged(version), durationMs: report.durationMs });
      } finally {
        await proxy.close();
      }
      expect(asked).to.deep.equal([undefined, '"one"', '"one"']);
      expect((await readHistory(redis, keys, 1))[0]?.validators).to.deep.equal({
        ...{ etag: '"one"', lastModified: null },
      });
      const after = await readKeySpace(redis);
      for (const key of [keys.rejects, keys.validators, keys.live])
        expect(after[key]).to.deep.equal(before[key]);
      expect(Object.keys(after).sort()).to.deep.equal(Object.keys(before).sort());
    });

    it('and also after a failure', async () => {
      await importAgain();
      await importProductText('nonsense');
      expect((await importAgain()).read).to.equal(0);
    });
  });

  describe('is refused when fields become empty:', () => {
    it('barcodes of all products fell by more than MAX_SHRINK_PERCENT', async () => {
      await importProducts(products(100));
      const without = (count: number) =>
        products(100).map((it, i) => (i < count ? { ...it, barcodes: [] } : it));
      expect((await importProducts(without(20))).outcome).to.equal('published');
      await importProducts(products(100));
      const refused = await importProducts(without(21), { maxShrinkPercent: 20.5 });
      expect(refused.reason).to.match(/\$\.barcodes fell from 100 elements in total to 79 \(by 21\.0 %\)/);
      expect((await importProducts(without(21), { force: true })).outcome).to.equal('published');
    });

    it('a field with values in at least 95 % fell by more than MAX_SHRINK_PERCENT points', async () => {
      const withCity = (filled: number) =>
        Array.from({ length: 100 }, (_, i) =>
          company(i + 1, { city: i < filled ? 'İZMİR' : i % 2 ? null : '' }),
        );
      const importCompanies = (filled: number, changes: ImportChanges = {}) =>
        importRecords(withCity(filled), companyCollection, { redisUrl: server().url, ...changes });
      await importCompanies(95);
      const { outcome, reason } = await importCompanies(74);
      expect(outcome).to.equal('refused');
      expect(reason).to.match(
        /\$\.city had a value in 95\.0 % of the live records and now has one in 74\.0 %/,
      );
      expect((await importCompanies(75)).outcome).to.equal('published');
      const { outcome: last } = await importCompanies(10, { maxChangePercent: 100 });
      expect(last, 'a field that was not full before may fall').to.equal('published');
    });
  });

  it('shares nothing with an import under another key prefix', async () => {
    const version = await publish(products(3));
    await importProducts(products(5), { keyPrefix: 'other' });
    expect(await live()).to.deep.include({ version, totalCount: 3 });
    expect(await readLiveVersion(redis, collectionKeys('other', productCollection))).to.deep.include({
      totalCount: 5,
    });
  });
});
