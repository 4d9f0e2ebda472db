// The long kill matrix, as a command: every scenario at each Redis command, and the real list at random ones.
// In: how many random points, 300 unless said. Out: the table of docs/RELIABILITY.md on stdout; exit 1 at the first fault.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { realListsAreThere } from '../support/real-lists.ts';
import type { Strike } from '../support/redis-proxy.ts';
import { companySubject, productSubject, realSubject } from './generations.ts';
import { checkKeySpace, keysOf } from './key-space.ts';
import {
  type KillPoint,
  killAtEach,
  killOnce,
  type Lane,
  scenarios,
  startLane,
  totalCommands,
} from './kill-matrix.ts';

const moments = ['before', 'after'] as const;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** A row: what was killed, at how many points, and what was live then. */
function sayRow(title: string, points: readonly KillPoint[], startedAt: number): void {
  const commands = new Set(points.map(({ nth }) => nth)).size;
  const after = points.filter(({ live }) => live === 'after').length;
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  say(`| ${title} | ${commands} | ${points.length} | ${points.length - after} | ${after} | 0 | ${seconds} |`);
}

/** Each scenario at each of its commands, both moments at once. */
async function walkAll(lanes: readonly [Lane, Lane]): Promise<void> {
  for (const scenario of Object.values(scenarios)) {
    const startedAt = performance.now();
    const points = await Promise.all(
      moments.map((moment, i) => killAtEach(lanes[i] as Lane, scenario, moment)),
    );
    sayRow(scenario.title, points.flat(), startedAt);
  }
}

/** The real list at random commands. */
async function killRealList(lane: Lane, count: number): Promise<void> {
  const startedAt = performance.now();
  const total = await totalCommands(lane, scenarios.over);
  const points: KillPoint[] = [];
  while (points.length < count) {
    const nth = 1 + Math.floor(Math.random() * total);
    const moment = moments[points.length % moments.length] as Strike['moment'];
    const point = await killOnce(lane, scenarios.over, { nth, moment });
    if (point) points.push(point);
    if (points.length % 25 === 0) process.stderr.write(`${points.length} of ${count} random points held\n`);
  }
  const { size } = lane.subject;
  sayRow(
    `an import of ${size} records over a live version, at random among ${total} commands`,
    points,
    startedAt,
  );
}

/** Nothing is helped along: the lock falls free, and what was staged goes, by themselves. */
async function waitItOut(lane: Lane): Promise<void> {
  const startedAt = performance.now();
  const { name } = lane.subject.collection;
  const keys = keysOf(name);
  const total = await totalCommands(lane, scenarios.over);
  const untilFree = async () => {
    const killedAt = performance.now();
    while ((await lane.redis.exists(keys.lock)) === 1) await sleep(100);
    expect(performance.now() - killedAt, 'ms until the lock was free').to.be.below(30_500);
    await sleep(60_500 - (performance.now() - killedAt));
    const { expiring } = await checkKeySpace(lane.redis, name, { rolledBack: false });
    const own = [...expiring.keys()].filter((key) => !/:\d+:(records|order)$/.test(key));
    expect({ own, staged: await lane.redis.exists(keys.staged) }).to.deep.equal({ own: [], staged: 0 });
  };
  const point = await killOnce(lane, scenarios.over, { nth: total - 4, moment: 'after', untilFree });
  sayRow('the same, and the lock and what was staged left to expire', point ? [point] : [], startedAt);
}

const count = Number(process.argv[2] ?? 300);
say('| Killed | Commands | Kills | Old version live | New version live | Faults | Seconds |');
say('|---|---|---|---|---|---|---|');
const small = await Promise.all([startLane(productSubject(30)), startLane(companySubject(30))]);
try {
  await walkAll(small);
  await waitItOut(small[0]);
} finally {
  await Promise.all(small.map((lane) => lane.close()));
}
if (realListsAreThere) {
  const real = await startLane(realSubject());
  try {
    await killRealList(real, count);
  } finally {
    await real.close();
  }
} else {
  say('The real lists are not there, so they were left out.');
}
