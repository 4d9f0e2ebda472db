import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { lifetimes } from '../../importer/lease.ts';
import type { ImportReport } from '../../importer/report.ts';
import { readHistory } from '../../shared/import-history.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import type { CollectionKeys } from '../../shared/store/keys.ts';
import { stagedKeys } from '../../shared/store/keys.ts';
import { readLiveVersion } from '../../shared/store/versions.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { aheadOfClock, type ImportChanges, importFrom } from '../support/importing.ts';
import {
  type Fate,
  type Link,
  type ProxiedCommand,
  type Strike,
  scriptNames,
  startRedisProxy,
  strikeOnce,
} from '../support/redis-proxy.ts';
import { proofSetUp, startTestRedis, type TestRedis } from '../support/redis-server.ts';
import {
  companySubject,
  type GenerationUpstream,
  type HeldUp,
  holdUp,
  productSubject,
  type Subject,
  startGenerations,
} from './generations.ts';
import { checkKeySpace, checkNothingUnderWay, keysOf } from './key-space.ts';
import { isFull, note } from './proof.ts';
import { pauses, type Readers, startReaders } from './readers.ts';

/** The unit of faults: each command or each script is struck in turn. */
const unit = isFull ? 'command' : 'script';

/** Lifetimes of locks and staged keys, the delay of a late reply, and how long Redis is unavailable, in ms. */
const slow = isFull
  ? { lifetimes, silenceMs: undefined, late: 9_000, away: 13_000 }
  : {
      lifetimes: { lockMs: 6_000, stagedMs: 2_000, renewEveryMs: 300 },
      ...{ silenceMs: 1_000, late: 700, away: 3_000 },
    };

const products = productSubject(isFull ? 1_200 : 450);
const companies = companySubject(30);

const ownScripts: ReadonlySet<string> = new Set(scriptNames.values());

describe('a Redis that fails', function () {
  this.timeout(isFull ? 0 : 120_000);
  let server: TestRedis;
  let redis: Redis;
  let api: TestApi;
  const upstreams = new Map<Subject, GenerationUpstream>();
  const open: Readers[] = [];

  before(async () => {
    server = await startTestRedis({ appendOnly: true, ...proofSetUp() });
    redis = await connectForWriting(server.url);
    api = await startApi({ redisUrl: server.url });
    for (const subject of [products, companies]) {
      upstreams.set(subject, await startGenerations(subject));
      // Numbers from the clock always differ. With this start, Redis assigns a number that it has forgotten again.
      await redis.set(keysOf(subject.collection.name).next, aheadOfClock);
      for (let i = 0; i < 2; i++) await importNext(subject);
    }
  });
  afterEach(async () => {
    for (const { sends } of [upstreamOf(products), upstreamOf(companies)]) expect(sends).to.equal(null);
    await Promise.all(open.splice(0).map((readers) => readers.stop()));
    while ((await api.get('/products')).status !== 200) await sleep(20);
  });
  after(async () => {
    await Promise.all([api.stop(), ...[...upstreams.values()].map((upstream) => upstream.close())]);
    redis.disconnect();
    await server.stop();
  });

  const upstreamOf = (subject: Subject) => upstreams.get(subject) as GenerationUpstream;

  /** Imports the next generation; a test that wants faults passes the URL of a proxy. */
  async function importNext(
    subject: Subject,
    redisUrl = server.url,
    changes: ImportChanges = {},
  ): Promise<ImportReport> {
    const upstream = upstreamOf(subject);
    upstream.generation += 1;
    return importFrom(upstream.url(), subject.collection, {
      ...{ redisUrl, maxChangePercent: 100 },
      ...changes,
    });
  }

  async function importThrough(
    subject: Subject,
    fate: Fate,
    changes: ImportChanges = {},
  ): Promise<ImportReport> {
    const proxy = await startRedisProxy(server.port, fate);
    try {
      return await importNext(subject, proxy.url, changes);
    } finally {
      await proxy.close();
    }
  }

  /** Starts an import whose upstream waits in the middle of its list until `goOn`. */
  function importHeldUp(subject: Subject): HeldUp & { report: Promise<ImportReport> } {
    return { ...holdUp(upstreamOf(subject)), report: importNext(subject) };
  }

  function read(subject: Subject, { unavailable }: { unavailable: boolean }): Readers {
    const readers = startReaders(api, subject, { unavailable }, isFull ? pauses.proof : pauses.suite);
    open.push(readers);
    return readers;
  }

  /** Expects everything that must hold after an import that published, whatever fault it met. */
  async function expectPublished(subject: Subject, report: ImportReport, readers: Readers): Promise<void> {
    const { collection } = subject;
    expect(report.reason, report.reason ?? '').to.equal(null);
    expect(report.outcome).to.equal('published');
    expect([report.read, report.written, report.rejected]).to.deep.equal([subject.size, subject.size, 0]);
    await readers.seen(upstreamOf(subject).generation);
    expect(readers.versions.get(report.version as number)).to.equal(upstreamOf(subject).generation);
    expect((await readLiveVersion(redis, keysOf(collection.name)))?.version).to.equal(report.version);
    await checkNothingUnderWay(redis, collection.name, { rolledBack: false });
    const history = await readHistory(redis, keysOf(collection.name), 100);
    const entries = history.filter(
      (entry) => entry.outcome === 'published' && entry.version === report.version,
    );
    expect(entries, 'the publication in the history').to.have.length(1);
  }

  /** Expects that an import did not publish, and that the next one does. */
  async function expectOldLive(subject: Subject, live: string | undefined, readers: Readers): Promise<void> {
    const { name } = subject.collection;
    expect((await checkKeySpace(redis, name, { rolledBack: false })).live?.document).to.equal(live);
    const next = await importNext(subject);
    await expectPublished(subject, next, readers);
  }

  const liveDocument = async (subject: Subject) =>
    (await readLiveVersion(redis, keysOf(subject.collection.name)))?.document;

  /** Expects that readers got 503 while Redis was unavailable, and get other responses again without help. */
  async function expectRecovery(readers: Readers): Promise<void> {
    expect(readers.counts.unavailable, 'answers with 503').to.be.above(0);
    readers.tolerance.unavailable = true;
    const deadline = Date.now() + 5_000;
    for (let ok = readers.counts.ok; readers.counts.ok < ok + 20; ) {
      expect(Date.now(), 'answers again within 5 s').to.be.below(deadline);
      await readers.more(1);
    }
    readers.tolerance.unavailable = false;
    await readers.more(20);
    expect(readers.counts.slowestMs).to.be.below(2_300);
  }

  /** Returns a condition: the `nth` command of an import after it has connected; the first one takes the lock. */
  function nthOfImport(nth: number): (command: ProxiedCommand) => boolean {
    let count = 0;
    return ({ name }) => {
      if (count > 0 || name === 'SET') count += 1;
      return count === nth;
    };
  }

  /** Returns a condition: a command with this name. */
  const named =
    (wanted: string) =>
    ({ name }: ProxiedCommand): boolean =>
      name === wanted;

  /** Returns the strike of the first fate that has one for a command. */
  const firstOf = (fates: readonly Fate[], command: ProxiedCommand) =>
    fates.reduce<ReturnType<Fate>>((strike, fate) => strike ?? fate(command), undefined);

  /** Returns the names of the scripts that an import runs. */
  async function scriptsOfImport(): Promise<string[]> {
    const names = new Set<string>();
    await importThrough(companies, ({ name }) => {
      if (ownScripts.has(name) || /^(multi|hset|zadd|exec)$/i.test(name)) names.add(name);
      return undefined;
    });
    return [...names];
  }

  it('killed and restarted during an import and reads: 503, then 200, and the import publishes', async () => {
    const readers = read(products, { unavailable: true });
    const { halfway, goOn, report } = importHeldUp(products);
    await halfway;
    await server.kill();
    await readers.more(20);
    await sleep(500);
    await server.restart();
    goOn();
    await expectPublished(products, await report, readers);
    await expectRecovery(readers);
  });

  /**
   * Imports again and again, each time with a fault at the next one of its commands, until none is left. In `npm test` it imports
   * once, with a fault at each kind of its writes.
   */
  async function expectPublishedWhateverIsStruck(
    strike: Strike,
    tolerance: { unavailable: boolean },
  ): Promise<void> {
    const scripts = isFull ? [] : await scriptsOfImport();
    let points = 0;
    const counted: Strike = {
      ...strike,
      act: (link, reply) => {
        points += 1;
        return strike.act(link, reply);
      },
    };
    for (let nth = 1, before = -1; before < points; nth++) {
      before = points;
      const readers = read(companies, tolerance);
      const fates = isFull
        ? [strikeOnce(nthOfImport(nth), counted)]
        : scripts.map((script) => strikeOnce(named(script), counted));
      const report = await importThrough(companies, (command) => firstOf(fates, command));
      await expectPublished(companies, report, readers);
      await readers.stop(); // Otherwise each command would add two more readers.
      if (!isFull) break;
    }
    expect(points).to.be.at.least(isFull ? 15 : 8);
    if (!isFull) expect(points).to.equal(scripts.length);
  }

  for (const moment of ['before', 'after'] as const) {
    it(`killed ${moment} each ${unit} of an import and restarted: each import publishes`, async () => {
      const act = async (link: Link) => {
        await server.kill();
        link.cut();
        await server.restart();
      };
      await expectPublishedWhateverIsStruck({ moment, act }, { unavailable: true });
    });
  }

  for (const moment of ['before', 'after'] as const) {
    it(`cut off ${moment} each ${unit} of an import: each import publishes, and no reader notices`, async () => {
      const act = (link: Link) => link.cut();
      await expectPublishedWhateverIsStruck({ moment, act }, { unavailable: false });
    });
  }

  /** Losses of data, as if Redis had crashed before its last writes were on disk. */
  const losses: Record<string, (keys: CollectionKeys) => Promise<unknown>> = {
    'what was staged': async (keys) => {
      const names = await redis.smembers(keys.staged);
      await redis.del(keys.staged, ...names.flatMap((name) => stagedKeys(keys, name)));
    },
    'that it gave out a number': async (keys) => {
      if ((await redis.exists(keys.staged)) === 1) await redis.decr(keys.next);
    },
  };
  for (const [loss, lose] of Object.entries(losses)) {
    it(`losing ${loss} before each ${unit} of an import: each import publishes, and no reader notices`, async () => {
      const act = () => lose(keysOf('companies'));
      await expectPublishedWhateverIsStruck({ moment: 'before', act }, { unavailable: false });
    });
  }

  for (const part of ['records', 'order', 'blocks'] as const) {
    it(`losing the staged ${part} right before the publication: staged again, and published`, async () => {
      const readers = read(products, { unavailable: false });
      const report = await importThrough(
        products,
        strikeOnce(({ name }) => name === 'publish', {
          moment: 'before',
          act: async () => {
            const keys = keysOf('products');
            for (const name of await redis.smembers(keys.staged)) await redis.del(keys.content(name)[part]);
          },
        }),
      );
      await expectPublished(products, report, readers);
    });
  }

  it('losing staged keys again and again: failed with a plain reason after four attempts, and reads continue', async () => {
    const readers = read(companies, { unavailable: false });
    const live = await liveDocument(companies);
    let losses = 0;
    const report = await importThrough(companies, ({ name }) =>
      name === 'publish'
        ? {
            moment: 'before',
            act: async () => {
              losses += 1;
              const keys = keysOf('companies');
              for (const staged of await redis.smembers(keys.staged))
                await redis.del(keys.content(staged).records);
            },
          }
        : undefined,
    );
    expect([report.outcome, report.reason]).to.deep.equal([
      'failed',
      'Redis has lost staged keys. Run it again.',
    ]);
    expect(losses).to.equal(4);
    await expectOldLive(companies, live, readers);
  });

  for (const seconds of isFull ? [3, 10] : [2]) {
    it(`hanging for ${seconds} s during an import and reads: 503, then 200, and the import publishes`, async () => {
      const readers = read(products, { unavailable: true });
      const { halfway, goOn, report } = importHeldUp(products);
      await halfway;
      server.pause();
      goOn();
      await sleep(seconds * 1_000);
      server.resume();
      await expectPublished(products, await report, readers);
      await expectRecovery(readers);
    });
  }

  if (isFull) {
    for (const seconds of [35, 65]) {
      it(`hanging for ${seconds} s, longer than a lock lives: the import publishes or fails plainly, no staged keys stay, and the next one publishes`, async () => {
        const readers = read(products, { unavailable: true });
        const keys = keysOf('products');
        const before = await liveDocument(products);
        const { halfway, goOn, report } = importHeldUp(products);
        await halfway;
        server.pause();
        goOn();
        await sleep(seconds * 1_000);
        server.resume();
        await expectRecovery(readers);
        const { outcome, reason } = await report;
        note(`${outcome}: ${reason}`);
        if (outcome === 'failed') {
          expect(reason).to.match(/^(Redis |Cannot reach Redis|The import lost its lock).*\.$/);
          expect(await liveDocument(products)).to.equal(before);
        } else expect(outcome).to.equal('published');
        for (const deadline = Date.now() + 61_000; (await redis.exists(keys.lock, keys.staged)) > 0; ) {
          expect(Date.now(), 'the lock and what was staged are gone within 61 s').to.be.below(deadline);
          await sleep(250);
        }
        await expectPublished(products, await importNext(products), readers);
      });
    }
  }

  it('reaching maxmemory during an import: failed with a plain reason, and reads continue', async () => {
    const readers = read(products, { unavailable: false });
    const sent: string[] = [];
    await importThrough(products, ({ name }) => void sent.push(name));
    const beforePublication = sent.indexOf('publish') - sent.indexOf('SET');
    const live = await liveDocument(products);
    for (const nth of [1, 2].map((third) => Math.floor((beforePublication * third) / 3))) {
      const report = await importThrough(
        products,
        strikeOnce(nthOfImport(nth), {
          moment: 'before',
          act: () => redis.config('SET', 'maxmemory', '1mb'),
        }),
      );
      expect(report.outcome, `struck at command ${nth}`).to.equal('failed');
      expect(report.reason).to.match(/^Redis has reached its maxmemory\. .*try again after a minute\.$/);
      await readers.more(50);
      const refused = await importNext(products);
      expect([refused.outcome, refused.reason]).to.deep.equal(['failed', report.reason]);
      expect(await liveDocument(products)).to.equal(live);
      expect(await redis.exists(keysOf('products').lock), 'the lock is given back').to.equal(0);
      expect(await redis.exists(keysOf('products').staged), 'nothing staged stays').to.equal(0);
      await redis.config('SET', 'maxmemory', '0');
    }
    await expectOldLive(products, live, readers);
  });

  it('reaching maxmemory at the publication: the version is live completely, or not at all', async () => {
    const readers = read(products, { unavailable: false });
    const report = await importThrough(
      products,
      strikeOnce(({ name }) => name === 'publish', {
        moment: 'before',
        act: () => redis.config('SET', 'maxmemory', '1mb'),
      }),
    );
    await redis.config('SET', 'maxmemory', '0');
    await expectPublished(products, report, readers);
  });

  it('losing the reply to the end of an import: the history has one entry of it', async () => {
    const readers = read(companies, { unavailable: false });
    const live = await liveDocument(companies);
    upstreamOf(companies).sends = (response) => response.end('{"data":[{}]}');
    const cut = { moment: 'after' as const, act: (link: { cut(): void }) => link.cut() };
    const report = await importThrough(
      companies,
      strikeOnce(({ name }) => name === 'conclude', cut),
    );
    upstreamOf(companies).sends = null;
    expect(report.outcome).to.equal('refused');
    const [last, before] = await readHistory(redis, keysOf('companies'), 2);
    expect([last?.outcome, before?.outcome]).to.deep.equal(['refused', 'published']);
    await expectOldLive(companies, live, readers);
  });

  it(`unavailable for ${slow.away / 1_000} s after a publication, or replying late: live content never expires`, async () => {
    const readers = [
      read(products, { unavailable: false }),
      read(companies, { unavailable: false }),
    ] as const;
    const proxy = await startRedisProxy(
      server.port,
      strikeOnce(({ name }) => name === 'publish', {
        moment: 'after',
        act: async (link) => {
          proxy.refusing = true;
          link.cut();
          await sleep(slow.away);
          proxy.refusing = false;
        },
      }),
    );
    const commands: string[] = [];
    const late = strikeOnce(({ name }) => name === 'publish', {
      ...{ moment: 'after', commandsPass: true },
      act: () => sleep(slow.late),
    });
    try {
      const [cutOff, delayed] = await Promise.all([
        importNext(products, proxy.url, { lifetimes: slow.lifetimes }),
        importThrough(
          companies,
          (command) => {
            commands.push(command.name);
            return late(command);
          },
          { lifetimes: slow.lifetimes },
        ),
      ]);
      expect(commands.slice(commands.indexOf('publish')), 'renewed after publish').to.include('renew');
      expect(proxy.commands.filter((name) => name === 'publish').length, 'published again').to.be.at.least(2);
      await expectPublished(products, cutOff, readers[0]);
      await expectPublished(companies, delayed, readers[1]);
    } finally {
      await proxy.close();
    }
  });

  it('never replying to a publication on its connection: the import reports it as published', async () => {
    const readers = read(companies, { unavailable: false });
    const report = await importThrough(
      companies,
      strikeOnce(({ name }) => name === 'publish', { moment: 'after', act: () => new Promise(() => {}) }),
      { silenceMs: slow.silenceMs },
    );
    await expectPublished(companies, report, readers);
  });
});
