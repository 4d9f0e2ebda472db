import { expect } from 'chai';
import { productSubject } from './generations.ts';
import { killAtEachScript, type Lane, type Scenario, scenarios, startLane } from './kill-matrix.ts';
import { pauses } from './readers.ts';

// `npm run prove` kills at each Redis command of each scenario.
describe('a command that is killed at a script of its import, while readers read', function () {
  this.timeout(120_000);
  let lanes: [Lane, Lane];

  before(async () => {
    // Products have all that a version can have: what is derived from them too.
    lanes = await Promise.all([
      startLane(productSubject(30), pauses.suite),
      startLane(productSubject(30), pauses.suite),
    ]);
  });
  after(async () => {
    await Promise.all(lanes.map((lane) => lane.close()));
  });

  const killed: [scenario: Scenario, scripts: readonly string[]][] = [
    [
      scenarios.over,
      [
        ...['begin', 'stage-records', 'stage-blocks', 'stage-runs', 'stage-pages', 'compare', 'publish'],
        'release',
      ],
    ],
    [scenarios.rollback, ['publish']],
    [scenarios.fewer, ['retain']],
    [scenarios.refused, ['conclude']],
    [scenarios.dryRun, ['discard']],
  ];
  for (const [scenario, scripts] of killed) {
    it(`leaves the version before or the one after, whole and nothing else, in ${scenario.title} at ${scripts.join(', ')}`, async () => {
      // Both moments at once, each in a lane of its own.
      const walks = await Promise.all([
        killAtEachScript(lanes[0], scenario, 'before', scripts),
        killAtEachScript(lanes[1], scenario, 'after', scripts),
      ]);
      for (const [n, points] of walks.entries()) {
        expect(points.map(({ command }) => command)).to.have.members(scripts);
        for (const { command, live } of points)
          if (command === 'publish') expect(live).to.equal(n === 0 ? 'before' : 'after');
      }
    });
  }
});
