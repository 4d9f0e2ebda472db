// A Redis that stands still for longer than a lock lives. Run by `npm run prove` alone, since it takes minutes.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { ImportReport } from '../../importer/report.ts';
import { readLiveVersion } from '../../shared/versions.ts';
import { importFrom } from '../support/importing.ts';
import { holdUp, productSubject } from './generations.ts';
import { checkKeySpace, checkNothingUnderWay, keysOf } from './key-space.ts';
import { type Lane, startLane } from './kill-matrix.ts';
import { type Readers, startReaders } from './readers.ts';

describe('a Redis that fails for long', function () {
  this.timeout(240_000);
  const subject = productSubject(1_200);
  const { name } = subject.collection;
  const keys = keysOf(name);
  let lane: Lane;

  before(async () => {
    lane = await startLane(subject);
    for (let i = 0; i < 2; i++) expect((await importNext()).outcome).to.equal('published');
  });
  after(() => lane.close());

  function importNext(): Promise<ImportReport> {
    lane.upstream.generation += 1;
    return importFrom(lane.upstream.url(), subject.collection, {
      redisUrl: lane.server.url,
      maxChangePercent: 100,
    });
  }

  /** Readers get answers again by themselves. */
  async function expectAnswers(readers: Readers): Promise<void> {
    const deadline = Date.now() + 5_000;
    for (const { ok } = { ...readers.counts }; readers.counts.ok < ok + 20; ) {
      expect(Date.now(), 'answers again within 5 s').to.be.below(deadline);
      await readers.more(1);
    }
  }

  /** Nothing of an import that failed is left, at the latest when what it staged has expired. */
  async function expectNothingStaged(): Promise<void> {
    const deadline = Date.now() + 61_000;
    while ((await lane.redis.exists(keys.lock, keys.staged)) > 0) {
      expect(Date.now(), 'the lock and what was staged are gone within 61 s').to.be.below(deadline);
      await sleep(250);
    }
    await checkKeySpace(lane.redis, name, { rolledBack: false });
  }

  for (const seconds of [35, 65]) {
    it(`that stands still for ${seconds} s, longer than a lock lives, during an import and reads: 503, then 200; the import publishes or fails with a plain reason, nothing it staged stays, and the next one publishes`, async function () {
      const readers = startReaders(lane.api, subject, { unavailable: true });
      try {
        const old = await readLiveVersion(lane.redis, keys);
        const { halfway, goOn } = holdUp(lane.upstream);
        const importing = importNext();
        await halfway;
        lane.server.pause();
        goOn();
        await sleep(seconds * 1_000);
        expect(readers.counts.unavailable, 'answers with 503').to.be.above(0);
        lane.server.resume();
        await expectAnswers(readers);

        const report = await importing;
        const live = await readLiveVersion(lane.redis, keys);
        if (report.outcome === 'published') {
          expect(live?.version).to.equal(report.version);
        } else {
          expect(report.outcome).to.equal('failed');
          expect(report.reason).to.match(/^(Redis did not answer in time|The import lost its lock).*\.$/);
          expect(live?.document, 'what was live is live').to.equal(old?.document);
        }
        if (this.test)
          this.test.title += ` (here: ${report.outcome}${report.reason ? `, “${report.reason}”` : ''})`;
        await expectNothingStaged();

        readers.tolerance.unavailable = false;
        await readers.more(50);
        const next = await importNext();
        expect(next.outcome, next.reason ?? '').to.equal('published');
        await readers.seen(lane.upstream.generation);
        await checkNothingUnderWay(lane.redis, name, { rolledBack: false });
        expect(readers.counts.slowestMs, 'ms of the slowest answer').to.be.below(2_300);
      } finally {
        lane.server.resume();
        await readers.stop();
      }
    });
  }
});
