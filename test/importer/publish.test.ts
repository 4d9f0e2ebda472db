import { expect } from 'chai';
import {
  leavingVersions,
  maxNumberWaitMs,
  namedVersions,
  publicationTime,
  timeOf,
  untilPast,
} from '../../importer/publish.ts';
import type { Product } from '../../shared/collections/products.ts';
import type { Version } from '../../shared/store/versions.ts';
import { isInFuture } from '../../shared/time.ts';
import { productKeys as keys } from '../support/keys.ts';
import { product, products } from '../support/records.ts';
import { useService } from '../support/service.ts';

interface Changes {
  readonly data: readonly { readonly id: number; readonly change: string; readonly record?: Product }[];
}

describe('the numbers of versions', () => {
  const service = useService();
  const redis = () => service.redis();
  const waiting = { maxNumberWaitMs };
  /** The records of a mirror, by id, and their version. */
  let mirror: { version: number; records: Map<number, Product> };

  const readWhole = async () => {
    const response = await service.api().get('/products');
    const records = response.json<{ data: Product[] }>().data.map((it) => [it.product.id, it] as const);
    mirror = { version: Number(response.headers.get('medref-version')), records: new Map(records) };
  };
  /** Follows the changes. @returns the status; 410 asks for the complete list */
  const follow = async () => {
    const response = await service.api().get(`/products/changes?since=${mirror.version}`);
    if (response.status !== 200) return response.status;
    for (const { id, record } of response.json<Changes>().data) {
      if (record) mirror.records.set(id, record);
      else mirror.records.delete(id);
    }
    mirror.version = Number(response.headers.get('medref-version'));
    return 200;
  };
  const expectMirror = (listed: readonly Product[]) =>
    expect([...mirror.records.values()].sort((a, b) => a.product.id - b.product.id)).to.deep.equal(listed);

  /** Returns everything in Redis for a later restore, without the lock, which expires. */
  const save = async () => {
    const names = (await redis().keys('*')).filter((name) => name !== keys.lock);
    return Promise.all(names.map(async (name) => [name, await redis().dumpBuffer(name)] as const));
  };
  const restore = async (saved: Awaited<ReturnType<typeof save>>) => {
    await redis().flushall();
    for (const [name, dump] of saved) if (dump) await redis().restore(name, 0, dump);
  };

  it('are the second in which the import began, which is over at the publication', async () => {
    const before = Date.now();
    const number = await service.publish(products(3), waiting);
    expect(timeOf(number)).to.be.within(before - 1_000, Date.now() - 1_000);
    expect(timeOf(20_261_122_140_005)).to.equal(Date.UTC(2026, 10, 22, 14, 0, 5));
  });

  it('are never used again by a Redis that lost everything: mirrors read the whole list', async () => {
    const lost = await service.publish(products(3), waiting);
    await readWhole();
    const apiKeys = await redis().hgetall('medref:keys');
    await redis().flushall();
    await redis().hset('medref:keys', apiKeys);
    expect(await service.publish(products(4))).to.be.above(lost);
    expect(await follow()).to.equal(410);
    await readWhole();
    expectMirror(products(4));
  });

  it('are never used again by a Redis restored from an older dump, and earlier changes stay exact', async () => {
    const old = await service.publish(products(3), waiting);
    await readWhole();
    const early = mirror;
    const saved = await save();
    const lost = await service.publish(products(4), waiting);
    await readWhole();
    await restore(saved);
    const next = await service.publish([...products(3), product(9)]);
    expect([old, lost, next]).to.deep.equal([...new Set([old, lost, next])].sort((a, b) => a - b));
    expect(await follow(), 'from the version that was lost').to.equal(410);
    mirror = early;
    expect(await follow(), 'from the version before').to.equal(200);
    expectMirror([...products(3), product(9)]);
  });

  it('are never used again by a Redis that lost its last second', async () => {
    await service.publish(products(3), waiting);
    const saved = await save();
    const lost = await service.publish(products(4), waiting);
    await readWhole();
    await restore(saved);
    expect(await service.publish(products(5))).to.be.above(lost);
    expect(await follow()).to.equal(410);
  });

  it('only increase after the clock was set back, without waiting for a clock that was far ahead', async () => {
    const ahead = 30_000_101_000_000;
    await redis().set(keys.next, ahead);
    const before = Date.now();
    expect(await service.publish(products(3), waiting)).to.equal(ahead + 1);
    await readWhole();
    expect(await service.publish(products(4), waiting)).to.equal(ahead + 2);
    expect(Date.now() - before).to.be.below(8_000);
    expect(await follow()).to.equal(200);
    expectMirror(products(4));
  });

  it('wait until their second is over by the clock of Redis', async () => {
    const second = Number((await redis().time())[0]) + 1;
    const number = Number(new Date(second * 1000).toISOString().replace(/\D/g, '').slice(0, 14));
    const untilOver = async () => Number((await redis().time())[0]) > second;
    await untilPast(redis(), 'any', { number, maxMs: 500 });
    expect(await untilOver(), 'not longer than allowed').to.equal(false);
    await untilPast(redis(), 'any', { number, maxMs: 0 });
    expect(await untilOver(), 'not at all').to.equal(false);
    await untilPast(redis(), 'any', { number, maxMs: maxNumberWaitMs });
    expect(await untilOver()).to.equal(true);
  });
});

const dated = (publishedAt: string) => ({ publishedAt });
const now = new Date('2026-11-21T10:00:00.500Z');
const dateAfter = (...dates: string[]) => {
  const kept = dates.map(dated);
  return publicationTime(now, kept.at(-1) ?? null, kept).toISOString();
};

describe('the date of a version', () => {
  it('is now if no kept version has this second', () => {
    expect(dateAfter()).to.equal('2026-11-21T10:00:00.500Z');
    expect(dateAfter('2026-11-20T10:00:00.000Z', '2026-11-21T09:59:59.999Z')).to.equal(
      '2026-11-21T10:00:00.500Z',
    );
  });

  it('is the second after the live one if that is current or slightly ahead', () => {
    expect(dateAfter('2026-11-21T10:00:00.100Z')).to.equal('2026-11-21T10:00:01.000Z');
    expect(dateAfter('2026-11-21T10:00:07.900Z')).to.equal('2026-11-21T10:00:08.000Z');
  });

  it('returns to now if the live one is far ahead, at a free second', () => {
    expect(isInFuture(dated('2030-01-01T00:00:00.000Z'), now)).to.equal(true);
    expect(isInFuture(dated('2026-11-21T10:05:00.000Z'), now)).to.equal(false);
    expect(dateAfter('2030-01-01T00:00:00.000Z')).to.equal('2026-11-21T10:00:00.500Z');
    const kept = ['2026-11-21T10:00:00.100Z', '2026-11-21T10:00:01.000Z', '2030-01-01T00:00:00.000Z'];
    expect(dateAfter(...kept)).to.equal('2026-11-21T10:00:02.000Z');
  });

  it('increases from there, although a kept version is dated ahead', () => {
    expect(dateAfter('2030-01-01T00:00:00.000Z', '2026-11-21T10:00:00.100Z')).to.equal(
      '2026-11-21T10:00:01.000Z',
    );
  });
});

/** Returns a version with a content that is stored under this number. */
const versionOf = (version: number, content: number) => ({ version, content: String(content) }) as Version;
/** Returns versions from 1 on, with these contents. */
const versionsOf = (contents: readonly number[]) => contents.map((content, i) => versionOf(i + 1, content));

describe('the content deleted at a publication', () => {
  it('was live longest ago, and goes with all its versions', () => {
    const kept = versionsOf([1, 2, 3, 2, 1]);
    expect(leavingVersions(kept, 3, { content: '6' })).to.deep.equal({ versions: [3], contents: ['3'] });
    expect(leavingVersions(kept, 2, { content: '6' })).to.deep.equal({
      versions: [2, 3, 4],
      contents: ['2', '3'],
    });
    expect(leavingVersions(kept, 4, { content: '6' })).to.deep.equal({ versions: [], contents: [] });
    const replaced = { content: '6', damaged: '2' };
    expect(leavingVersions(kept, 4, replaced)).to.deep.equal({ versions: [2, 4], contents: ['2'] });
  });

  it('is none if the new version has a kept content', () => {
    expect(leavingVersions(versionsOf([1, 2, 3]), 3, { content: '1' })).to.deep.equal({
      versions: [],
      contents: [],
    });
  });

  it('is none for alternating rollbacks, whose version numbers stay limited', () => {
    let kept = versionsOf([1, 2, 3]);
    for (let number = 4; number < 3 * namedVersions; number += 1) {
      const content = 2 + (number % 2);
      const leaving = leavingVersions(kept, 3, { content: String(content) });
      expect(leaving.contents).to.deep.equal([]);
      kept = kept.filter(({ version }) => !leaving.versions.includes(version));
      kept.push(versionOf(number, content));
    }
    expect(kept).to.have.length(namedVersions + 1);
    expect(kept[0], 'the last version of a content stays with the content').to.deep.equal(versionOf(1, 1));
    expect(kept.slice(1).map(({ version }) => version)).to.deep.equal(
      Array.from({ length: namedVersions }, (_, i) => 2 * namedVersions + i),
    );
  });
});
