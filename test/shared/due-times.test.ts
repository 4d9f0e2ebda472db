// How far apart the runs of a schedule are. When they are due is tried in test/importer/schedule.test.ts.

import { expect } from 'chai';
import { longestGapMs } from '../../shared/due-times.ts';

const hourMs = 3_600_000;

describe('the longest gap of a schedule', () => {
  for (const [cron, hours] of [
    ['0 3 * * *', 24],
    ['0 3 * * 1-5', 72],
    ['0 */6 * * *', 6],
    ['0 3,4 * * *', 23],
    ['0 3 * * 1', 168],
  ] as const) {
    it(`is ${hours} h for ${cron}`, () => {
      expect(longestGapMs(cron, 'UTC') / hourMs).to.equal(hours);
    });
  }

  it('is never longer for days of the month and of the week together than for either', () => {
    expect(longestGapMs('0 3 1 * 1', 'UTC')).to.be.at.most(168 * hourMs);
  });
});
