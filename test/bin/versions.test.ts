import { hostname, userInfo } from 'node:os';
import { expect } from 'chai';
import { readHistory } from '../../shared/import-history.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { contentKeys } from '../../shared/store/keys.ts';
import { aheadOfClock } from '../support/importing.ts';
import { readKeySpace } from '../support/key-space.ts';
import { productKeys as keys } from '../support/keys.ts';
import { medref as run } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

interface Imports {
  imports: {
    outcome: string;
    version: number | null;
    reason: string | null;
    added: number;
    removed: number;
  }[];
}

interface Versions {
  versions: { version: number; contentOf: number; totalCount: number; checksum: string; live: boolean }[];
}
/** Returns the number of the nth version. All are ahead of the clock, so no import waits for the clock. */
const nth = (n: number) => aheadOfClock + n;

describe('versions on the command line', function () {
  this.timeout(60_000);
  const server = useRedis();
  const startUpstream = upstreamServers();
  let redis: Redis;
  let upstreamList: readonly unknown[] = [];
  let settings: Record<string, string>;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    await redis.set(keys.next, aheadOfClock);
    const upstream = await startUpstream((response) => response.end(JSON.stringify({ data: upstreamList })));
    settings = { REDIS_URL: server().url, PRODUCTS_URL: upstream.url('/list').href };
  });

  const medref = (...args: string[]) => run(args, settings);
  const importList = async (list: readonly unknown[], ...args: string[]) => {
    upstreamList = list;
    const result = await medref('import', 'products', '--json', ...args);
    const [report] = result.json<Imports>().imports;
    return { code: result.code, outcome: report?.outcome, report };
  };
  const listVersions = async () => (await medref('versions', 'products', '--json')).json<Versions>().versions;
  const contents = async () =>
    (await listVersions()).map(({ version, contentOf, live }) => [version, contentOf, live]);
  const everything = () => readKeySpace(redis);

  it('lists kept versions, newest first, with their contents', async () => {
    expect(await listVersions()).to.deep.equal([]);
    await importList(products(3));
    await importList(products(4));
    const versions = await listVersions();
    expect(versions.map((it) => Object.keys(it).join(' '))).to.deep.equal(
      Array(2).fill('version contentOf publishedAt totalCount checksum live'),
    );
    expect(versions.map((it) => [it.version, it.contentOf, it.totalCount, it.live])).to.deep.equal([
      [nth(2), nth(2), 4, true],
      [nth(1), nth(1), 3, false],
    ]);
    const lines = (await medref('versions', 'products')).stdout.split('\n');
    expect(lines[0]).to.match(/^version /);
    expect(lines[1]?.split(/ +/).slice(0, 2)).to.deep.equal([String(nth(2)), String(nth(2))]);
    expect(lines[1]).to.match(/ live$/);
    expect(lines[2]?.split(/ +/).slice(0, 2)).to.deep.equal([String(nth(1)), String(nth(1))]);
  });

  it('rolls back to the previous content under a new number, and keeps the last rejects', async () => {
    await importList(products(10));
    await importList([...products(9), product(20), {}], '--force');
    const rolledBack = await medref('rollback', 'products', '--json');
    expect(rolledBack.code).to.equal(0);
    expect(rolledBack.json()).to.deep.equal({
      ...{ collection: 'products', outcome: 'rolled-back' },
      ...{ version: nth(3), contentOf: nth(1), previousVersion: nth(2) },
      ...{ previousTotalCount: 10, totalCount: 10, added: 1, changed: 0, removed: 1 },
    });
    expect(await contents()).to.deep.equal([
      [nth(3), nth(1), true],
      [nth(2), nth(2), false],
      [nth(1), nth(1), false],
    ]);
    expect((await medref('rejects', 'products', '--json')).json()).to.have.property('total', 1);
    expect((await medref('status')).stdout).to.include(`rolled-back  ${nth(3)}`);
  });

  it('prints the old and the new version, the changes, and how to resume', async () => {
    await importList(products(1_000));
    await importList([...products(999), product(2_000), product(2_001)]);
    const before = await everything();
    const dry = await medref('rollback', 'products', '--dry-run');
    expect(dry.stdout).to.equal(
      `products: dry run: would roll back from ${nth(2)} (1,001 records) to the\n  content of ${nth(1)} (1,000 records): 1 added, 0 changed, 2 removed.\n  Nothing was changed.\n`,
    );
    expect(await everything()).to.deep.equal(before);
    expect((await medref('rollback', 'products', '--dry-run', '--json')).json()).to.deep.equal({
      ...{ collection: 'products', outcome: 'dry-run', version: null, contentOf: nth(1) },
      ...{ previousVersion: nth(2), previousTotalCount: 1_001, totalCount: 1_000 },
      ...{ added: 1, changed: 0, removed: 2 },
    });
    const { stdout } = await medref('rollback', 'products');
    expect(stdout.split('\n')).to.deep.equal([
      `products: rolled back from ${nth(2)} (1,001 records) to the content of`,
      `  ${nth(1)} (1,000 records), now served as ${nth(3)}: 1 added, 0`,
      '  changed, 2 removed.',
      'products: Scheduled imports are paused; "medref resume products" resumes them.',
      '',
    ]);
  });

  it('records who rolled back and why: in the history, versions, status and the pause', async () => {
    await importList(products(2));
    await importList(products(3));
    const rolled = await medref('rollback', 'products', '--reason', 'Wrong list: "A"');
    expect(rolled.code, rolled.stderr).to.equal(0);
    const me = `${userInfo().username}@${hostname()}`;
    const [last] = await readHistory(redis, keys, 1);
    expect(last).to.include({ outcome: 'rolled-back', by: me, why: 'Wrong list: "A"' });
    expect((await medref('versions', 'products')).stdout).to.include(`by ${me}: "Wrong list: \\"A\\""\n`);
    const status = (await medref('status')).stdout.replace(/\n {2}(?! )/g, ' ');
    expect(status).to.include(`by ${me}: "Wrong list: \\"A\\"".`);
    const { collections } = (await medref('status', '--json')).json<{
      collections: Record<string, unknown>[];
    }>();
    expect(collections[0]).to.include({ publishedBy: me, publishedWhy: 'Wrong list: "A"' });
  });

  for (const [what, reason] of [
    ['of over 500 characters', 'x'.repeat(501)],
    ['with a control character', 'a\u0007'],
    ['that is blank', ' '],
  ] as const)
    it(`exits with 2 for a reason ${what}`, async () => {
      const { code, stderr } = await medref('rollback', 'products', '--reason', reason);
      expect([
        code,
        stderr.includes('It accepts 1 to 500 characters without control characters.'),
      ]).to.deep.equal([2, true]);
    });

  it('changes nothing when repeated: while paused, it requires --to and lists the kept versions', async () => {
    for (const count of [10, 11, 12]) await importList(products(count));
    await medref('rollback', 'products');
    const before = await everything();
    for (const more of [[], ['--dry-run'], ['--json']]) {
      const { code, stdout, stderr } = await medref('rollback', 'products', ...more);
      expect([code, stdout]).to.deep.equal([2, '']);
      expect(stderr).to.match(
        new RegExp(
          `^products was rolled back to the content of version ${nth(2)} at [^ ]+Z; imports are paused\\. To go back further, choose a version with --to\\. Kept: ${nth(1)}, ${nth(2)}, ${nth(3)}, ${nth(4)} \\(live\\)\\. "medref resume products" resumes imports\\.\n$`,
        ),
      );
      expect(await everything()).to.deep.equal(before);
    }
    expect((await medref('rollback', 'products', '--to', String(nth(1)), '--dry-run')).code).to.equal(0);
    expect(await everything()).to.deep.equal(before);
    expect((await medref('rollback', 'products', '--to', String(nth(1)))).code).to.equal(0);
    expect((await contents())[0]).to.deep.equal([nth(5), nth(1), true]);
  });

  it('rolls back once more: a rollback deletes no other content', async () => {
    for (const count of [10, 11, 12]) await importList(products(count));
    settings = { ...settings, KEEP_VERSIONS: '2' }; // The lower number takes effect with the next import.
    await medref('rollback', 'products');
    expect((await contents())[0]).to.deep.equal([nth(4), nth(2), true]);
    await medref('resume', 'products');
    await medref('rollback', 'products');
    expect((await contents())[0]).to.deep.equal([nth(5), nth(1), true]);
    await medref('resume', 'products');
    const third = await medref('rollback', 'products');
    expect(third.code).to.equal(1);
    expect(third.stderr).to.match(/No version older than the live content is kept/);
    await medref('rollback', 'products', '--to', String(nth(3)));
    expect((await contents())[0]).to.deep.equal([nth(6), nth(3), true]);
    expect((await contents()).map(([version]) => version)).to.deep.equal([6, 5, 4, 3, 2, 1].map(nth));
    for (const content of [1, 2, 3].map(nth))
      for (const key of contentKeys(keys, content)) expect(await redis.pttl(key), key).to.equal(-1);
  });

  it('deletes the content that was live longest ago, also after rollbacks', async () => {
    for (const count of [10, 11, 12]) await importList(products(count));
    await medref('rollback', 'products', '--to', String(nth(1)));
    await importList(products(13));
    expect(await contents()).to.deep.equal([
      [nth(5), nth(5), true],
      [nth(4), nth(1), false],
      [nth(3), nth(3), false],
      [nth(1), nth(1), false],
    ]);
    await medref('rollback', 'products');
    expect((await contents())[0], 'the content that was live before').to.deep.equal([nth(6), nth(1), true]);
  });

  it('does nothing if the requested content is live', async () => {
    await importList(products(3));
    await importList(products(4));
    const before = await everything();
    const result = await medref('rollback', 'products', '--to', String(nth(2)), '--json');
    expect(result.code).to.equal(0);
    expect(result.json()).to.deep.equal({ collection: 'products', outcome: 'unchanged', version: nth(2) });
    expect(await everything()).to.deep.equal(before);
  });

  const impossible: Record<string, [args: string[], code: number, line: RegExp]> = {
    'to a version that is not kept': [
      ['products', '--to', '9'],
      1,
      new RegExp(`Version 9 is not kept. Kept versions: ${nth(1)}\\.`),
    ],
    'to what is no version': [['products', '--to', '0'], 2, /It accepts a version number/],
    'of a collection that has none before': [
      ['products'],
      1,
      /No version older than the live content is kept/,
    ],
    'of a collection without a version': [['companies'], 1, /companies has no live version to roll back/],
    'of an unknown collection': [['drugz'], 2, /Unknown collection "drugz"/],
  };
  for (const [what, [args, code, line]] of Object.entries(impossible)) {
    it(`does not roll back ${what}, and says why`, async () => {
      await importList(products(3));
      const before = await everything();
      const result = await medref('rollback', ...args);
      expect(result.stderr).to.match(line);
      expect([result.code, result.stdout]).to.deep.equal([code, '']);
      expect(await everything()).to.deep.equal(before);
    });
  }

  it('exits a rollback with 4 while an import holds the lock', async () => {
    await importList(products(3));
    await importList(products(4));
    await redis.set(keys.lock, '{"holder":"another","since":"now"}');
    const result = await medref('rollback', 'products');
    expect(result.code).to.equal(4);
    expect(result.stderr).to.match(/another has held the lock of products since now/);
  });

  it('refuses the rolled-back content until it is forced, then accepts it', async () => {
    await importList(products(10));
    await importList(products(11));
    await medref('rollback', 'products');
    const refused = await importList(products(11));
    expect([refused.code, refused.outcome]).to.deep.equal([3, 'refused']);
    expect(refused.report?.reason).to.match(/data that you rolled back/);
    expect((await importList(products(10))).outcome).to.equal('unchanged');
    expect((await importList(products(11), '--force')).outcome).to.equal('published');
    await importList(products(12));
    expect((await importList(products(11))).outcome).to.equal('published');
  });

  it('remembers the rolled-back content after its version has expired', async () => {
    await importList(products(10));
    await importList(products(11));
    await medref('rollback', 'products');
    for (const count of [12, 13, 14, 15]) await importList(products(count));
    expect((await importList(products(11), '--dry-run')).report?.reason).to.match(
      /data that you rolled back/,
    );
  });

  it('pauses the schedule after a rollback, until resume or a manual publication', async () => {
    const statusPause = async () =>
      (await medref('status', '--json')).json<{ collections: { pause: { version: number } | null }[] }>()
        .collections[0]?.pause;
    await importList(products(10));
    await importList(products(11));
    await medref('rollback', 'products');
    expect(await statusPause()).to.have.property('version', nth(1));
    expect((await importList(products(10))).outcome).to.equal('unchanged');
    expect(await statusPause(), 'an import that publishes nothing ends no pause').to.have.property(
      'version',
      nth(1),
    );
    expect((await medref('resume', 'products', '--json')).json()).to.deep.equal({
      collection: 'products',
      wasPaused: true,
    });
    expect(await statusPause()).to.equal(null);
    expect((await medref('resume', 'products', '--json')).json()).to.have.property('wasPaused', false);
    await medref('rollback', 'products', '--to', String(nth(2)));
    expect(await statusPause()).to.have.property('version', nth(2));
    await importList(products(12));
    expect(await statusPause()).to.equal(null);
  });

  describe('diff', () => {
    it('shows each record that differs, by default between the previous and the live version', async () => {
      await importList(products(4));
      const [, ...rest] = products(4);
      await importList(
        [product(9), ...rest.slice(0, 2), product(4, { published: false, barcodes: [] })],
        '--force',
      );
      const { code, json } = await medref('diff', 'products', '--json');
      expect(code).to.equal(0);
      expect(json()).to.deep.equal({
        ...{ from: nth(1), to: nth(2), added: [product(9)], removed: [product(1)] },
        changed: [
          {
            ...{ id: 4, fields: ['barcodes', 'published'], before: product(4) },
            after: product(4, { published: false, barcodes: [] }),
          },
        ],
      });
      const backwards = ['--from', String(nth(2)), '--to', String(nth(1))];
      const back = (await medref('diff', 'products', ...backwards, '--json')).json();
      expect(back).to.deep.include({ added: [product(1)], removed: [product(9)] });
      const { stdout } = await medref('diff', 'products');
      expect(stdout)
        .to.match(/^~ 4 \(barcodes, published\)$/m)
        .and.to.match(/^1 added, 1 changed, 1 removed$/m);
    });

    it('prints counts and changed members first, then ten of each kind, or all', async () => {
      await importList(products(40));
      const renamed = products(40).map((it) => ({ ...it, drug: { ...it.drug, name: `${it.drug.name}!` } }));
      await importList([...renamed.slice(0, 30), ...products(60).slice(40)], '--force');
      const { stdout } = await medref('diff', 'products');
      const lines = stdout.trimEnd().split('\n');
      expect(lines.slice(0, 4)).to.deep.equal([
        `From version ${nth(1)} to version ${nth(2)}`,
        '20 added, 30 changed, 10 removed',
        '  30 × drug.name',
        'The first 10 of each kind; --all prints all:',
      ]);
      expect(lines.filter((it) => it.startsWith('+ '))).to.have.length(10);
      expect(lines.filter((it) => it.startsWith('~ '))).to.have.length(10);
      const all = (await medref('diff', 'products', '--all')).stdout;
      expect(all.match(/^[-+~] /gm)).to.have.length(60);
    });

    it('names nested fields, and finds nothing between versions of one content', async () => {
      await importList(products(4));
      await importList([product(1, { drug: { id: 1, name: 'OTHER' } }), ...products(4).slice(1)]);
      expect((await medref('diff', 'products', '--json')).stdout).to.include('"fields":["drug.name"]');
      await medref('rollback', 'products');
      const same = await medref(
        'diff',
        'products',
        '--from',
        String(nth(1)),
        '--to',
        String(nth(3)),
        '--json',
      );
      const nothing = { added: [], changed: [], removed: [] };
      expect(same.json()).to.deep.equal({ from: nth(1), to: nth(3), ...nothing });
    });

    it('lists the kept versions if asked for a different one', async () => {
      const nothing = await medref('diff', 'products');
      expect([nothing.code, nothing.stdout]).to.deep.equal([1, '']);
      await importList(products(4));
      expect((await medref('diff', 'products')).stderr).to.include(
        `No version of products before ${nth(1)} is kept`,
      );
      expect((await medref('diff', 'products', '--from', '7')).stderr).to.match(
        new RegExp(`Version 7 .* not kept. Kept versions: ${nth(1)}\\.`),
      );
      expect((await medref('diff', 'products', '--from', 'x')).code).to.equal(2);
    });
  });

  describe('import --dry-run', () => {
    it('shows verdict and counts, exits as the import would, and stores nothing', async () => {
      await importList(products(10));
      const before = await everything();
      const passes = await importList([...products(9), product(20)], '--dry-run');
      expect([passes.code, passes.outcome, passes.report?.reason]).to.deep.equal([0, 'dry-run', null]);
      expect(passes.report).to.deep.include({ version: null, read: 10, written: 10, added: 1, removed: 1 });
      const refused = await importList(products(2), '--dry-run');
      expect([refused.code, refused.outcome]).to.deep.equal([3, 'dry-run']);
      expect(refused.report?.reason).to.match(/8 of the 10 live ids are absent/);
      expect((await importList(products(2), '--dry-run', '--force')).code).to.equal(0);
      expect((await importList(products(10), '--dry-run')).code).to.equal(0);
      expect(await everything()).to.deep.equal(before);
    });

    it('stores nothing without data, or if upstream fails', async () => {
      await redis.del(keys.next);
      expect((await importList(products(3), '--dry-run')).code).to.equal(0);
      const failed = await run(['import', '--dry-run', '--json'], {
        ...settings,
        PRODUCTS_URL: 'file:///none',
      });
      expect(failed.code).to.equal(1);
      expect(await everything()).to.deep.equal({});
    });
  });
});
