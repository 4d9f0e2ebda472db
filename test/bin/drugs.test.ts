// Tests drugs on the command line: commands that work for any collection, and commands for products alone.

import { expect } from 'chai';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { aheadOfClock } from '../support/importing.ts';
import { readKeySpace } from '../support/key-space.ts';
import { productKeys as keys } from '../support/keys.ts';
import { medref as run } from '../support/medref.ts';
import { product } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts';

interface Versions {
  versions: { version: number; contentOf: number; totalCount: number; checksum: string; live: boolean }[];
}

/** Returns the number of the nth version. All are ahead of the clock, so no import waits for the clock. */
const nth = (n: number) => aheadOfClock + n;

describe('drugs on the command line', function () {
  this.timeout(60_000);
  const server = useRedis();
  let redis: Redis;
  let upstream: UpstreamServer;
  let settings: Record<string, string>;
  let upstreamList = [product(1), product(2), product(3, { drug: { id: 2, name: 'DRUG 2' } })];
  before(async () => {
    redis = await connectForWriting(server().url);
    upstream = await startUpstreamServer((response) => response.end(JSON.stringify({ data: upstreamList })));
    await redis.set(keys.next, aheadOfClock);
    settings = { REDIS_URL: server().url, PRODUCTS_URL: upstream.url('/list').href };
  });
  after(async () => {
    redis.disconnect();
    await upstream.close();
  });
  const medref = (...args: string[]) => run(args, settings);

  for (const args of [
    ['import', 'drugs'],
    ['import', 'products', 'drugs', '--force'],
    ['import', 'drugs', '--dry-run'],
    ['rollback', 'drugs'],
    ['rollback', 'drugs', '--to', '1'],
    ['resume', 'drugs'],
    ['rejects', 'drugs'],
  ]) {
    it(`refer medref ${args.join(' ')} to products: exit code 2, and nothing is done`, async () => {
      const before = await readKeySpace(redis);
      const { code, stdout, stderr } = await medref(...args);
      expect(code).to.equal(2);
      expect(stdout).to.equal('');
      expect(stderr.trim().split('\n')[0]).to.match(/drugs .*products/);
      expect(await readKeySpace(redis)).to.deep.equal(before);
    });
  }

  it('have the versions of products, each with its own count and checksum', async () => {
    expect((await medref('import', 'products')).code).to.equal(0);
    upstreamList = [product(1), product(2, { drug: { id: 2, name: 'OTHER' } }), product(4)];
    expect((await medref('import', 'products', '--force')).code).to.equal(0);
    const { code, json } = await medref('versions', 'drugs', '--json');
    expect(code).to.equal(0);
    const { versions } = json<Versions>();
    const facts = versions.map(({ version, contentOf, totalCount, live }) => [
      version,
      contentOf,
      totalCount,
      live,
    ]);
    expect(facts).to.deep.equal([
      [nth(2), nth(2), 3, true],
      [nth(1), nth(1), 2, false],
    ]);
    const ofProducts = (await medref('versions', 'products', '--json')).json<Versions>().versions;
    expect(versions.map((it) => it.checksum)).not.to.deep.equal(ofProducts.map((it) => it.checksum));
    expect((await medref('versions', 'drugs')).stdout).to.match(/live/);
  });

  it('have a status that names products as their source', async () => {
    const { code, json } = await medref('status', '--json');
    expect(code).to.equal(0);
    const { collections } = json<{
      collections: { collection: string; derivedFrom: string | null; live: object }[];
    }>();
    expect(collections.map((it) => [it.collection, it.derivedFrom])).to.deep.equal([
      ['products', null],
      ['drugs', 'products'],
      ['companies', null],
    ]);
    expect(collections[1]?.live).to.deep.include({ version: nth(2), totalCount: 3 });
    const { stdout } = await medref('status');
    expect(stdout).to.match(new RegExp(`^drugs +${nth(2)} +(?:now|\\d+ s) +3 +.* as products$`, 'm'));
  });

  it('have their own diff', async () => {
    const { code, json, stderr } = await medref('diff', 'drugs', '--json');
    expect(code, stderr).to.equal(0);
    expect(json()).to.deep.equal({
      ...{ from: nth(1), to: nth(2), added: [{ drug: { id: 4, name: 'DRUG 4' } }], removed: [] },
      changed: [
        {
          ...{ id: 2, fields: ['drug.name'], before: { drug: { id: 2, name: 'DRUG 2' } } },
          after: { drug: { id: 2, name: 'OTHER' } },
        },
      ],
    });
  });

  it('are rolled back with products', async () => {
    expect((await medref('rollback', 'products')).code).to.equal(0);
    const { versions } = (await medref('versions', 'drugs', '--json')).json<Versions>();
    expect(versions.map(({ version, contentOf }) => [version, contentOf])).to.deep.equal([
      [nth(3), nth(1)],
      [nth(2), nth(2)],
      [nth(1), nth(1)],
    ]);
    expect(versions[0]?.checksum).to.equal(versions[2]?.checksum);
  });
});
