// Tests which lines are schedules, and the gap between their runs. test/importer/schedule.test.ts tests when they are due.

import { expect } from 'chai';
import { isCronLine, longestGapMs } from '../../shared/cron.ts';

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

  it('is never longer for both days together than for one of them', () => {
    expect(longestGapMs('0 3 1 * 1', 'UTC')).to.be.at.most(168 * hourMs);
  });
});

describe('a cron line', () => {
  const good = ['0 3 * * *', '*/5 * * * *', '15 2,14 1-7 * 1-5', ' 0\t3  * * * ', '0 0 * jan-mar,Dec SUN'];
  good.push('59 23 31 12 7', '0 0 29 2 *', '0 0 30,31 feb,apr *', '05 03 01 01 0');
  for (const line of good) it(`may be "${line}"`, () => expect(isCronLine(line)).to.equal(true));

  const bad = [
    '',
    '* * * *',
    '0 0 3 * * *',
    '60 3 * * *',
    '0 24 * * *',
    '0 0 0 * *',
    '0 0 32 * *',
    '0 0 * 0 *',
  ];
  bad.push('0 0 * 13 *', '0 0 * * 8', '@daily', 'never', '5/10 * * * *', '*/0 * * * *', '1,,2 * * * *');
  bad.push(
    '1-2-3 * * * *',
    '? * * * *',
    '0 0 30 2 *',
    '1.5 * * * *',
    '+5 * * * *',
    'mon * * * *',
    '0 0 jan * *',
  );
  for (const line of bad) it(`may not be "${line}"`, () => expect(isCronLine(line)).to.equal(false));
});
