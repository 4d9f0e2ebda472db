// Lists of changes that are joined from change sets in a real Redis: once for all who ask, and remembered.

import { hash } from 'node:crypto';
import { expect } from 'chai';
import { ChangeLists, TooManyJoinsError } from '../../../api/reads/change-lists.ts';
import { ChangeWalk, changeKinds, listOf, versionsWithChanges } from '../../../api/reads/change-walk.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { startRedisProxy } from '../../support/redis-proxy.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('change lists', () => {
  const server = useRedis();
  let redis: Redis;
  let lists: ChangeLists;
  let begun: number;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    lists = new ChangeLists();
    begun = 0;
  });

  /** A change set as a publication keeps it: by id, the digests before and after. */
  async function keep(version: number, changes: Readonly<Record<number, string>>): Promise<void> {
    await redis.zadd(keys.changeSets, version, version);
    const size = Object.keys(changes).length;
    if (version > 1) await redis.hset(keys.changeSet(version), { ...changes, '#': String(size) });
  }

  /** Change sets of so many versions; in each one so many ids of its own, and id 1, have changed. */
  async function keepMany(versions: number, ids: number): Promise<void> {
    await keep(1, {});
    for (let version = 2; version <= versions; version++) {
      const own = Array.from({ length: ids }, (_, n) => [version * 1_000_000 + n, '- new']);
      await keep(version, { ...Object.fromEntries(own), 1: `d${version - 1} d${version}` });
    }
  }

  const ask = (since: number, until: number, connection = redis) =>
    lists.get({
      ...{ ending: String(until), since },
      begin: async () => {
        begun += 1;
        return new ChangeWalk(connection, keys, await versionsWithChanges(connection, keys, until));
      },
    });
  const shown = async (list: ReturnType<typeof ask>) => {
    const { ids, kinds } = (await list) ?? { ids: [], kinds: [] };
    return [...ids].map((id, n) => [id, changeKinds[kinds[n] as number]]);
  };

  /** How often parts of change sets have been read. */
  async function scans(): Promise<number> {
    return Number(/cmdstat_hscan:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
  }

  it('are none where Redis has lost that the version is published at which they end', async () => {
    await keepMany(4, 1);
    await redis.zrem(keys.changeSets, 4);
    for (const since of [1, 2, 3]) expect(await ask(since, 4), `since ${since}`).to.equal(null);
  });

  it('are exact since each version that a walk passes', async () => {
    await keep(1, {});
    await keep(2, { 7: '- a', 8: 'x y', 9: 'p -' });
    await keep(3, { 7: 'a b', 8: 'y x', 10: '- q' });
    await keep(4, { 7: 'b -', 9: '- p' });
    expect(await shown(ask(3, 4))).to.deep.equal([
      [7, 'removed'],
      [9, 'added'],
    ]);
    expect(await shown(ask(2, 4))).to.deep.equal([
      [7, 'removed'],
      [8, 'changed'],
      [9, 'added'],
      [10, 'added'],
    ]);
    expect(await shown(ask(1, 4)), 'changed and changed back').to.deep.equal([[10, 'added']]);
    expect(await shown(ask(1, 3))).to.deep.equal([
      [7, 'added'],
      [9, 'removed'],
      [10, 'added'],
    ]);
  });

  it('since 23 different versions, asked for at once, have each change set read once', async () => {
    await keepMany(24, 2_000);
    const one = async (since: number) => (await ask(since, 24))?.ids.length;
    const before = await scans();
    await ask(23, 24);
    const perSet = (await scans()) - before;
    lists = new ChangeLists();
    const sinces = Array.from({ length: 23 }, (_, n) => n + 1);
    const start = await scans();
    const lengths = await Promise.all(sinces.map(one));
    expect(lengths).to.deep.equal(sinces.map((since) => (24 - since) * 2_000 + 1));
    expect((await scans()) - start).to.be.at.most(2 * 23 * perSet); // By themselves they read 276 sets.
    expect(begun, 'one walk, after that of the first list').to.equal(2);
  });

  it('are shared by all who ask for one, and not joined again for who asks later', async () => {
    await keepMany(3, 10);
    const [first, ...others] = await Promise.all(Array.from({ length: 20 }, () => ask(1, 3)));
    for (const other of [...others, await ask(1, 3)]) expect(other).to.equal(first);
    expect(begun).to.equal(1);
  });

  it('are joined anew for who asks when the walk has passed', async () => {
    await keepMany(4, 10);
    expect((await ask(1, 4))?.ids).to.have.length(31);
    expect((await ask(3, 4))?.ids).to.have.length(11);
    expect(begun).to.equal(2);
  });

  it('are joined anew for who asks while a walk goes on that has passed', async () => {
    await keepMany(24, 2_000);
    const before = await scans();
    const long = ask(1, 24);
    while ((await scans()) < before + 10); // Some three sets of 23.
    expect((await ask(23, 24))?.ids).to.have.length(2_001);
    expect((await long)?.ids).to.have.length(46_001);
    expect(begun).to.equal(2);
  });

  it('that end at other versions are joined side by side, three at a time, and none is left waiting', async () => {
    await keepMany(8, 10);
    let most = 0;
    const reading = new Set<string>();
    // Each reply waits until those of the others who read at the same time have come.
    const proxy = await startRedisProxy(server().port, ({ name }) =>
      name === 'HSCAN'
        ? {
            moment: 'before',
            act: async (link) => {
              reading.add(String(links.indexOf(link) === -1 ? links.push(link) : links.indexOf(link) + 1));
              most = Math.max(most, reading.size);
              await new Promise((resolve) => setTimeout(resolve, 30));
              reading.clear();
            },
          }
        : undefined,
    );
    const links: unknown[] = [];
    const connections = await Promise.all(Array.from({ length: 6 }, () => connectForWriting(proxy.url)));
    try {
      const found = await Promise.all(connections.map((connection, n) => ask(1, n + 3, connection)));
      expect(found.map((list) => list?.ids.length)).to.deep.equal([21, 31, 41, 51, 61, 71]);
      expect(most).to.equal(3);
    } finally {
      for (const connection of connections) connection.disconnect();
      await proxy.close();
    }
  });

  it('are not waited for behind 35 others: who asks for one more is told at once, and nothing is read for it', async () => {
    await keepMany(40, 1);
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const proxy = await startRedisProxy(server().port, ({ name }) =>
      name === 'HSCAN' ? { moment: 'before', act: () => gate } : undefined,
    );
    // One for the lists, which have their versions before they wait for their sets.
    const connections = await Promise.all(Array.from({ length: 36 }, () => connectForWriting(proxy.url)));
    try {
      const waiting = Array.from({ length: 35 }, (_, n) => ask(1, n + 3, connections[n]));
      const also = ask(2, 3, connections[0]);
      const one = await ask(1, 38, connections[35]).catch((error: unknown) => error);
      expect(one).to.be.instanceOf(TooManyJoinsError);
      expect(begun).to.equal(35);
      open();
      const found = await Promise.all(waiting);
      expect(found.map((list) => list?.ids.length)).to.deep.equal(waiting.map((_, n) => n + 3));
      expect((await also)?.ids.length, 'who asks for what is joined already waits with it').to.equal(2);
      expect((await ask(1, 38, connections[35]))?.ids.length).to.equal(38);
    } finally {
      open();
      for (const connection of connections) connection.disconnect();
      await proxy.close();
    }
  });

  it('are made in a turn of the event loop for each 10,000 ids, and more for their order', async () => {
    const digests = new Map(Array.from({ length: 100_000 }, (_, n) => [n, { before: '-', after: 'x' }]));
    let turns = 0;
    let isOver = false;
    const turn = () => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    const { ids } = await listOf(digests);
    isOver = true;
    expect(ids).to.have.length(100_000);
    expect(turns).to.be.above(25);
  });

  it('are in the order of their ids, however many there are', async () => {
    const count = 25_000;
    // Each once, all over the place, also where 32 bits do not reach.
    const ids = Array.from({ length: count }, (_, n) => ((n * 7_919) % 25_013) * 2 ** (n % 40) + 1);
    const distinct = [...new Set(ids)];
    await keep(1, {});
    await redis.zadd(keys.changeSets, 2, 2);
    for (let from = 0; from < distinct.length; from += 5_000) {
      const some = distinct.slice(from, from + 5_000);
      await redis.hset(keys.changeSet(2), Object.fromEntries(some.map((id) => [id, '- new'])));
    }
    await redis.hset(keys.changeSet(2), '#', String(distinct.length));
    const list = await ask(1, 2);
    expect([...(list?.ids ?? [])]).to.deep.equal(distinct.sort((a, b) => a - b));
  });

  it('are 16 at most: the one asked for longest ago is forgotten', async () => {
    await keepMany(20, 1);
    for (const since of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1, 17]) await ask(since, 20);
    expect(begun).to.equal(17);
    for (const since of [1, 3, 17]) await ask(since, 20);
    expect(begun, 'these are remembered').to.equal(17);
    expect((await ask(2, 20))?.ids).to.have.length(19);
    expect(begun).to.equal(18);
  });

  it('have two million ids at most, unless one alone has more', async () => {
    const listOf = (length: number) => ({ ids: new Float64Array(length), kinds: new Uint8Array(length) });
    const askFor = (since: number, length: number) =>
      lists.get({
        ...{ ending: 'x', since },
        begin: async () => {
          begun += 1;
          return { since: async () => listOf(length), run: async () => undefined } as unknown as ChangeWalk;
        },
      });
    for (const since of [1, 2, 3, 3, 2, 1]) await askFor(since, 700_000);
    expect(begun).to.equal(4);
    await askFor(9, 2_000_001);
    await askFor(9, 2_000_001);
    expect(begun).to.equal(5);
    await askFor(1, 700_000);
    expect(begun).to.equal(6);
  });

  it('are none since a version that was never published, or where Redis has lost a part of a set', async () => {
    await keepMany(5, 10);
    expect(await ask(9, 5)).to.equal(null);
    await redis.hdel(keys.changeSet(3), '1');
    const [whole, lost, lostToo] = await Promise.all([ask(3, 5), ask(2, 5), ask(1, 5)]);
    expect(whole?.ids).to.have.length(21);
    expect([lost, lostToo]).to.deep.equal([null, null]);
    await redis.hset(keys.changeSet(3), '1', 'd2 d3');
    expect((await ask(1, 5))?.ids, 'nothing is remembered of what was lost').to.have.length(41);
  });

  it('are none where a set is of another type, is against another version, or adds up to something else', async () => {
    await keepMany(3, 1);
    const stored = await redis.hgetall(keys.changeSet(2));
    const [size] = (stored['#'] as string).split(' ');
    const { '#': _facts, ...entries } = stored;
    const sums = Object.entries(entries).map(([id, digests]) => hash('sha1', `${id} ${digests}`).slice(0, 8));
    const sum = sums.reduce((all, digits) => all + Number.parseInt(digits, 16), 0) % 2 ** 32;
    await redis.hset(keys.changeSet(2), '#', `${size} ${sum} 1`);
    expect((await ask(1, 3))?.ids, 'as it was kept').to.have.length(3);
    lists = new ChangeLists();
    const harms: Record<string, () => Promise<unknown>> = {
      'another type': () => redis.set(keys.changeSet(2), 'no hash'),
      'another version': () => redis.hset(keys.changeSet(2), { ...stored, '#': `${size} ${sum} 7` }),
      'another sum': () => redis.hset(keys.changeSet(2), { ...stored, '#': `${size} ${sum + 1} 1` }),
    };
    for (const [what, harm] of Object.entries(harms)) {
      await redis.del(keys.changeSet(2));
      await harm();
      expect(await ask(1, 3), what).to.equal(null);
      expect((await ask(2, 3))?.ids, what).to.have.length(2);
    }
    await redis.del(keys.changeSet(2));
    await redis.hset(keys.changeSet(2), stored);
    expect((await ask(1, 3))?.ids).to.have.length(3);
  });

  it('are not remembered when Redis fails: all who wait are told, and the next one tries again', async () => {
    await keepMany(3, 1);
    const failing = async () => {
      throw new Error('Redis is away.');
    };
    const asked = { ending: '3', since: 1, begin: failing };
    const outcomes = await Promise.allSettled([lists.get(asked), lists.get(asked)]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    await redis.call('ACL', 'SETUSER', 'default', '-hscan');
    const both = await Promise.allSettled([ask(1, 3), ask(2, 3)]);
    expect(both.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    await redis.call('ACL', 'SETUSER', 'default', '+hscan');
    expect((await ask(1, 3))?.ids).to.have.length(3);
  });
});
