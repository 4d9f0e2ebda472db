// The guarantees on several Redis servers, through failovers, deaths and hangs of nodes, while readers read and imports run.

import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Redis as OneServer } from 'ioredis';
import type { ImportReport } from '../../importer/report.ts';
import {
  connectForListening,
  connectForWriting,
  connectToReplica,
  type Redis,
} from '../../shared/redis/connections.ts';
import { readLiveVersion } from '../../shared/store/versions.ts';
import { type GenerationUpstream, holdUp, productSubject, startGenerations } from '../proof/generations.ts';
import { checkKeySpace, keysOf } from '../proof/key-space.ts';
import { pauses, type Readers, startReaders } from '../proof/readers.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { type ImportChanges, importFrom } from '../support/importing.ts';
import { journey } from '../support/journey.ts';
import { startMedref } from '../support/medref.ts';
import { type Node, type Topology, until } from './servers.ts';

const subject = productSubject(450);
const { name: collection } = subject.collection;
const keys = keysOf(collection);

/** More than usual, because a walk of a reader may last as long as several imports. */
const keepVersions = 10;

/** The longest time with 503 at a failover, in ms: the other servers notice a death after 1 s, agree, and are found. */
const maxOutageMs = 15_000;

/** The longest response time, in ms: the API responds after 2 s, also with 503, but this machine has other work, too. */
const maxAnswerMs = 3_000;

/** Declares the tests of the guarantees on a topology. */
export function guarantees(what: string, start: () => Promise<Topology>): void {
  journey(start, `, on ${what}`);
  readersAndImports(what, { start, isOfReplica: false });
  readersAndImports(`${what}, reading from a replica,`, { start, isOfReplica: true });
}

function readersAndImports(
  what: string,
  { start, isOfReplica }: { readonly start: () => Promise<Topology>; readonly isOfReplica: boolean },
): void {
  describe(`readers and imports on ${what}`, function () {
    this.timeout(120_000);
    let topology: Topology;
    let redis: Redis;
    let api: TestApi;
    let upstream: GenerationUpstream;
    let readers: Readers;
    let outages: { stop(): number };

    before(async () => {
      topology = await start();
      redis = await connectForWriting(topology.url);
      api = await startApi({
        redisUrl: topology.url,
        connectReplica: (onLost) => (isOfReplica ? connectToReplica(topology.url, { onLost }) : null),
      });
      upstream = await startGenerations(subject);
      for (let n = 0; n < 2; n++) await publishNext();
    });
    after(async () => {
      await Promise.all([api?.stop(), upstream?.close()]);
      redis?.disconnect();
      await topology?.stop();
    });
    beforeEach(async () => {
      await topology.whole();
      readers = startReaders(api, subject, { unavailable: true }, pauses.suite);
      outages = watchOutages(api);
    });
    afterEach(async () => {
      const ms = outages.stop();
      process.stderr.write(
        `      503 for ${(ms / 1_000).toFixed(1)} s; the slowest answer took ${Math.round(readers.counts.slowestMs)} ms\n`,
      );
      await readers.stop();
      expect(ms, 'how long readers had 503').to.be.below(maxOutageMs);
      expect(readers.counts.slowestMs, 'the slowest answer').to.be.below(maxAnswerMs);
    });

    async function importNext(changes: ImportChanges = {}): Promise<ImportReport> {
      upstream.generation += 1;
      return importFrom(upstream.url(), subject.collection, {
        ...{ redisUrl: topology.url, maxChangePercent: 100, keepVersions },
        ...changes,
      });
    }

    async function publishNext(changes: ImportChanges = {}): Promise<ImportReport> {
      const report = await importNext(changes);
      expect(report.outcome, report.reason ?? '').to.equal('published');
      return report;
    }

    /** Expects that readers get the next publication without a restart, and that the fault has left nothing behind. */
    async function expectRecovered(): Promise<void> {
      await until(async () => (await api.get(`/${collection}`)).status === 200, 'readers are answered');
      await redis.del(keys.lock);
      await publishNext();
      await readers.seen(upstream.generation);
      await checkKeySpace(redis, collection, { rolledBack: false, keepVersions });
    }

    /** Connects for writing. @throws Error while a part of a Cluster has no primary: then it refuses every command */
    async function canBeWritten(): Promise<boolean> {
      (await connectForWriting(topology.url)).disconnect();
      return true;
    }

    /** Starts an import, causes an event in the middle of its list, and lets the import continue. */
    async function importAround(happens: () => Promise<void>): Promise<ImportReport> {
      const { halfway, goOn } = holdUp(upstream);
      const report = importNext();
      await halfway;
      await happens();
      goOn();
      return report;
    }

    const master = () => topology.masterOf(keys.live);
    const isAnotherMaster = (than: Node) =>
      until(async () => (await master()) !== than, 'another node is the master');

    it('survive a graceful failover during an import', async () => {
      const report = await importAround(() => topology.failOver(keys.live));
      expect(report.outcome, report.reason ?? '').to.equal('published');
      await readers.seen(upstream.generation);
      await expectRecovered();
    });

    it('survive the death of the primary during an import, which continues on the next one', async () => {
      const dead = await master();
      const report = await importAround(() => dead.server.kill());
      expect(report.outcome, report.reason ?? '').to.equal('published');
      await readers.seen(upstream.generation);
      expect(await master()).not.to.equal(dead);
      await topology.revive([dead]);
      await topology.whole();
      await expectRecovered();
    });

    it('survive a primary that hangs until another takes over, and returns as a replica', async () => {
      const still = await master();
      const report = await importAround(async () => {
        still.server.pause();
        await isAnotherMaster(still);
        still.server.resume();
      });
      expect(['published', 'failed'], report.reason ?? '').to.include(report.outcome);
      if (report.outcome === 'failed') expect(report.reason).to.match(/^(The import lost its lock|Redis )/);
      await topology.whole();
      await expectRecovered();
    });

    it('survive the death of all replicas; only readers of a replica notice', async () => {
      const replicas = await topology.replicasOf(keys.live);
      await importAround(async () => {
        await Promise.all(replicas.map(({ server }) => server.kill()));
      });
      await readers.seen(upstream.generation);
      if (!isOfReplica) expect(readers.counts.unavailable).to.equal(0);
      await topology.revive(replicas);
    });

    if (isOfReplica) {
      it('survive replicas that hang, and read from one again', async () => {
        const replicas = await topology.replicasOf(keys.live);
        for (const { server } of replicas) server.pause();
        const report = await importNext();
        expect(report.outcome, report.reason ?? '').to.equal('published');
        await readers.seen(upstream.generation);
        for (const { server } of replicas) server.resume();
        const hmgets = async () => {
          const facts = await Promise.all(replicas.map(({ redis: it }) => it.info('commandstats')));
          return facts
            .join()
            .split('cmdstat_hmget:calls=')
            .slice(1)
            .reduce((sum, it) => sum + Number.parseInt(it, 10), 0);
        };
        const before = await hmgets();
        await until(async () => (await hmgets()) > before + 20, 'a replica is read from');
      });
      return;
    }

    it('keep the old version when an import is killed at any point', async () => {
      for (let ms = 300; ms <= 900; ms += 200) {
        const live = await readLiveVersion(redis, keys);
        upstream.generation += 1;
        const importer = startMedref(['import', collection], {
          ...{ REDIS_URL: topology.url, MAX_CHANGE_PERCENT: '100', KEEP_VERSIONS: String(keepVersions) },
          PRODUCTS_URL: upstream.url().href,
        });
        await sleep(ms);
        importer.process.kill('SIGKILL');
        await importer.ended;
        await readers.more(4);
        const now = await readLiveVersion(redis, keys);
        if (now?.version !== live?.version) await readers.seen(upstream.generation);
        await expectRecovered();
      }
      expect(readers.counts.unavailable).to.equal(0);
    });

    it('receive announcements, also after the death of the server that they listened to', async () => {
      const listener = connectForListening(topology.url) as OneServer;
      try {
        const heard: string[] = [];
        listener.on('message', (_channel, version) => heard.push(version));
        await listener.subscribe(keys.announcements);
        const { remotePort } = listener.stream as Socket;
        const dead = topology.nodes.find(({ server }) => server.port === remotePort) as Node;
        await dead.server.kill();
        await until(async () => (await api.get(`/${collection}`)).status === 200, 'readers are answered');
        await until(async () => listener.status === 'ready', 'another server is listened to');
        await until(canBeWritten, 'another node has the slots of that one');
        const { version } = await publishNext();
        await until(async () => heard.includes(String(version)), 'it is heard of');
        await topology.revive([dead]);
      } finally {
        listener.disconnect();
      }
    });

    it('warn of a publication that a failover can lose; if it is lost, its number is not used again', async () => {
      await readers.stop(); // They would report a fault, because a version that was live is not live any more.
      const before = await readLiveVersion(redis, keys);
      const dead = await master();
      const replicas = await topology.replicasOf(keys.live);
      for (const { server } of replicas) server.pause();
      await dead.redis.call('CLIENT', 'KILL', 'TYPE', 'replica');
      const lost = await publishNext({ maxNumberWaitMs: 10_000 });
      expect(lost.warnings).to.match(/^0 of 1 replicas confirmed version \d+ within 1 s\. A failover /);
      await dead.server.kill();
      for (const { server } of replicas) server.resume();
      await isAnotherMaster(dead);
      expect(await readLiveVersion(redis, keys)).to.deep.equal(before);
      const answered = async () => Number((await api.get(`/${collection}`)).headers.get('medref-version'));
      await until(async () => (await answered()) === before?.version, 'readers have what is there');
      const { version } = await publishNext();
      expect(version).to.be.above(lost.version as number);
      await until(async () => (await answered()) === version, 'readers have the next one');
      await topology.revive([dead]);
    });

    it('recover after all servers have died', async () => {
      await Promise.all(topology.nodes.map(({ server }) => server.kill()));
      await sleep(1_000);
      await topology.revive(topology.nodes);
      await topology.whole();
      await expectRecovered();
    });
  });
}

/** Reads a record every 50 ms. @returns `stop`, which ends it and returns the total time with 503, in ms */
function watchOutages(api: TestApi): { stop(): number } {
  let isOver = false;
  let sum = 0;
  const watch = async () => {
    for (let before = Date.now(); !isOver; before = Date.now()) {
      const { status } = await api.get(`/${collection}/${subject.anId}`);
      await sleep(50);
      if (status === 503) sum += Date.now() - before;
    }
  };
  watch().catch(() => undefined);
  return {
    stop() {
      isOver = true;
      return sum;
    },
  };
}
