// The long kill matrix: every scenario at each Redis command, and a whole list at random ones.
// In: how many random points. Out: the table of what was killed, where, and what was live then.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Strike } from '../support/redis-proxy.ts';
import { proofSetUpText } from '../support/redis-server.ts';
import { whichLists } from '../support/whole-lists.ts';
import { companySubject, productSubject, wholeSubject } from './generations.ts';
import { checkKeySpace, keysOf } from './key-space.ts';
import {
  type KillPoint,
  killAtEach,
  killOnce,
  type Lane,
  nthCommand,
  scenarios,
  startLane,
  undisturbedCommands,
} from './kill-matrix.ts';
import { pauses } from './readers.ts';
import type { Finding } from './reliability-page.ts';

const moments = ['before', 'after'] as const;

const text = `A process of medref is killed (SIGKILL) right before or right after one of its Redis commands, at each of them in turn, while
readers read, each ${pauses.proof} ms after it had its last answer. After each kill the old version or the new one must be live, whole, with nothing beside it that stays; no
reader may have seen anything else; and the next import must do its work. ${proofSetUpText()}`;

/** What a row is made of: what was killed, at which points, and how long that took. */
interface Series {
  readonly title: string;
  readonly points: readonly KillPoint[];
  readonly seconds: number;
}

/** Kills at every command, and a whole list at `count` random points. */
export async function proveKills(count: number, say: (progress: string) => void): Promise<Finding> {
  const series: Series[] = [];
  const add = (one: Series) => {
    series.push(one);
    say(`${one.title}: ${one.points.length} kills held`);
  };
  const small = await Promise.all([startLane(productSubject(30)), startLane(companySubject(30))]);
  try {
    await walkAll(small, add);
    add(await waitItOut(small[0]));
  } finally {
    await Promise.all(small.map((lane) => lane.close()));
  }
  const whole = await startLane(wholeSubject());
  try {
    add(await killWholeList(whole, count, say));
  } finally {
    await whole.close();
  }
  return {
    text,
    tables: [
      {
        head: ['Killed', 'Commands', 'Kills', 'Old version live', 'New version live', 'Faults', 'Seconds'],
        rows: series.map(row),
      },
    ],
    faults: [],
  };
}

/** A first fault ends the series, so a series that has a row has none. */
function row({ title, points, seconds }: Series): (string | number)[] {
  const commands = new Set(points.map(({ nth }) => nth)).size;
  const after = points.filter(({ live }) => live === 'after').length;
  return [title, commands, points.length, points.length - after, after, 0, seconds];
}

/** Each scenario at each of its commands, both moments at once. */
async function walkAll(lanes: readonly [Lane, Lane], add: (series: Series) => void): Promise<void> {
  for (const scenario of Object.values(scenarios)) {
    const startedAt = performance.now();
    const points = await Promise.all(
      moments.map((moment, i) => killAtEach(lanes[i] as Lane, scenario, moment)),
    );
    add({ title: scenario.title, points: points.flat(), seconds: secondsSince(startedAt) });
  }
}

/** The whole list at random commands. */
async function killWholeList(lane: Lane, count: number, say: (progress: string) => void): Promise<Series> {
  const startedAt = performance.now();
  const { length: total } = await undisturbedCommands(lane, scenarios.over);
  const points: KillPoint[] = [];
  while (points.length < count) {
    const nth = 1 + Math.floor(Math.random() * total);
    const moment = moments[points.length % moments.length] as Strike['moment'];
    const point = await killOnce(lane, scenarios.over, { isMeant: nthCommand(nth), moment });
    if (point) points.push(point);
    if (points.length % 25 === 0) say(`${points.length} of ${count} random points held`);
  }
  const { size } = lane.subject;
  const title = `an import of ${size} records (${whichLists}) over a live version, at random among ${total} commands`;
  return { title, points, seconds: secondsSince(startedAt) };
}

/** Nothing is helped along: the lock falls free, and what was staged goes, by themselves. */
async function waitItOut(lane: Lane): Promise<Series> {
  const startedAt = performance.now();
  const { name } = lane.subject.collection;
  const keys = keysOf(name);
  const { length: total } = await undisturbedCommands(lane, scenarios.over);
  const untilFree = async () => {
    const killedAt = performance.now();
    while ((await lane.redis.exists(keys.lock)) === 1) await sleep(100);
    expect(performance.now() - killedAt, 'ms until the lock was free').to.be.below(30_500);
    await sleep(60_500 - (performance.now() - killedAt));
    const { expiring } = await checkKeySpace(lane.redis, name, { rolledBack: false });
    const own = [...expiring.keys()].filter((key) => !/:\d+:(records|order)$/.test(key));
    expect({ own, staged: await lane.redis.exists(keys.staged) }).to.deep.equal({ own: [], staged: 0 });
  };
  const isMeant = nthCommand(total - 4);
  const point = await killOnce(lane, scenarios.over, { isMeant, moment: 'after', untilFree });
  const title = 'an import over a live version, and the lock and what was staged left to expire';
  return { title, points: point ? [point] : [], seconds: secondsSince(startedAt) };
}

function secondsSince(startedAt: number): number {
  return Math.round((performance.now() - startedAt) / 1000);
}
