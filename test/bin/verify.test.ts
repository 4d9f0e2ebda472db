import { expect } from 'chai';
import { companies as companyCollection } from '../../shared/collections/companies.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { importRecords } from '../support/importing.ts';
import { readKeySpace } from '../support/key-space.ts';
import { companyKeys, productKeys as keys } from '../support/keys.ts';
import { medref } from '../support/medref.ts';
import { companies, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';

interface Verified {
  readonly verified: readonly {
    readonly collection: string;
    readonly versions: readonly number[];
    readonly records: number;
    readonly damaged: readonly { what: string; versions: number[]; damage: string[]; repaired: boolean }[];
    readonly done: readonly string[];
  }[];
}

/** Returns text without the line breaks that fit it into 80 columns. */
const unwrapped = (text: string) => text.replace(/\n {4}/g, ' ');

describe('medref verify', () => {
  const server = useRedis();
  let redis: Redis;
  let versions: number[];
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    versions = [];
    for (const count of [3, 4]) {
      const report = await importRecords(products(count), productCollection, { redisUrl: server().url });
      versions.push(report.version as number);
    }
    await importRecords(companies(2), companyCollection, { redisUrl: server().url });
  });
  const verify = (...args: string[]) => medref(['verify', ...args], { REDIS_URL: server().url });
  const harm = () => redis.hset(keys.content(versions[0] as number).records, '2', 'x');

  it('exits with 0 if everything is intact, and shows how much it read', async () => {
    const before = await readKeySpace(redis);
    const { code, stdout } = await verify();
    expect({ code, stdout }).to.deep.equal({
      code: 0,
      stdout: 'products: 2 versions with 7 records: intact\ncompanies: 1 version with 2 records: intact\n',
    });
    expect((await verify('companies', 'companies', '--json')).json<Verified>().verified).to.have.length(1);
    expect((await verify('products', '--json')).json()).to.deep.equal({
      verified: [{ collection: 'products', versions, records: 7, damaged: [], done: [] }],
    });
    expect(await readKeySpace(redis)).to.deep.equal(before);
  });

  it('exits with 1 if something is damaged, and says what', async () => {
    await harm();
    const before = await readKeySpace(redis);
    const { code, stdout } = await verify();
    expect(code).to.equal(1);
    for (const line of stdout.split('\n')) expect(line.length, line).to.be.at.most(80);
    const text = unwrapped(stdout);
    expect(text).to.match(
      /^products: 2 versions with 7 records: damaged\n {2}is damaged: Block 0 .*\n( {2}is damaged: .*\n)* {2}"medref verify products --repair" rebuilds .*\ncomp/,
    );
    expect((await verify('companies')).code).to.equal(0);
    const json = await verify('--json');
    expect([json.code, json.json<Verified>().verified[0]?.damaged]).to.deep.equal([
      ...[
        1,
        [
          {
            what: 'content',
            versions: [versions[0]],
            damage: [...text.matchAll(/is damaged: (.*)/g)].map(([, sentence]) => sentence),
            repaired: false,
          },
        ],
      ],
    ]);
    expect(await redis.hkeys(keys.damaged), 'the mark makes an import rebuild a live version').to.deep.equal([
      String(versions[0]),
    ]);
    await redis.del(keys.damaged);
    expect(await readKeySpace(redis), 'nothing else is changed').to.deep.equal(before);
  });

  it('repairs on request, reports it, and exits with 0 if no damage remains', async () => {
    await harm();
    const { code, stdout } = await verify('--repair');
    expect(code).to.equal(0);
    expect(unwrapped(stdout)).to.match(
      /^products: .*: repaired\n( {2}was damaged: .*\n)+ {2}Version \d+ was rebuilt\.\ncompanies: .*: intact\n$/,
    );
    expect((await verify()).code).to.equal(0);
    expect(await redis.exists(keys.lock)).to.equal(0);
  });

  it('prints three sentences about a damage, and the number of further ones', async () => {
    const { version } = await importRecords(products(900), productCollection, { redisUrl: server().url });
    await redis.del(keys.content(version as number).records);
    const { stdout } = await verify('products');
    expect(stdout.match(/is damaged/g)).to.have.length(3);
    expect(stdout).to.match(/\n {2}and \d more: see --json\n/);
  });

  it('exits with 1 if damage remains, and says what to do', async () => {
    const { records, blocks } = keys.content(versions[1] as number);
    await redis.hset(records, '2', 'x');
    await redis.hset(blocks, '0', 'x');
    const { code, stdout } = await verify('products', '--repair');
    expect(code).to.equal(1);
    expect(unwrapped(stdout)).to.match(
      /: damaged\n( {2}is damaged: .*\n)+ {2}Version .* cannot be rebuilt: .* It is live: run "medref import products"\.\n$/,
    );
    const [first] = (await verify('--repair', '--json')).json<Verified>().verified;
    expect(first?.damaged.map(({ repaired }) => repaired)).to.deep.equal([false]);
  });

  it('exits with 4 if a repair finds the lock taken, and with 2 for drugs and unknown names', async () => {
    await redis.set(keys.lock, JSON.stringify({ holder: 'another', since: 'now' }));
    const locked = await verify('--repair');
    expect([locked.code, locked.stderr]).to.deep.equal([
      ...[4, 'another has held the lock of products since now. Run the command again later.\n'],
    ]);
    expect((await verify()).code).to.equal(0);
    expect((await verify('drugs')).stderr).to.include('use "medref verify products"');
    for (const name of ['drugs', 'things']) expect((await verify(name)).code).to.equal(2);
  });

  it('continues if one collection is locked, and reports both', async () => {
    await harm();
    await redis.set(companyKeys.lock, JSON.stringify({ holder: 'another', since: 'now' }));
    const { code, stdout, stderr } = await verify('--repair');
    expect(code).to.equal(4);
    expect(stdout).to.match(/^products: .*: repaired\n/);
    expect(stderr).to.equal(
      'another has held the lock of companies since now. Run the command again later.\n',
    );
    for (const field of ['records', 'blocks'] as const)
      await redis.hset(keys.content(versions[1] as number)[field], field === 'blocks' ? '0' : '2', 'x');
    expect((await verify('--repair')).code, 'remaining damage takes precedence').to.equal(1);
  });

  it('reports nothing for collections that were never imported', async () => {
    await redis.flushall();
    const { code, stdout } = await verify('--repair');
    expect([code, stdout]).to.deep.equal([0, 'products: nothing is stored\ncompanies: nothing is stored\n']);
    expect(await redis.keys('*')).to.deep.equal([]);
  });
});
