import { expect } from 'chai';
import { type Layout, simulateAnnouncement } from '../../bench/simulations/announcement.ts';
import { costs } from '../../bench/simulations/announcement-costs.ts';
import { announcementText } from '../../bench/simulations/announcement-text.ts';
import { newEventQueue } from '../../bench/simulations/event-queue.ts';
import { courses } from '../../bench/simulations/three-versions.ts';
import { read } from '../support/project-files.ts';
import { product } from '../support/records.ts';

describe('the page on size', () => {
  it('has the tables that npm run simulate prints', () => {
    expect(read('docs/SCALE.md')).to.include(`\n${announcementText()}\n`);
  });
});

describe('the model of an announcement', () => {
  const small: Layout = { name: 'small', processes: 100, mirrors: 10, replicas: 0, followers: 0 };
  /** Nothing takes any time but what a test says. */
  const free = Object.fromEntries(Object.keys(costs).map((name) => [name, 0])) as unknown as typeof costs;
  const polled = { ...free, pointers: 2, pollEvery: 500, bandwidth: Number.POSITIVE_INFINITY };
  const bare = { ...polled, pollEvery: 1e9 };

  it('has one outcome for a seed, and another one for another', () => {
    expect(simulateAnnouncement(small, costs, 1)).to.deep.equal(simulateAnnouncement(small, costs, 1));
    expect(simulateAnnouncement(small, costs, 1)).not.to.deep.equal(simulateAnnouncement(small, costs, 2));
  });

  it('tells all processes before Redis reads what one of them asks, which are served in turn', () => {
    const { known, busy } = simulateAnnouncement(small, { ...bare, announcement: 1, pointer: 1 }, 1);
    // The first one has its two pointers 2 ms after the last one was told, at 100 ms; the last one has waited for 200.
    expect(known.last).to.equal(300);
    expect(known.half).to.equal(200);
    expect(busy).to.equal(300);
  });

  it('has those that an announcement does not reach ask by themselves, within the time from one question to the next', () => {
    const { known } = simulateAnnouncement(small, { ...polled, lost: 1 }, 1);
    expect(known.last).to.be.within(450, 500);
    expect(known.half).to.be.within(150, 350);
  });

  it('answers those that wait one after the other, once the changes were read, which the network bounds', () => {
    const given = { ...bare, changes: 1, changesBytes: 2_000, bandwidth: 1_000, making: 5, answering: 3 };
    const { answered, bytes } = simulateAnnouncement({ ...small, processes: 1 }, given, 1);
    // 1 ms of Redis, 2 ms on the wire, 5 ms to make it, 3 ms for each of ten.
    expect(answered.last).to.equal(1 + 2 + 5 + 30);
    expect(answered.half).to.equal(1 + 2 + 5 + 15);
    expect(bytes).to.equal(2_000);
  });

  it('shares the reads of contents among replicas, each of which has to have the version', () => {
    const given = { ...bare, pointer: 1, changes: 4 };
    const alone = simulateAnnouncement(small, given, 1);
    const shared = simulateAnnouncement({ ...small, replicas: 10 }, given, 1);
    expect(alone.busy).to.equal(100 * (2 + 4));
    // Of the master, which each process asks for its pointers; a replica has a tenth of them, and of the changes.
    expect(shared.busy).to.equal(100 * 2);
    expect(shared.known.last).to.equal(100 * 2);
    expect(shared.answered.last).to.be.below(alone.answered.last / 2);
  });

  it('has services that follow publish after their import, each for its own processes', () => {
    const following = { ...small, followers: 3 };
    const given = { ...bare, importLeast: 1_000, importMost: 1_000, pointer: 1 };
    const { known, busy } = simulateAnnouncement(following, given, 1);
    expect(known.half).to.be.within(1_000, 1_201);
    expect(busy).to.equal(200);
  });

  it('counts what a master is asked while nothing is published', () => {
    const { restingCommands, restingShare } = simulateAnnouncement(small, { ...polled, pointer: 0.5 }, 1);
    expect(restingCommands).to.equal(100 * 2 * 2);
    expect(restingShare).to.equal(0.2);
  });
});

describe('the queue of events', () => {
  it('lets things happen by their times, those of one time in their order, with those that come meanwhile', () => {
    const queue = newEventQueue();
    const happened: string[] = [];
    for (const at of [5, 1, 4, 1, 3, 9, 2]) queue.add(at, (now) => happened.push(`${now}`));
    queue.add(3, () => queue.add(3.5, () => happened.push('added')));
    for (const name of 'abcdefgh') queue.add(2, () => happened.push(name));
    queue.run();
    expect(happened).to.deep.equal(['1', '1', '2', ...'abcdefgh', '3', 'added', '4', '5', '9']);
  });
});

describe('the three versions that are stored in several ways', () => {
  it('are 1 % from one another: once at best, once as lists do', () => {
    const list = Array.from({ length: 10_000 }, (_, i) => product(i + 1));
    const [best, usual] = courses.map((course) => [0, 1, 2].map((nth) => course.versionOf(list, nth)));
    const fresh = (versions: readonly unknown[][] = []) =>
      [1, 2].map((nth) => {
        const before = new Set(versions[nth - 1]?.map((it) => JSON.stringify(it)));
        return versions[nth]?.filter((it) => !before.has(JSON.stringify(it))).length;
      });
    expect(best?.map(({ length }) => length)).to.deep.equal([10_000, 10_000, 10_000]);
    expect(fresh(best)).to.deep.equal([100, 100]);
    expect(usual?.map(({ length }) => length)).to.deep.equal([9_980, 9_980, 9_980]);
    expect(fresh(usual)).to.deep.equal([90, 90]);
  });
});
