import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { scriptNames } from '../support/redis-proxy.ts';
import { productSubject, wholeSubject } from './generations.ts';
import { checkNothingUnderWay, keysOf } from './key-space.ts';
import { killAtEach, killOnce, type Lane, scenarios, startLane, undisturbedCommands } from './kill-matrix.ts';
import { isFull, note } from './proof.ts';

const moments = ['before', 'after'] as const;

/** How many imports of a complete list are killed in a full run, each at a random command. */
const kills = Number(process.env['KILLS'] ?? 100);

const ownScripts = new Set(scriptNames.values());

/** Commands that write, outside of scripts. */
const writes = ['SET', 'HSET', 'ZADD', 'DEL', 'UNLINK', 'PEXPIRE'];

describe('a command that is killed (SIGKILL) while readers read', function () {
  this.timeout(isFull ? 0 : 120_000);
  let lanes: [Lane, Lane];
  /** The commands at which a run was killed already. */
  const tried = new Set<string>();

  before(async () => {
    lanes = await Promise.all([startLane(productSubject(30)), startLane(productSubject(30))]);
  });
  after(async () => {
    await Promise.all(lanes.map((lane) => lane.close()));
  });

  /** Returns the commands to kill in `npm test`: writes and scripts that no earlier scenario sent, and always an import's end. */
  async function commandsToTry(lane: Lane, scenario: (typeof scenarios)[keyof typeof scenarios]) {
    const sent = new Set(await undisturbedCommands(lane, scenario));
    const isEnd = (name: string) => ['publish', 'conclude'].includes(name);
    const isWrite = (name: string) => ownScripts.has(name) || writes.includes(name);
    const chosen = [...sent].filter((name) => isEnd(name) || (isWrite(name) && !tried.has(name)));
    for (const name of chosen) tried.add(name);
    return chosen;
  }

  for (const scenario of Object.values(scenarios)) {
    if (scenario.first && !isFull) continue;
    it(`leaves the old or the new version complete, and no other key: ${scenario.title}`, async () => {
      const chosen = isFull ? null : await commandsToTry(lanes[0], scenario);
      const walks = await Promise.all(
        moments.map((moment, n) => killAtEach(lanes[n] as Lane, scenario, moment, chosen)),
      );
      for (const [n, points] of walks.entries()) {
        if (chosen) expect(points.map(({ command }) => command)).to.have.members(chosen);
        for (const { command, live } of points) if (command === 'publish') expect(live).to.equal(moments[n]);
      }
      const points = walks.flat();
      note(
        `${points.length} kills, the new version live after ${points.filter(({ live }) => live === 'after').length}`,
      );
    });
  }

  if (!isFull) return;

  it('frees its lock within 30 s, and its staged keys expire within 60 s', async () => {
    const lane = lanes[0];
    const { name } = lane.subject.collection;
    const keys = keysOf(name);
    const { length: total } = await undisturbedCommands(lane, scenarios.over);
    const untilFree = async () => {
      const killedAt = performance.now();
      while ((await lane.redis.exists(keys.lock)) === 1) await sleep(100);
      expect(performance.now() - killedAt, 'ms until the lock was free').to.be.below(30_500);
      await sleep(60_500 - (performance.now() - killedAt));
      await checkNothingUnderWay(lane.redis, name, { rolledBack: false });
    };
    const isMeant = ({ nth }: { nth: number }) => nth === total - 4;
    await killOnce(lane, scenarios.over, { isMeant, moment: 'after', untilFree });
  });

  it(`leaves the old or the new version: import of a whole list, at ${kills} random commands`, async () => {
    const lane = await startLane(wholeSubject());
    try {
      const { length: total } = await undisturbedCommands(lane, scenarios.over);
      for (let killed = 0; killed < kills; ) {
        const chosen = 1 + Math.floor(Math.random() * total);
        const moment = moments[killed % moments.length] as (typeof moments)[number];
        const point = await killOnce(lane, scenarios.over, { isMeant: ({ nth }) => nth === chosen, moment });
        if (point) killed += 1;
        if (killed % 25 === 0) note(`${killed} of ${kills} kills among ${total} commands`);
      }
    } finally {
      await lane.close();
    }
  });
});
