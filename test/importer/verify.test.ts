// Tests stored data that was damaged on purpose: medref finds it, reports it to operators, and rebuilds it from intact data.

import { expect } from 'chai';
import { rollBack } from '../../importer/rollback.ts';
import { changeSetDamage, isDamaged, repair, verify } from '../../importer/verify.ts';
import { type Product, products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import type { PartKeys } from '../../shared/store/keys.ts';
import {
  type ContentFacts,
  documentOf,
  readKeptVersions,
  type Version,
} from '../../shared/store/versions.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { type ImportChanges, importRecords } from '../support/importing.ts';
import { keepKeySpace, readKeySpace } from '../support/key-space.ts';
import { productKeys as keys } from '../support/keys.ts';
import { product, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';

describe('stored data under verify and repair', () => {
  const server = useRedis();
  const first = products(210);
  const second = [
    ...first.slice(1).map((it) => (it.product.id === 9 ? product(9, { published: false }) : it)),
    product(211),
  ];
  let redis: Redis;
  let versions: number[];
  let whole: { restore(): Promise<void>; readonly contents: readonly unknown[] };
  let open: Promise<TestApi> | undefined;
  before(async () => {
    redis = await connectForWriting(server().url);
    versions = [await publish(first), await publish(second)];
    whole = { restore: await keepKeySpace(redis), contents: await readContents() };
  });
  after(() => redis.disconnect());
  beforeEach(() => whole.restore());
  afterEach(() => endApi());

  const importList = (records: readonly unknown[], changes: ImportChanges = {}) =>
    importRecords(records, productCollection, { redisUrl: server().url, force: true, ...changes });
  const publish = async (records: readonly unknown[], changes: ImportChanges = {}) => {
    const { outcome, version, reason } = await importList(records, changes);
    expect(outcome, reason ?? '').to.equal('published');
    return version as number;
  };
  /** Requests a path. The API starts at the first request, so that it has nothing in memory from before. */
  const get = async (path: string) => {
    open ??= startApi({ redisUrl: server().url });
    return (await open).get(path);
  };
  const endApi = async () => {
    await (await open)?.stop();
    open = undefined;
  };
  const look = () => verify(redis, keys, productCollection);
  const repairProducts = async () => {
    const result = await repair(productCollection, { redis, keyPrefix: 'medref' });
    if ('lock' in result) throw new Error('The lock is held.');
    return result;
  };
  /** Changes a bit of a field of a hash. */
  const damage = async (key: string, field: string) => {
    const stored = (await redis.hgetBuffer(key, field)) as Buffer;
    const at = Math.floor(stored.length / 2);
    stored[at] = (stored[at] as number) ^ 1;
    await redis.hset(key, field, stored);
  };
  const swap = async (key: string, one: string, other: string) => {
    const [a, b] = (await redis.hmgetBuffer(key, one, other)) as Buffer[];
    await redis.hset(key, one, b as Buffer, other, a as Buffer);
  };
  /** Returns all bytes of the contents of the kept versions, under whatever names they are stored. */
  const readContents = async () => {
    const kept = await readKeptVersions(redis, keys);
    const contents = kept.flatMap(({ content }) => keys.parts.map((part) => part.content(content)));
    return Promise.all(
      contents.map(async ({ records, order, blocks, prefix, exact }) => ({
        hashes: await Promise.all(
          [records, order, blocks, ...Object.values(exact)].map((key) => redis.hgetallBuffer(key)),
        ),
        names: await redis.zrange(prefix['name'] as string, 0, '-1'),
      })),
    );
  };
  const readAll = async () => {
    const paths = [
      ...[
        '/products?page=1',
        '/products?page=2',
        '/products?per-page=7&page=4',
        '/products/9',
        '/products/210',
      ],
      ...['/products?name=drug&page=2', '/products?barcode=8690000000009', '/drugs?page=2', '/drugs/9'],
      '/products?drug=9&name=drug',
      ...versions.map((version) => `/products?version=${version}&page=2`),
      `/products/changes?since=${versions[0]}`,
    ];
    const responses = await Promise.all(paths.map(get));
    const { origin } = (await open) as TestApi;
    await endApi();
    return responses.map(({ status, text }) => ({ status, text: text.replaceAll(origin, '') }));
  };

  it('is intact after publication, and verify changes nothing', async () => {
    const before = await readKeySpace(redis);
    const found = await look();
    expect(isDamaged(found)).to.equal(false);
    expect({ versions: found.versions, records: found.records }).to.deep.equal({ versions, records: 420 });
    expect(await readKeySpace(redis)).to.deep.equal(before);
  });

  /** The ways to damage a content, each with words of the sentence that reports it. */
  const damages: Record<
    string,
    [damage: (part: PartKeys, version: number) => Promise<unknown>, reported: RegExp]
  > = {
    'a bit of a record is another one': [
      (part, it) => damage(part.content(it).records, '9'),
      /do(es)? not match the version's checksum|not the JSON text/,
    ],
    'a record is lost': [(part, it) => redis.hdel(part.content(it).records, '9'), /Range 0 of .*missing/],
    'two records are exchanged': [
      (part, it) => swap(part.content(it).records, '9', '10'),
      /not match the version's checksum/,
    ],
    'a bit of the order is another one': [
      (part, it) => damage(part.content(it).order, '1'),
      /Range 1 of .*damaged|not match the version's checksum/,
    ],
    'ranges of the order are exchanged': [
      (part, it) => swap(part.content(it).order, '0', '1'),
      /Range [01] of .*damaged|not match the version's checksum/,
    ],
    'the order is lost': [(part, it) => redis.del(part.content(it).order), /order has 0 elements, not 2/],
    'a bit of a block is another one': [
      (part, it) => damage(part.content(it).blocks, '1'),
      /Block 1 of .*does not hold/,
    ],
    'blocks are exchanged': [
      (part, it) => swap(part.content(it).blocks, '0', '1'),
      /Block [01] of .*does not hold/,
    ],
    'a block is lost': [(part, it) => redis.hdel(part.content(it).blocks, '0'), /Block 0 of .*missing/],
    'a name of the index is another one': [
      async (part, it) => {
        const names = part.content(it).prefix['name'] as string;
        await redis.zpopmax(names);
        await redis.zadd(names, 0, 'x');
      },
      /does not have the texts of its records/,
    ],
    'a name of the index is lost': [
      (part, it) => redis.zpopmax(part.content(it).prefix['name'] as string),
      /by-name has \d+ elements, not \d+/,
    ],
    'a key is of another type': [
      async (part, it) => {
        await redis.del(part.content(it).blocks);
        await redis.set(part.content(it).blocks, 'text');
      },
      /another type/,
    ],
  };
  const places = [
    { whose: 'products, kept', part: keys, which: 0 },
    { whose: 'products, live', part: keys, which: 1 },
    { whose: 'drugs, live', part: keys.derived('drugs'), which: 1 },
  ] as const;
  // Tests each kind of damage in one place, in turn, because the same code reads all places.
  // The second loop tests one kind of damage in each place, as readers see it.
  for (const [n, [what, [harm, reported]]] of Object.entries(damages).entries()) {
    const { whose, part, which } = places[n % 3] as (typeof places)[number];
    it(`is found damaged if ${what} (${whose})`, async () => {
      await harm(part, versions[which] as number);
      const found = await look();
      expect(found.contents.map((it) => it.versions.map(({ version }) => version))).to.deep.equal([
        [versions[which]],
      ]);
      expect(found.contents[0]?.damage.join('\n')).to.match(reported);
      const { left, done } = await repairProducts();
      expect(isDamaged(left), JSON.stringify(left)).to.equal(false);
      expect(done.join()).to.include(`Version ${versions[which]} was rebuilt.`);
      const kept = await readKeptVersions(redis, keys);
      expect(kept.map(({ version }) => version)).to.deep.equal(versions);
      expect(kept.map(({ version, content }) => content === String(version))).to.deep.equal([
        which === 1,
        which === 0,
      ]);
      expect(await readContents()).to.deep.equal(whole.contents);
      expect(await redis.exists(keys.staged)).to.equal(0);
    });
  }
  for (const { whose, part, which } of places) {
    it(`is served as before after a block was rebuilt (${whose})`, async () => {
      const before = await readAll();
      await redis.hdel(part.content(versions[which] as number).blocks, '0', '1');
      expect((await repairProducts()).left.contents).to.deep.equal([]);
      expect(await readAll()).to.deep.equal(before);
    });
  }

  it('is rebuilt twice, each time under a new name, and expires like any other', async () => {
    for (const times of [1, 2]) {
      const [, live] = await readKeptVersions(redis, keys);
      await damage(keys.content(live?.content as string).blocks, '0');
      expect(isDamaged((await repairProducts()).left)).to.equal(false);
      const [, now] = await readKeptVersions(redis, keys);
      expect(now?.content).to.equal(`${versions[1]}.${times}`);
      expect(await redis.pttl(keys.content(live?.content as string).records)).to.be.within(1, 60_000);
    }
    await publish(products(3));
    await publish(products(4), { keepVersions: 2 });
    expect(await redis.pttl(keys.content(`${versions[1]}.2`).records)).to.be.within(1, 60_000);
  });

  it('is deleted if neither blocks nor records are intact and it is not live', async () => {
    const { records, blocks } = keys.content(versions[0] as number);
    await damage(records, '9');
    await damage(blocks, '0');
    const { left, done } = await repairProducts();
    expect(isDamaged(left)).to.equal(false);
    expect(done).to.deep.equal([
      `Version ${versions[0]} cannot be rebuilt: Its stored records do not match its checksum. It was deleted.`,
    ]);
    expect((await readKeptVersions(redis, keys)).map(({ version }) => version)).to.deep.equal([versions[1]]);
    expect(await redis.pttl(records)).to.be.within(1, 60_000);
    expect(await redis.exists(keys.staged, keys.damaged, keys.content(`${versions[0]}.1`).records)).to.equal(
      0,
    );
    expect((await get(`/products?version=${versions[0]}`)).status).to.equal(410);
    expect((await get('/products')).status).to.equal(200);
  });

  it('is never deleted if it is live: verify recommends an import, which rebuilds it', async () => {
    const { blocks, records } = keys.content(versions[1] as number);
    const other = await redis.hgetBuffer(keys.content(versions[0] as number).blocks, '0');
    await redis.hset(blocks, '0', other as Buffer);
    await damage(records, '9');
    const { left, done } = await repairProducts();
    expect(left.contents).to.have.length(1);
    expect(done.join()).to.match(/cannot be rebuilt: .* It is live: run "medref import products"\.$/);
    expect(await redis.hget(keys.damaged, String(versions[1]))).to.be.a('string');
    expect((await importList(second, { force: false })).outcome).to.equal('published');
    expect((await get('/products/9')).json<{ data: Product }>().data.published).to.equal(false);
    expect(isDamaged(await look())).to.equal(false);
    expect(await redis.exists(keys.damaged)).to.equal(0);
  });

  it('is rebuilt from records if its blocks differ', async () => {
    const before = await readAll();
    const other = await redis.hgetBuffer(keys.content(versions[0] as number).blocks, '0');
    await redis.hset(keys.content(versions[1] as number).blocks, '0', other as Buffer);
    const { left } = await repairProducts();
    expect(isDamaged(left), JSON.stringify(left)).to.equal(false);
    expect(await readAll()).to.deep.equal(before);
  });

  it('is not rebuilt with another list of drugs than published', async () => {
    const [, live] = await readKeptVersions(redis, keys);
    const { drugs } = (live as Version).derived as { drugs: ContentFacts };
    const derived = { drugs: { ...drugs, checksum: '0'.repeat(64) } };
    const document = documentOf({ ...(live as Version), derived });
    await redis.hset(keys.versionDocuments, String(live?.version), document);
    await redis.set(keys.live, document);
    await damage(keys.content(versions[1] as number).blocks, '0');
    const { left, done } = await repairProducts();
    expect(left.contents).to.have.length(1);
    expect(done.join()).to.include('do not match its checksum');
  });

  it('stays readable if the document of one of its versions is lost', async () => {
    const context = { redis, keyPrefix: 'medref', to: versions[0] as number, maxNumberWaitMs: 0 };
    const back = await rollBack(productCollection, context);
    const again = back.outcome === 'rolled-back' ? (back.report.version as number) : 0;
    const live = (await redis.get(keys.live)) as string;
    await damage(keys.content(versions[0] as number).blocks, '0');
    await redis.hdel(keys.versionDocuments, String(again));
    const { found, left } = await repairProducts();
    expect(found.contents.map((it) => it.versions.map(({ version }) => version))).to.deep.equal([
      [versions[0], again],
    ]);
    expect(isDamaged(left), JSON.stringify(left)).to.equal(false);
    expect(JSON.parse((await redis.get(keys.live)) as string)).to.deep.include({
      ...{ version: again, content: `${versions[0]}.1`, publishedAt: JSON.parse(live).publishedAt },
    });
  });

  it('is found if records are intact but of another version, and rebuilt', async () => {
    const [from, to] = versions.map((it) => keys.content(it).records) as [string, string];
    await redis.hset(to, '9', (await redis.hgetBuffer(from, '9')) as Buffer);
    const [found] = (await look()).contents;
    expect(found?.damage.join('\n')).to.match(/Block 0 .* does not hold/);
    expect(found?.damage.join('\n')).to.match(/do not match the version's checksum/);
    expect(isDamaged((await repairProducts()).left)).to.equal(false);
    expect((await get('/products/9')).json<{ data: Product }>().data.published).to.equal(false);
  });

  for (const search of ['barcode', 'drug'] as const) {
    it(`is found if a value of the index by ${search} has other ids, and rebuilt`, async () => {
      const key = keys.content(versions[1] as number).exact[search] as string;
      const [field = '', ids = ''] = (await redis.hscan(key, 0, 'COUNT', 1))[1];
      await redis.hset(key, field, `${ids} 7`);
      expect((await look()).contents[0]?.damage).to.deep.equal([
        `The index ${key} does not have the values of its records.`,
      ]);
      expect(isDamaged((await repairProducts()).left)).to.equal(false);
      expect((await look()).contents).to.deep.equal([]);
    });
  }

  it('has no marks and no staged keys after a repair', async () => {
    await redis.hset(keys.damaged, String(versions[1]), 'It was marked.');
    await redis.sadd(keys.staged, 'dry-run-dead');
    await redis.hset(keys.content('dry-run-dead').records, '1', 'x');
    expect(isDamaged((await repairProducts()).found)).to.equal(false);
    const left = [keys.damaged, keys.staged, keys.content('dry-run-dead').records];
    expect(await redis.exists(...left)).to.equal(0);
  });

  describe('change sets', () => {
    let third: number;
    let restore: () => Promise<void>;
    let changes: unknown;
    const readChanges = async () =>
      (await get(`/products/changes?since=${versions[0]}`)).json<{ data: unknown }>().data;
    before(async () => {
      await whole.restore();
      third = await publish([...second, product(212)]);
      restore = await keepKeySpace(redis);
      changes = await readChanges();
      await endApi();
    });
    beforeEach(() => restore());
    const harms: Record<string, (key: string) => Promise<unknown>> = {
      'an entry is another one': (key) => redis.hset(key, '212', `- ${'0'.repeat(40)}`),
      'an entry is lost': (key) => redis.hdel(key, '212'),
      'it is lost': (key) => redis.del(key),
      'it says something else of itself': (key) => redis.hset(key, '#', '1 2'),
      'it is against another version': async (key) => {
        const [size, sum] = ((await redis.hget(key, '#')) as string).split(' ');
        await redis.hset(key, '#', `${size} ${sum} 7 0`);
      },
      'it is of another type': async (key) => {
        await redis.del(key);
        await redis.set(key, 'text');
      },
    };
    for (const [what, harm] of Object.entries(harms)) {
      it(`are found damaged if ${what}; clients get 410 until they are rebuilt`, async () => {
        await harm(keys.changeSet(third));
        expect((await get(`/products/changes?since=${versions[0]}`)).status).to.equal(410);
        expect((await look()).changeSets.map(({ version }) => version)).to.deep.equal([third]);
        const { left, done } = await repairProducts();
        expect(isDamaged(left), JSON.stringify(left)).to.equal(false);
        expect(done).to.deep.equal([`The change set of version ${third} was rebuilt.`]);
        await endApi();
        expect(await readChanges()).to.deep.equal(changes);
        expect(await redis.pttl(keys.changeSet(third))).to.equal(-1);
      });
    }

    it('are not reported if they are deleted during the read', async () => {
      const publishing = await connectForWriting(server().url);
      await redis.flushall();
      const kept = 10;
      let isOver = false;
      const publications = (async () => {
        for (let number = 1; !isOver; number += 1) {
          const step = publishing
            .multi()
            .zadd(keys.changeSets, number, number)
            .zrem(keys.changeSets, number - kept);
          for (const part of keys.parts)
            step
              .hset(part.changeSet(number), '#', `0 0 ${number - 1} 0`)
              .unlink(part.changeSet(number - kept + 1));
          await step.exec();
        }
      })();
      const found: unknown[] = [];
      for (let n = 0; n < 100; n += 1) found.push(...(await changeSetDamage(redis, keys)));
      isOver = true;
      await publications;
      publishing.disconnect();
      expect(found).to.deep.equal([]);
      await redis.del(...(await redis.zrange(keys.changeSets, '-1', '-1')).map((it) => keys.changeSet(it)));
      expect(await changeSetDamage(redis, keys)).to.have.length(1);
    });

    it('are deleted up to a version that cannot be rebuilt', async () => {
      const { records, blocks } = keys.content(versions[1] as number);
      await damage(records, '9');
      await damage(blocks, '0');
      await redis.hset(keys.changeSet(third), '#', 'x');
      expect((await repairProducts()).done.join()).to.include(
        `"since" must now be version ${third} or later`,
      );
      expect((await get(`/products/changes?since=${versions[1]}`)).status).to.equal(410);
    });

    it('are deleted if the versions between which they lie are no longer kept', async () => {
      for (const id of [213, 214, 215]) await publish([...second, product(id)], { keepVersions: 2 });
      await redis.hset(keys.changeSet(third), '#', 'x');
      const { left, done } = await repairProducts();
      expect(isDamaged(left)).to.equal(false);
      expect(done.join()).to.include(`"since" must now be version ${third} or later`);
      expect((await get(`/products/changes?since=${versions[0]}`)).status).to.equal(410);
      expect((await get(`/products/changes?since=${third}`)).status).to.equal(200);
      expect(await redis.exists(keys.changeSet(third), keys.changeSet(versions[1] as number))).to.equal(0);
    });
  });

  it('is found and repaired despite damaged bookkeeping keys', async () => {
    await redis.hset(keys.versionDocuments, String(versions[0]), '{"version":1}');
    await redis.zrem(keys.versions, String(versions[1]));
    const found = await look();
    expect(found.keys.join('\n')).to.include(`holds no document of version ${versions[0]}`);
    expect(isDamaged((await repairProducts()).left)).to.equal(false);
  });

  it("is verified under another process's lock, but not repaired", async () => {
    await redis.set(keys.lock, JSON.stringify({ holder: 'another', since: 'now' }));
    expect(isDamaged(await look())).to.equal(false);
    const result = await repair(productCollection, { redis: redis, keyPrefix: 'medref' });
    expect(result).to.deep.include({ outcome: 'locked' });
  });

  describe('after an import', () => {
    for (const [what, [harm]] of Object.entries(damages)) {
      it(`is rebuilt if ${what}, also from the same list, without changes`, async () => {
        await harm(keys, versions[1] as number);
        await look();
        const report = await importList(second, { force: false });
        const { outcome, added, changed, removed } = report;
        expect({ outcome, added, changed, removed }).to.deep.equal({
          ...{ outcome: 'published', added: 0, changed: 0, removed: 0 },
        });
        expect(report.warnings[0]).to.match(/is incomplete in Redis; comparison skipped\. \S/);
        const changes = await get(`/products/changes?since=${versions[1]}`);
        expect(changes.json<{ data: unknown }>().data).to.deep.equal([]);
        expect(report.warnings[1]).to.equal(
          `Version ${versions[1]} is no longer kept: its data in Redis was damaged.`,
        );
        expect(isDamaged(await look())).to.equal(false);
        expect((await get(`/products?version=${versions[1]}`)).status).to.equal(410);
      });
    }

    it('is 503, never a false 404, if Redis has lost a record, until it is rebuilt', async () => {
      await redis.hdel(keys.content(versions[1] as number).records, '9');
      expect((await get('/products/9')).status).to.equal(503);
      await importList(second, { force: false });
      await endApi();
      expect((await get('/products/9')).status).to.equal(200);
      expect((await get('/products/9999')).status).to.equal(404);
    });
  });
});
