// Tests a schedule with FOLLOW: when it imports, from a medref and from other upstreams, and how often it sends requests.

import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { readLastImportSince, readSeenVersion } from '../../importer/report.ts';
import { rollBack } from '../../importer/rollback.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { readHistory } from '../../shared/import-history.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { readLiveVersion } from '../../shared/store/versions.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { aheadOfClock, importRecords } from '../support/importing.ts';
import { productKeys } from '../support/keys.ts';
import { medref } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { type Responder, upstreamServers } from '../support/upstream-server.ts';

interface RunningSchedule {
  readonly log: readonly (Readonly<Record<string, unknown>> & { readonly msg: string })[];
  stop(): Promise<number>;
}

/** The keys of the mirror. Upstream keeps its own data in the same Redis, under a different prefix. */
const mirror = collectionKeys('mirror', productCollection);

describe('a schedule with FOLLOW', () => {
  const server = useRedis();
  const startUpstream = upstreamServers();
  const running: RunningSchedule[] = [];
  const asked: string[] = [];
  let redis: Redis;
  let api: TestApi;
  let list = products(20);
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    await redis.set(mirror.next, aheadOfClock);
    list = products(20);
    await publish();
    asked.length = 0;
    api = await startApi({
      redisUrl: server().url,
      onResponse: ({ target }) => void asked.push(String(target)),
    });
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((it) => it.stop()));
    await api.stop();
  });

  async function publish(): Promise<number> {
    list = [...list, product(list.length + 1)];
    const { outcome, version } = await importRecords(list, productCollection, { redisUrl: server().url });
    expect(outcome).to.equal('published');
    return version as number;
  }

  /** Starts a schedule that only follows. It imports at its start only if nothing is live. */
  async function start(
    url: string,
    cron = '0 3 31 12 *',
    pauses = { firstMs: 40, longestMs: 160 },
  ): Promise<RunningSchedule> {
    const { readSettings } = await import('../../config/settings.ts');
    const { scheduleCommand } = await import('../../bin/commands/schedule.ts');
    const stop = new AbortController();
    const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() });
    const log: RunningSchedule['log'][number][] = [];
    const env = { REDIS_URL: server().url, KEY_PREFIX: 'mirror', FOLLOW: 'true' };
    const settings = readSettings({ ...env, PRODUCTS_URL: url, UPSTREAM_TOKEN: api.key });
    const ended = scheduleCommand(
      {
        // The line has a field for seconds, which settings refuse.
        settings: { ...settings, importCron: cron },
        ...{ stdout: nowhere(), stderr: nowhere(), stopSignal: () => stop.signal },
        ...{ log: (line) => void log.push(JSON.parse(line)), lowerPriority: () => undefined },
        ...{ stayUp: () => undefined, mindResults: () => undefined },
      },
      {},
      {
        waits: { firstMs: 40, longestMs: 100, lockedMs: 40 },
        pauses,
      },
    );
    const schedule: RunningSchedule = {
      log,
      stop: () => {
        stop.abort(new Error('Stopped by SIGTERM.'));
        return ended;
      },
    };
    running.push(schedule);
    return schedule;
  }
  const startOnApi = () => start(`${api.origin}/products`);

  const outcomes = async () =>
    (await readHistory(redis, mirror, 100)).map(({ outcome }) => outcome).reverse();
  /** Waits until this many imports have ended, and until a request waits for the next publication. */
  async function settled(count: number): Promise<string[]> {
    while ((await outcomes()).length < count || api.waiting() === 0) await sleep(5);
    return outcomes();
  }
  const checksums = async () => {
    const found = await Promise.all([productKeys, mirror].map((keys) => readLiveVersion(redis, keys)));
    return found.map((version) => version?.checksum);
  };

  it('imports each version of upstream at once, unchanged, with one request each', async () => {
    const schedule = await startOnApi();
    expect(await settled(1)).to.deep.equal(['published']);
    for (const count of [2, 3]) {
      const version = await publish();
      const from = performance.now();
      expect((await settled(count)).at(-1)).to.equal('published');
      expect(performance.now() - from).to.be.below(1_500);
      const [its, ours] = await checksums();
      expect(ours).to.equal(its);
      expect((await readSeenVersion(redis, mirror))?.version).to.equal(String(version));
    }
    expect(asked.filter((target) => target.includes('wait=50'))).to.have.length(2);
    expect(asked.filter((target) => target === '/products')).to.have.length(3);
    expect(schedule.log.map(({ msg }) => msg)).to.include('Upstream has published; importing.');
    const from = performance.now();
    expect(await schedule.stop()).to.equal(0);
    expect(performance.now() - from, 'it stops immediately').to.be.below(2_000);
    while (api.waiting() > 0) await sleep(5);
  });

  it('follows after another process made the first import', async () => {
    // A version from elsewhere is live, so the schedule imports nothing at its start.
    await importRecords(products(3), productCollection, { redisUrl: server().url, keyPrefix: 'mirror' });
    await startOnApi();
    await sleep(200);
    expect(api.waiting()).to.equal(0);
    const { code, stdout } = await medref(['import', '--force'], {
      ...{ REDIS_URL: server().url, KEY_PREFIX: 'mirror', UPSTREAM_TOKEN: api.key },
      PRODUCTS_URL: `${api.origin}/products`,
    });
    expect(code, stdout).to.equal(0);
    expect(await settled(2)).to.deep.equal(['published', 'published']);
    await publish();
    expect(await settled(3)).to.deep.equal(['published', 'published', 'published']);
    expect(new Set(await checksums())).to.have.length(1);
  });

  it('continues from a later version with the same content', async () => {
    const schedule = await startOnApi();
    await settled(1);
    await schedule.stop();
    const { version: to } = (await readLiveVersion(redis, productKeys)) as { version: number };
    await publish();
    await rollBack(productCollection, { redis, keyPrefix: 'medref', to, maxNumberWaitMs: 0 });
    while (api.waiting() > 0) await sleep(5);
    await startOnApi();
    expect(await settled(2)).to.deep.equal(['published', 'unchanged']);
    await sleep(200);
    expect(await outcomes()).to.have.length(2);
  });

  it('does not import a refused version again, but the next one', async () => {
    await startOnApi();
    await settled(1);
    const whole = list;
    list = list.slice(0, 10);
    await importRecords(list, productCollection, { redisUrl: server().url, force: true });
    expect(await settled(2)).to.deep.equal(['published', 'refused']);
    await sleep(200);
    expect(await outcomes()).to.have.length(2);
    list = whole;
    await publish();
    expect((await settled(3)).at(-1)).to.equal('published');
    expect(new Set(await checksums())).to.have.length(1);
  });

  it('respects a pause: each publication is logged once, and none is imported', async () => {
    await startOnApi();
    await settled(1);
    await redis.set(mirror.pause, JSON.stringify({ since: '2026-01-01T00:00:00.000Z', version: 1 }));
    await publish();
    expect(await settled(2)).to.deep.equal(['published', 'paused']);
    await sleep(200);
    expect(await outcomes()).to.have.length(2);
    await redis.del(mirror.pause);
    await publish();
    expect(await settled(3)).to.deep.equal(['published', 'paused', 'published']);
  });

  it('waits for another import, and imports again if that began before the publication', async () => {
    await startOnApi();
    await settled(1);
    await redis.set(mirror.lock, JSON.stringify({ token: 't', holder: 'another', since: 'now' }));
    const version = await publish();
    await sleep(150);
    expect(await outcomes()).to.have.length(1);
    await redis.del(mirror.lock);
    expect(await settled(2)).to.deep.equal(['published', 'published']);
    expect((await readSeenVersion(redis, mirror))?.version).to.equal(String(version));
  });

  it('imports at once after upstream lost its data, and follows from there', async () => {
    await startOnApi();
    await settled(1);
    const keys = await redis.keys('medref:{products}*');
    await redis.del(...keys);
    await redis.set(productKeys.next, 30_000_101_000_000);
    await publish();
    const [, second] = await settled(2);
    expect(second).to.equal('published');
    expect(new Set(await checksums())).to.have.length(1);
  });

  it('continues after upstream was unavailable, which is logged once', async () => {
    const { log } = await startOnApi();
    await settled(1);
    const { port } = api;
    await api.stop();
    while (!log.some(({ msg }) => msg.includes('Cannot follow upstream'))) await sleep(5);
    const before = await readHistory(redis, mirror, 100);
    await sleep(300);
    const troubles = log.filter(({ msg }) => msg.includes('Cannot follow upstream'));
    expect(troubles).to.have.length(1);
    expect(troubles[0]?.['reason']).to.match(
      new RegExp(`:${port}/products/changes refused the connection\\.`),
    );
    expect(await readHistory(redis, mirror, 100)).to.deep.equal(before);
  });

  describe('with a simulated upstream', () => {
    const lines = (records: readonly unknown[]) => records.map((it) => `${JSON.stringify(it)}\n`).join('');
    /** Responds with the list as a medref does, and with changes as a test defines. */
    const medrefLike =
      (
        changes: (response: ServerResponse, nth: number) => void,
        headers: Record<string, string> = {},
      ): Responder =>
      (response, request, nth) => {
        if (request.url?.includes('/changes')) return changes(response, nth);
        response.writeHead(200, {
          'content-type': 'application/x-ndjson',
          'medref-version': '7',
          ...headers,
        });
        response.end(lines(list));
      };
    const untilLogged = async ({ log }: RunningSchedule, text: string) => {
      while (!log.some(({ msg }) => msg.includes(text))) await sleep(5);
      return log.filter(({ msg }) => msg.includes(text));
    };
    const afterAWhile = async ({ requests }: { readonly requests: readonly unknown[] }) => {
      await sleep(400);
      return requests.length;
    };

    for (const [what, respond, reason] of [
      [
        'of an older release',
        medrefLike((response) => response.writeHead(400).end()),
        /responded with 400: an older release of medref, without long polls\.$/,
      ],
      [
        'no medref at that address',
        medrefLike((response) => response.end('{}')),
        /does not belong to a medref\.$/,
      ],
    ] as const)
      it(`logs once that ${what} is left to the schedule`, async () => {
        const upstream = await startUpstream(respond);
        const schedule = await start(upstream.url('/products').href);
        const [reported, ...more] = await untilLogged(schedule, 'only the schedule imports it');
        expect(reported?.['reason']).to.match(reason);
        expect([more, await afterAWhile(upstream)]).to.deep.equal([[], 2]);
      });

    it('sends nothing more to an upstream that is no medref', async () => {
      const upstream = await startUpstream((response) => response.end(JSON.stringify(list)));
      await start(upstream.url('/products').href);
      while ((await outcomes()).length < 1) await sleep(5);
      expect(await afterAWhile(upstream)).to.equal(1);
      expect((await readSeenVersion(redis, mirror))?.version).to.equal(null);
    });

    it('polls less often after failures, 410, and responses without waiting', async () => {
      const responses: ((response: ServerResponse) => void)[] = [
        (response) => response.writeHead(500).end(),
        (response) => response.writeHead(410).end(),
        (response) => response.setHeader('medref-version', '7').end('{}'),
        (response) => response.setHeader('medref-version', '8').end('{}'),
      ];
      for (const respond of responses) {
        await redis.unlink(...(await redis.keys('*')), 'none');
        const upstream = await startUpstream(medrefLike(respond));
        const schedule = await start(upstream.url('/products').href);
        while ((await outcomes()).length < 1) await sleep(5);
        // The pauses are 40, 80, 160 and 160 ms, each shortened by at most half. An import comes with each.
        expect(await afterAWhile(upstream)).to.be.at.most(24);
        while (upstream.requests.length < 3) await sleep(5);
        await schedule.stop();
      }
    });

    it('keeps polling through a long outage, at most the longest pause apart', async () => {
      const upstream = await startUpstream(medrefLike((response) => response.writeHead(500).end()));
      await start(upstream.url('/products').href, undefined, { firstMs: 1, longestMs: 8 });
      while (upstream.requests.length < 25) await sleep(5); // If each pause doubled, this would take hours.
    });

    it('closes its connection at the end', async () => {
      const upstream = await startUpstream(medrefLike((response) => response.writeHead(500).end()));
      const schedule = await start(upstream.url('/products').href, undefined, {
        ...{ firstMs: 60_000, longestMs: 60_000 },
      });
      await untilLogged(schedule, 'Cannot follow upstream');
      expect(await upstream.openConnections()).to.be.above(0);
      await schedule.stop();
      // Without a close, either side would end an idle connection by itself after 4 s or 5 s.
      const soon = performance.now() + 2_000;
      while ((await upstream.openConnections()) > 0 && performance.now() < soon) await sleep(5);
      expect(await upstream.openConnections()).to.equal(0);
    });

    it('imports again if an import had begun before the publication', async () => {
      const held: ServerResponse[] = [];
      let lists = 0;
      const upstream = await startUpstream((response, request) => {
        response.setHeader('medref-version', '7');
        if (request.url?.includes('/changes')) return void held.push(response);
        lists += 1;
        response.writeHead(200, { 'content-type': 'application/x-ndjson' });
        if (lists === 2) held.push(response);
        else response.end(lines(list));
      });
      const soon = new Date(Math.ceil((Date.now() + 700) / 1_000) * 1_000);
      const [s, m, h] = [soon.getUTCSeconds(), soon.getUTCMinutes(), soon.getUTCHours()];
      await start(upstream.url('/products').href, `${s} ${m} ${h} * * *`);
      while (held.length < 2) await sleep(5);
      const [changes, scheduled] = held as [ServerResponse, ServerResponse];
      changes.setHeader('medref-version', '8').end('{}');
      await sleep(50);
      scheduled.end(lines(list));
      while ((await outcomes()).length < 3) await sleep(5);
      expect(await outcomes()).to.deep.equal(['published', 'unchanged', 'unchanged']);
    });

    it('waits as long as upstream asks', async () => {
      const upstream = await startUpstream(
        medrefLike((response) => response.writeHead(503, { 'retry-after': '1' }).end()),
      );
      const schedule = await start(upstream.url('/products').href);
      await untilLogged(schedule, 'Cannot follow upstream');
      await sleep(100);
      expect(upstream.requests).to.have.length(2);
    });

    it('publishes no list that does not match its digest', async () => {
      const upstream = await startUpstream(
        medrefLike((response) => response.writeHead(400).end(), {
          'medref-digest': `list=:${Buffer.alloc(32).toString('base64')}:, set=:x:`,
        }),
      );
      await start(upstream.url('/products').href);
      while ((await outcomes()).length < 1) await sleep(5);
      const [last] = await readHistory(redis, mirror, 1);
      expect([last?.outcome, last?.version]).to.deep.equal(['failed', null]);
      expect(last?.reason).to.match(/\/products sent a list that does not match its Medref-Digest: .*\.$/);
      expect(await readLiveVersion(redis, mirror)).to.equal(null);
      expect(await readLastImportSince(redis, mirror, new Date(0))).to.equal(null);
    });
  });
});
