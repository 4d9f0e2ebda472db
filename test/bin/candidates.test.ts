import { expect } from 'chai';
import { pino } from 'pino';
import { publishCandidate } from '../../importer/candidate.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { readHistory } from '../../shared/import-history.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { createApiKey } from '../../shared/store/api-keys.ts';
import { contentKeys, stagedKeys } from '../../shared/store/keys.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { aheadOfClock } from '../support/importing.ts';
import { readKeySpace } from '../support/key-space.ts';
import { productKeys as keys } from '../support/keys.ts';
import { medref as run } from '../support/medref.ts';
import { receivers } from '../support/receiver.ts';
import { product, products } from '../support/records.ts';
import { startRedisProxy, strikeOnce } from '../support/redis-proxy.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

interface Report {
  readonly outcome: string;
  readonly version: number | null;
  readonly reason: string | null;
}

interface CandidateFacts {
  readonly version: number;
  readonly expiresAt: string;
  readonly madeAt: string;
}

/** Returns the number of the nth version. All are ahead of the clock, so no import waits for the clock. */
const nth = (n: number) => aheadOfClock + n;
const week = 7 * 86_400_000;

describe('candidates', function () {
  this.timeout(60_000);
  const server = useRedis();
  const startUpstream = upstreamServers();
  const startReceiver = receivers();
  let redis: Redis;
  let upstreamList: readonly unknown[] = [];
  let requests = 0;
  let settings: Record<string, string>;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    await redis.set(keys.next, aheadOfClock);
    const upstream = await startUpstream((response) => {
      requests += 1;
      response.end(JSON.stringify({ data: upstreamList }));
    });
    settings = { REDIS_URL: server().url, PRODUCTS_URL: upstream.url('/list').href };
  });

  const medref = (...args: string[]) => run(args, settings);
  const importList = async (
    list: readonly unknown[],
    changes: Record<string, string> = {},
    ...args: string[]
  ) => {
    upstreamList = list;
    const result = await run(['import', 'products', '--json', ...args], { ...settings, ...changes });
    const [report] = result.json<{ imports: Report[] }>().imports;
    return { code: result.code, ...(report as Report) };
  };
  const importManually = (list: readonly unknown[], ...args: string[]) =>
    importList(list, { PUBLISH: 'manual' }, ...args);
  const candidate = async () => {
    const { collections } = (await medref('status', '--json')).json<{
      collections: { candidate: CandidateFacts | null }[];
    }>();
    return collections[0]?.candidate ?? null;
  };
  const live = async () => {
    const { versions } = (await medref('versions', 'products', '--json')).json<{
      versions: { version: number; live: boolean; totalCount: number }[];
    }>();
    const found = versions.find((it) => it.live);
    return found && [found.version, found.totalCount];
  };

  describe('of a refused import', () => {
    it('is inspected, and published with a reason exactly as it is', async () => {
      const before = products(10);
      const after = [product(1, { published: false }), ...products(5).slice(1)];
      await importList(before);
      expect(await importList(after)).to.deep.include({ code: 3, outcome: 'refused', version: null });
      expect(await live()).to.deep.equal([nth(1), 10]);
      expect(await candidate()).to.deep.include({
        ...{ version: nth(2), comparedWith: nth(1), totalCount: 5, outdated: false },
        ...{ added: 0, changed: 1, removed: 5 },
      });
      const diff = await medref('diff', 'products', '--to', 'candidate', '--json');
      expect(diff.json()).to.deep.equal({
        ...{ from: nth(1), to: nth(2), added: [] },
        changed: [{ id: 1, fields: ['published'], before: before[0], after: after[0] }],
        removed: before.slice(5),
      });
      const ofDrugs = (await medref('diff', 'drugs', '--to', 'candidate', '--json')).json<{ to: number }>();
      expect(ofDrugs.to).to.equal(nth(2));

      upstreamList = products(1);
      const asked = requests;
      const published = await medref('publish', 'products', '--reason', 'checked by hand', '--json');
      expect(published.code, published.stderr).to.equal(0);
      expect(requests, 'requests to upstream').to.equal(asked);
      expect(published.json()).to.deep.include({
        ...{ collection: 'products', outcome: 'published', version: nth(2), previousVersion: nth(1) },
        ...{ read: 5, written: 5, rejected: 0, added: 0, changed: 1, removed: 5, reason: null },
      });
      expect(await live()).to.deep.equal([nth(2), 5]);
      expect(await candidate()).to.equal(null);
      const [entry] = await readHistory(redis, keys, 1);
      expect(entry).to.deep.include({ outcome: 'published', why: 'checked by hand', forced: true });
      expect(entry?.by).to.match(/^\S+@\S+$/);
      expect(entry?.despite).to.deep.equal(['shrink (50.0 % > 20 %)', 'elements ($.barcodes 50.0 % > 20 %)']);
      expect((await medref('versions', 'products')).stdout).to.match(/by \S+@\S+: "checked by hand"/);
      expect((await medref('status')).stdout.replace(/\s+/g, ' ')).to.match(
        /products: Published in spite of its checks by \S+: "checked by hand": shrink \(50.0 % > 20 %\)/,
      );
      expect((await importList(after)).outcome, 'the same list again').to.equal('unchanged');
    });

    it('serves readers the same bytes as an import of its list, and exact changes', async () => {
      await importList(products(10));
      await importList(products(5));
      const { key } = await createApiKey(redis, 'medref', { client: 'A', expiresAt: null, rate: null });
      const api: TestApi = await startApi({ redisUrl: server().url });
      const get = (path: string, headers: Record<string, string> = {}) =>
        fetch(`${api.origin}${path}`, { headers: { authorization: `Bearer ${key}`, ...headers } });
      try {
        expect((await get(`/products?version=${nth(2)}`)).status, 'a candidate is invisible').to.equal(410);
        expect((await get(`/products/changes?since=${nth(2)}`)).status).to.equal(410);
        await medref('publish', 'products');
        const lines = await get(`/products?version=${nth(2)}`, { accept: 'application/x-ndjson' });
        expect(await lines.text()).to.equal(
          products(5)
            .map((it) => `${JSON.stringify(it)}\n`)
            .join(''),
        );
        const changes = await (await get(`/products/changes?since=${nth(1)}&version=${nth(2)}`)).json();
        expect((changes as { _meta: { totalCount: number } })._meta.totalCount).to.equal(5);
      } finally {
        await api.stop();
      }
      expect((await medref('verify', 'products')).code).to.equal(0);
    });

    it('waits in `status` and in the output of the import, with the commands that help', async () => {
      await importList(products(10));
      await importList(products(5));
      const text = (await medref('import', 'products')).stdout;
      for (const command of [
        'medref diff products --to candidate',
        `medref publish products --candidate ${nth(2)}`,
        'medref discard products',
      ]) {
        expect(text).to.include(command);
        expect((await medref('status')).stdout).to.include(command);
      }
      expect((await medref('status')).stdout.replace(/\s+/g, ' ')).to.match(
        new RegExp(
          `Candidate ${nth(2)} \\(5 records, \\+0 ~0 −5\\) has waited since .* UTC; it is kept until`,
        ),
      );
    });

    it('is not left by a list without a valid record, a dry run, or a failure', async () => {
      await importList(products(10));
      expect((await importList([{}])).outcome).to.equal('refused');
      expect(await importList(products(5), {}, '--dry-run')).to.deep.include({ code: 3, outcome: 'dry-run' });
      expect((await importManually(products(11), '--dry-run')).outcome).to.equal('dry-run');
      expect(await candidate()).to.equal(null);
      expect(await redis.exists(keys.candidate)).to.equal(0);
    });
  });

  describe('with PUBLISH=manual', () => {
    it('is left by an import that passes the checks, and published later', async () => {
      await importList(products(10));
      expect(await importManually(products(11))).to.deep.include({
        ...{ code: 0, outcome: 'candidate', version: nth(2), reason: null },
      });
      expect(await live()).to.deep.equal([nth(1), 10]);
      const published = await medref('publish', 'products', '--candidate', String(nth(2)));
      expect(published.stdout).to.include(`published the candidate ${nth(2)} with 11 records, +1 ~0 −0`);
      expect(await live()).to.deep.equal([nth(2), 11]);
      const [entry] = await readHistory(redis, keys, 1);
      expect(entry).to.deep.include({ forced: false, despite: [], why: null });
      expect((await importManually(products(11))).outcome).to.equal('unchanged');
    });

    it('is left by the first import, and by a forced one', async () => {
      expect((await importManually(products(3))).outcome).to.equal('candidate');
      expect(await live()).to.equal(undefined);
      const diff = await medref('diff', 'products', '--to', 'candidate');
      expect([diff.code, diff.stderr]).to.deep.equal([1, 'products has no live version to compare.\n']);
      expect((await medref('publish', 'products')).code).to.equal(0);
      expect(await live()).to.deep.equal([nth(1), 3]);
      expect(await importManually(products(1), '--force')).to.deep.include({ code: 0, outcome: 'candidate' });
      await medref('publish', 'products');
      const [entry] = await readHistory(redis, keys, 1);
      expect(entry?.despite).to.deep.equal(['shrink (66.7 % > 20 %)', 'elements ($.barcodes 66.7 % > 20 %)']);
    });

    it('stays under its number if the next import finds the same records, and is replaced if they differ', async () => {
      await importList(products(10));
      await importManually(products(11));
      const first = await candidate();
      expect(await importManually(products(11))).to.deep.include({ outcome: 'candidate', version: nth(2) });
      expect(await candidate()).to.deep.equal(first);
      await importManually(products(12));
      expect((await candidate())?.version).to.equal(nth(4));
      expect(await redis.exists(...stagedKeys(keys, nth(2))), 'keys of the replaced one').to.equal(0);
      expect(await redis.exists(...stagedKeys(keys, nth(3))), 'keys of the same records').to.equal(0);
    });

    it('does not hold up the repair of a damaged live version', async () => {
      await importList(products(10));
      await redis.del(keys.content(nth(1)).blocks);
      expect((await importManually(products(10))).outcome).to.equal('published');
    });

    it('ends a pause when it is published', async () => {
      await importList(products(10));
      await importList(products(11));
      await medref('rollback', 'products');
      await importManually(products(12));
      expect(await redis.exists(keys.pause)).to.equal(1);
      await medref('publish', 'products');
      expect(await redis.exists(keys.pause)).to.equal(0);
    });
  });

  it('expires with all of its keys after 7 days', async () => {
    await importList(products(10));
    await importManually(products(11));
    for (const key of [keys.candidate, ...contentKeys(keys, nth(2))])
      expect(await redis.pttl(key), key).to.be.within(week - 60_000, week);
    const { madeAt, expiresAt } = (await candidate()) as CandidateFacts;
    expect(Date.parse(expiresAt) - Date.parse(madeAt)).to.equal(week);
  });

  it('cannot be published once the live version has changed; its data is then deleted', async () => {
    await importList(products(10));
    await importManually(products(11));
    await importList(products(12));
    for (const key of contentKeys(keys, nth(2)))
      expect(await redis.pttl(key), key)
        .to.be.within(-2, 60_000)
        .and.not.to.equal(-1);
    const { code, stderr } = await medref('publish', 'products');
    expect(code).to.equal(1);
    expect(stderr).to.equal(
      `The live version of products has changed: the candidate ${nth(2)} was compared with version ${nth(1)}, and version ${nth(3)} is live now. Run "medref import products".\n`,
    );
    expect(await live()).to.deep.equal([nth(3), 12]);
    expect(await candidate()).to.deep.include({ version: nth(2), outdated: true });
    expect((await medref('status')).stdout).not.to.include('medref publish');
    const diff = await medref('diff', 'products', '--to', 'candidate');
    expect([diff.code, diff.stderr.includes('Its data is deleted.')]).to.deep.equal([1, true]);
    expect((await medref('discard', 'products')).code).to.equal(0);
    expect(await candidate()).to.equal(null);
  });

  it('cannot be published after a rollback', async () => {
    await importList(products(10));
    await importList(products(11));
    await importManually(products(12));
    await medref('rollback', 'products');
    expect((await medref('publish', 'products')).code).to.equal(1);
  });

  for (const [what, damage] of [
    ['part of it is lost', (content: ReturnType<typeof keys.content>) => redis.hdel(content.records, '3')],
    [
      'a record was altered',
      (content: ReturnType<typeof keys.content>) => redis.hset(content.records, '3', '{}'),
    ],
    ['its change set is lost', () => redis.del(keys.changeSet(nth(2)))],
  ] as const)
    it(`is deleted in place of a publication if ${what}`, async () => {
      await importList(products(10));
      await importManually(products(11));
      await damage(keys.content(nth(2)));
      const { code, stderr } = await medref('publish', 'products');
      expect(code).to.equal(1);
      expect(stderr).to.match(
        new RegExp(
          `^The candidate ${nth(2)} of products lost data in Redis and was deleted\\. Run "medref import products"\\.`,
        ),
      );
      expect(await live()).to.deep.equal([nth(1), 10]);
      expect(await redis.exists(keys.candidate, ...stagedKeys(keys, nth(2)))).to.equal(0);
      const [entry] = await readHistory(redis, keys, 1);
      expect(entry?.outcome).to.equal('discarded');
    });

  for (const text of ['{}', 'null', 'x', '{"version":{"version":5,"checksum":"a"}}'])
    it(`is reported as damaged and repaired if its key holds ${text}`, async () => {
      await importList(products(10));
      await redis.set(keys.candidate, text);
      for (const command of ['publish', 'discard']) {
        const { code, stderr } = await medref(command, 'products');
        expect([code, stderr.includes('Run "medref verify products --repair".')]).to.deep.equal([1, true]);
      }
      expect((await medref('status')).stdout).to.include(keys.candidate);
      await medref('verify', 'products', '--repair');
      expect(await redis.exists(keys.candidate)).to.equal(0);
      expect((await importList(products(10))).outcome).to.equal('unchanged');
    });

  it('is deleted by `discard`, which readers and the schedule do not notice', async () => {
    await importList(products(10));
    const before = await readKeySpace(redis);
    await importManually(products(11));
    const discarded = await medref('discard', 'products', '--reason', 'wrong list', '--json');
    expect(discarded.json()).to.deep.include({ collection: 'products', outcome: 'discarded', version: null });
    const [entry] = await readHistory(redis, keys, 1);
    expect(entry).to.deep.include({ outcome: 'discarded', why: 'wrong list' });
    const changed = [keys.imports, keys.next, keys.rejects, keys.validators];
    const others = async () =>
      Object.fromEntries(Object.entries(await readKeySpace(redis)).filter(([key]) => !changed.includes(key)));
    expect(await others()).to.deep.equal(
      Object.fromEntries(Object.entries(before).filter(([key]) => !changed.includes(key))),
    );
  });

  for (const [what, act] of [
    ['is lost', (link: { cut(): void }) => link.cut()],
    ['never comes', () => new Promise<void>(() => {})],
  ] as const)
    it(`is published once if the reply of Redis ${what}`, async () => {
      await importList(products(10));
      await importManually(products(11));
      const proxy = await startRedisProxy(
        server().port,
        strikeOnce(({ name }) => name === 'publish', { moment: 'after', act }),
      );
      const unlucky = await connectForWriting(proxy.url, { silenceMs: 500 });
      try {
        const result = await publishCandidate(productCollection, {
          ...{ redis: unlucky, keyPrefix: 'medref', number: null, by: 'test' },
          ...{ keepVersions: 3, logger: pino({ level: 'silent' }) },
        });
        expect(result.outcome).to.equal('published');
      } finally {
        unlucky.disconnect();
        await proxy.close();
      }
      const history = await readHistory(redis, keys, 10);
      expect(history.map(({ outcome }) => outcome)).to.deep.equal(['published', 'candidate', 'published']);
    });

  it('needs the lock of its collection', async () => {
    await importList(products(10));
    await importManually(products(11));
    const holder = { token: 'x', holder: 'process 1 on elsewhere', since: '2026-11-22T03:00:00.000Z' };
    await redis.set(keys.lock, JSON.stringify(holder), 'PX', 20_000);
    for (const command of ['publish', 'discard']) {
      const { code, stderr } = await medref(command, 'products');
      expect([code, stderr]).to.deep.equal([
        4,
        'process 1 on elsewhere has held the lock of products since 2026-11-22T03:00:00.000Z. Try again later.\n',
      ]);
    }
  });

  it('is refused with a sentence if there is none, or its number differs', async () => {
    await importList(products(10));
    for (const command of ['publish', 'discard']) {
      const { code, stderr } = await medref(command, 'products');
      expect(code, command).to.equal(1);
      expect(stderr).to.match(/^products has no candidate\. /);
    }
    const diff = await medref('diff', 'products', '--to', 'candidate');
    expect([diff.code, diff.stderr]).to.deep.equal([1, 'products has no candidate.\n']);
    await importManually(products(11));
    const other = await medref('publish', 'products', '--candidate', '7');
    expect(other.code).to.equal(1);
    expect(other.stderr).to.include(`The candidate of products is ${nth(2)}, not 7.`);
    expect(await live()).to.deep.equal([nth(1), 10]);
  });

  for (const args of [
    ['publish'],
    ['publish', 'drugs'],
    ['discard', 'drugs'],
    ['publish', 'products', '--candidate', 'last'],
    ['publish', 'products', '--reason', 'x'.repeat(501)],
    ['publish', 'products', '--reason', 'a\u0007b'],
    ['discard', 'products', '--reason', ' '],
    ['diff', 'products', '--to', 'candidates'],
    ['diff', 'products', '--from', 'candidate'],
  ])
    it(`ends with 2: medref ${JSON.stringify(args).slice(0, 60)}`, async () => {
      const { code, stderr } = await medref(...args);
      expect(code, stderr).to.equal(2);
      expect(stderr).to.match(/\S/);
    });

  it('is sent to the webhook: the waiting one, the refused one, and the published one', async () => {
    const receiver = await startReceiver();
    settings = { ...settings, WEBHOOK_URL: receiver.url.href };
    await importList(products(10));
    await importManually(products(11));
    await importList(products(2));
    await medref('publish', 'products', '--reason', 'checked');
    const notices = receiver.received.map(({ body }) => JSON.parse(body));
    expect(
      notices.map(({ event, version, candidate, why }) => [event, version, candidate, why]),
    ).to.deep.equal([
      ['published', nth(1), null, null],
      ['candidate', nth(2), nth(2), null],
      ['refused', null, nth(3), null],
      ['published', nth(3), null, 'checked'],
    ]);
  });
});
