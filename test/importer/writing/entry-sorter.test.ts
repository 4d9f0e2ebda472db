import { expect } from 'chai';
import { EntrySorter } from '../../../importer/writing/entry-sorter.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { LockLostError } from '../../../shared/store/scripts.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { useRedis } from '../../support/redis-server.ts';

const token = 'the token';
const { sorting } = keys.workspace(1);

describe('the sorter of entries', () => {
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

  const sorter = (name = 'names') =>
    new EntrySorter(redis, { keys, token, name: 1, lifetimeMs: 60_000 }, keys, name);

  async function all(its: EntrySorter): Promise<string[]> {
    const entries: string[] = [];
    for await (const sorted of its.sorted()) entries.push(...sorted);
    return entries;
  }

  it('gives entries in the order of their bytes, each once', async () => {
    const its = sorter();
    await its.add(['b', 'é', 'a\0z', 'b', 'a']);
    await its.add(['z', '\u{10000}', '\uffff', 'a\0z']);
    const expected = ['a', 'a\0z', 'b', 'z', 'é', '\uffff', '\u{10000}'];
    expect(await all(its)).to.deep.equal(expected.map((text) => Buffer.from(text).toString('latin1')));
  });

  it('gives nothing where there is nothing, and leaves nothing behind', async () => {
    expect(await all(sorter())).to.deep.equal([]);
    expect(await redis.exists(sorting)).to.equal(0);
  });

  it('merges runs whose ranges lie apart, overlap, and share entries', async () => {
    const its = sorter();
    const added: string[] = [];
    for (let batch = 0; batch < 400; batch += 1) {
      // Ascending for a while, then all over the place, with some that came before.
      const scattered = (n: number) => (n * 7_919) % 65_537;
      const numbers = Array.from({ length: 300 }, (_, n) => batch * 300 + n);
      const entries = numbers.map((n) => `n${String(batch < 150 ? n : scattered(n)).padStart(6, '0')}`);
      added.push(...entries);
      await its.add(entries);
    }
    expect(await redis.hlen(sorting), 'pieces of three runs').to.be.greaterThan(256);
    expect(await redis.ttl(sorting)).to.be.within(1, 60);
    expect(await all(its)).to.deep.equal([...new Set(added)].sort());
  });

  it('keeps its entries apart from those of another one of the same content', async () => {
    const [names, listed] = [sorter('names'), sorter('listed')];
    await names.add(['a', 'c']);
    await listed.add(['b']);
    const some = names.sorted();
    expect((await some.next()).value).to.deep.equal(['a', 'c']);
    expect(await all(listed)).to.deep.equal(['b']);
    expect((await some.next()).done).to.equal(true);
  });

  it('keeps runs and pieces short where entries are long', async () => {
    const its = sorter();
    const name = 'x'.repeat(60_000);
    const added = Array.from({ length: 600 }, (_, n) => `c${(n * 7_919) % 601}${name}`);
    for (let from = 0; from < 600; from += 16) await its.add(added.slice(from, from + 16));
    expect(await all(its)).to.deep.equal(added.sort());
    const pieces = await redis.hkeys(sorting);
    const runs = new Set(pieces.map((piece) => piece.split(':')[1]));
    expect([...runs].sort(), '36 MB').to.deep.equal(['0', '1', '2']);
    for (const piece of pieces) expect(await redis.hstrlen(sorting, piece)).to.be.at.most(128_000);
  });

  it('says so when Redis has lost a part', async () => {
    const its = sorter();
    await its.add(Array.from({ length: 40_000 }, (_, n) => `n${n}`));
    await redis.hdel(sorting, 'names:0:9');
    await all(its).then(
      () => expect.fail('Nothing was thrown.'),
      (error: Error) => expect(error.message).to.include('has lost a part of what was staged'),
    );
  });

  it('writes nothing without the lock', async () => {
    await redis.set(keys.lock, 'another token');
    const its = sorter();
    await its.add(['a']);
    await all(its).then(
      () => expect.fail('Nothing was thrown.'),
      (error: Error) => expect(error).to.be.instanceOf(LockLostError),
    );
    expect(await redis.exists(sorting)).to.equal(0);
  });
});
