import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { startSchedule } from '../../importer/schedule.ts';

describe('the schedule', () => {
  it('knows when it is due next, in its time zone', async () => {
    const schedule = (timezone: string) =>
      startSchedule({ cron: '0 3 1 1 *', timezone, run: async () => undefined, onSkipped: () => undefined });
    const utc = schedule('UTC');
    const istanbul = schedule('Europe/Istanbul');
    expect(utc.nextRun()?.toISOString()).to.match(/^\d{4}-01-01T03:00:00\.000Z$/);
    expect(istanbul.nextRun()?.toISOString()).to.match(/^\d{4}-01-01T00:00:00\.000Z$/);
    await utc.stop();
    await istanbul.stop();
  });

  it('runs when it is due, and never twice at once: what is due meanwhile is skipped and told', async () => {
    let runs = 0;
    let skipped = 0;
    const everySecond = '* * * * * *'; // A sixth field, which settings refuse, spares this test a minute.
    const schedule = startSchedule({
      cron: everySecond,
      timezone: 'UTC',
      run: async () => {
        runs += 1;
        await sleep(2_500);
      },
      onSkipped: () => {
        skipped += 1;
      },
    });
    while (skipped < 2) await sleep(20);
    expect(runs).to.equal(1);
    while (runs < 2) await sleep(20);
    await schedule.stop();
    await sleep(1_500);
    expect(runs).to.equal(2);
  });
});
