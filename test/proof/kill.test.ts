import { expect } from 'chai';
import { productSubject } from './generations.ts';
import { type KillPoint, killAtEach, type Lane, type Scenario, scenarios, startLane } from './kill-matrix.ts';

describe('an importer that is killed at each of its Redis commands, while readers read', function () {
  this.timeout(300_000);
  let lanes: [Lane, Lane];

  before(async () => {
    // Products have all that a version can have: what is derived from them too.
    lanes = await Promise.all([startLane(productSubject(30)), startLane(productSubject(30))]);
  });
  after(async () => {
    await Promise.all(lanes.map((lane) => lane.close()));
  });

  /** Both moments at once, each in a lane of its own. */
  async function walk(scenario: Scenario): Promise<KillPoint[]> {
    const [before, after] = await Promise.all([
      killAtEach(lanes[0], scenario, 'before'),
      killAtEach(lanes[1], scenario, 'after'),
    ]);
    return [...before, ...after];
  }

  for (const scenario of [scenarios.over, scenarios.first, scenarios.rollback]) {
    it(`leaves the version before or the one after, whole and nothing else, in ${scenario.title}`, async () => {
      const points = await walk(scenario);
      expect(points.length).to.be.at.least(30);
    });
  }
});
