import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { EntryPages } from '../../../api/reads/entry-pages.ts';
import { HashReads } from '../../../api/reads/hash-reads.ts';
import { formatOf } from '../../../shared/formats/content-format.ts';
import { packEntries } from '../../../shared/formats/search-page.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('pages of a search index, as they are read', () => {
  const server = useRedis();
  let redis: Redis;
  let pages: EntryPages;
  const list = { key: 'pages', name: 'first', format: formatOf({ format: 3 }), isRemembered: true };
  const entries = [0, 1, 2].map((page) => ['a', 'b'].map((letter) => `${page}${letter}`));
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  beforeEach(async () => {
    await redis.del(list.key);
    for (const [n, its] of entries.entries()) await redis.hset(list.key, n, packEntries(its, n));
    pages = new EntryPages(new HashReads(redis));
  });
  after(() => redis.disconnect());

  it('are remembered by their name and number, and only what is not is read', async () => {
    expect(await pages.get(list, [2, 0])).to.deep.equal(
      new Map([
        [2, entries[2]],
        [0, entries[0]],
      ]),
    );
    await redis.hset(list.key, 0, packEntries(['other'], 0));
    expect([...((await pages.get(list, [0, 1])) ?? [])].sort()).to.deep.equal([
      [0, entries[0]],
      [1, entries[1]],
    ]);
    for (const other of [{ name: 'second' }, { isRemembered: false }])
      expect((await pages.get({ ...list, ...other }, [0]))?.get(0)).to.deep.equal(['other']);
  });

  it('are not remembered of a list of which they are not to be', async () => {
    await pages.get({ ...list, isRemembered: false }, [0]);
    await redis.hset(list.key, 0, packEntries(['other'], 0));
    expect((await pages.get(list, [0]))?.get(0)).to.deep.equal(['other']);
  });

  it('are not remembered where one is missing or damaged', async () => {
    const stored = (await redis.hgetBuffer(list.key, '1')) as Buffer;
    await redis.hset(list.key, 1, 'x');
    expect(await pages.get(list, [0, 1])).to.equal(null);
    await redis.hdel(list.key, '1');
    expect(await pages.get(list, [1])).to.equal(null);
    await redis.hset(list.key, 1, stored);
    expect((await pages.get(list, [1]))?.get(1)).to.deep.equal(entries[1]);
  });

  it('are told to be gone, also where they are remembered', async () => {
    await pages.get(list, [0]);
    expect(await pages.areThere(list.key)).to.equal(true);
    await redis.del(list.key);
    await sleep(2); // For so long it may be taken to be there.
    const before = Number(/cmdstat_exists:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]);
    expect(await Promise.all([pages.areThere(list.key), pages.areThere(list.key)])).to.deep.equal([
      false,
      false,
    ]);
    const after = Number(/cmdstat_exists:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]);
    expect(after - before, 'asked once for both').to.equal(1);
  });
});
