import { type ChildProcess, spawn } from 'node:child_process';
import { mock } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { type RunEnd, type Schedule, startSchedule } from '../../importer/schedule.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Starts a schedule that does nothing. */
const idle = (cron: string, timezone = 'UTC'): Schedule =>
  startSchedule({
    ...{ cron, timezone, run: async () => 'ended' as const },
    ...{ onLate: () => undefined, onSkipped: () => undefined, onRetry: () => undefined },
  });

/** Returns when a line is due next, by a clock that shows this time. */
function dueAfter(now: string, cron: string, timezone: string): string {
  mock.timers.enable({ apis: ['Date'], now: new Date(now) });
  try {
    const schedule = idle(cron, timezone);
    schedule.stop();
    return schedule.nextRun().toISOString();
  } finally {
    mock.timers.reset();
  }
}

describe('the schedule', () => {
  it('knows its next due time, in its time zone', () => {
    const utc = idle('0 3 1 1 *');
    const istanbul = idle('0 3 1 1 *', 'Europe/Istanbul');
    expect(utc.nextRun().toISOString()).to.match(/^\d{4}-01-01T03:00:00\.000Z$/);
    expect(istanbul.nextRun().toISOString()).to.match(/^\d{4}-01-01T00:00:00\.000Z$/);
    utc.stop();
    istanbul.stop();
  });

  it('runs on time, never twice at once: runs due meanwhile are skipped and reported', async () => {
    let [runs, skipped] = [0, 0];
    let finish: (end: RunEnd) => void = () => undefined;
    mock.timers.enable({ apis: ['Date'], now: new Date('2026-03-01T02:59:59Z') });
    const schedule = startSchedule({
      ...{ cron: '0 3 * * *', timezone: 'UTC', lookEveryMs: 5 },
      run: () => {
        runs += 1;
        return new Promise((resolve) => {
          finish = resolve;
        });
      },
      onLate: () => undefined,
      onRetry: () => undefined,
      onSkipped: () => {
        skipped += 1;
      },
    });
    const onDay = async (day: number) => {
      mock.timers.setTime(Date.UTC(2026, 2, day, 3));
      await sleep(30);
      return { runs, skipped };
    };
    try {
      expect(await onDay(1)).to.deep.equal({ runs: 1, skipped: 0 });
      expect(await onDay(2)).to.deep.equal({ runs: 1, skipped: 1 });
      expect(await onDay(3)).to.deep.equal({ runs: 1, skipped: 2 });
      finish('ended');
      expect(await onDay(4)).to.deep.equal({ runs: 2, skipped: 2 });
      finish('ended');
      await schedule.stop();
      expect(await onDay(5), 'after the stop').to.deep.equal({ runs: 2, skipped: 2 });
    } finally {
      finish('ended');
      await schedule.stop();
      mock.timers.reset();
    }
  });

  it('runs once, and reports that it is late, after its process was suspended over due times', async () => {
    const program = `
      const { startSchedule } = await import('./importer/schedule.ts');
      startSchedule({
        cron: '*/2 * * * * *', // The sixth field, which settings refuse, saves this test minutes.
        timezone: 'UTC',
        run: async () => { console.log('run'); return 'ended'; },
        onLate: (due) => console.log('late ' + due.toISOString()),
        onSkipped: () => console.log('skipped'),
      });`;
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', program], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const lines = linesOf(child);
      while (!lines.includes('run')) await sleep(5);
      child.kill('SIGSTOP');
      const from = lines.length;
      const stood = Math.floor(Date.now() / 2_000) * 2_000;
      await sleep(stood + 4_700 - Date.now()); // Runs were due 2 s and 4 s after the child stopped. The next is due after 6 s.
      child.kill('SIGCONT');
      while (lines.length === from) await sleep(5);
      await sleep(300);
      expect(lines.slice(from)).to.deep.equal([`late ${new Date(stood + 2_000).toISOString()}`, 'run']);
      while (lines.length < from + 3) await sleep(5);
      expect(lines.slice(from + 2), 'then it is on time again').to.deep.equal(['run']);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('reads the clock while it waits: after sleeping over due times, a machine runs it once', async () => {
    const reported: string[] = [];
    mock.timers.enable({ apis: ['Date'], now: new Date('2026-03-01T22:00:00Z') });
    const schedule = startSchedule({
      ...{ cron: '0 3 * * *', timezone: 'UTC', lookEveryMs: 10 },
      run: async () => {
        reported.push('run');
        return 'ended';
      },
      onRetry: () => void reported.push('retry'),
      onLate: (due) => void reported.push(due.toISOString()),
      onSkipped: () => void reported.push('skipped'),
    });
    try {
      await sleep(50);
      expect(reported).to.deep.equal([]);
      mock.timers.setTime(Date.parse('2026-03-04T08:00:00Z')); // Timers stand still while a machine sleeps; its clock does not.
      await sleep(50);
      expect(reported).to.deep.equal(['2026-03-02T03:00:00.000Z', 'run']);
      expect(schedule.nextRun().toISOString()).to.equal('2026-03-05T03:00:00.000Z');
    } finally {
      schedule.stop();
      mock.timers.reset();
    }
  });

  it('follows the clock after it is corrected', async () => {
    mock.timers.enable({ apis: ['Date'], now: new Date('2030-06-01T00:00:00Z') });
    const reported: string[] = [];
    const schedule = startSchedule({
      ...{ cron: '0 3 * * *', timezone: 'UTC', lookEveryMs: 10 },
      run: async () => {
        reported.push('run');
        return 'ended';
      },
      onRetry: () => void reported.push('retry'),
      onLate: () => void reported.push('late'),
      onSkipped: () => void reported.push('skipped'),
    });
    try {
      mock.timers.setTime(Date.parse('2026-03-01T00:00:00Z'));
      await sleep(50);
      expect(schedule.nextRun().toISOString()).to.equal('2026-03-01T03:00:00.000Z');
      mock.timers.setTime(Date.parse('2026-03-01T03:00:00Z'));
      await sleep(50);
      mock.timers.setTime(Date.parse('2026-03-01T02:59:58Z')); // The clock goes back a little, as clocks do all the time.
      await sleep(50);
      mock.timers.setTime(Date.parse('2026-03-01T03:00:01Z'));
      await sleep(50);
      expect(reported, 'once').to.deep.equal(['run']);
    } finally {
      schedule.stop();
      mock.timers.reset();
    }
  });

  describe('of a run that fails', () => {
    const minuteMs = 60_000;
    const firstDue = Date.parse('2026-03-01T03:00:00Z');
    const nextDue = firstDue + 24 * 60 * minuteMs;
    let runs: { at: number; due: number }[];
    let retries: { at: number; tryNumber: number }[];
    let end: RunEnd;
    let schedule: Schedule;
    beforeEach(() => {
      [runs, retries, end] = [[], [], 'failed'];
      mock.timers.enable({ apis: ['Date'], now: firstDue - 1 });
      schedule = startSchedule({
        ...{ cron: '0 3 * * *', timezone: 'UTC', lookEveryMs: 5 },
        run: async (due) => {
          runs.push({ at: Date.now(), due: due.getTime() });
          return end;
        },
        onLate: () => undefined,
        onSkipped: () => undefined,
        onRetry: (at, tryNumber) => void retries.push({ at: at.getTime(), tryNumber }),
      });
    });
    afterEach(async () => {
      await schedule.stop();
      mock.timers.reset();
    });
    /** Makes the clock show a time, long enough for the schedule to check it. @returns the number of runs in that time */
    const at = async (time: number) => {
      const before = runs.length;
      mock.timers.setTime(time);
      await sleep(30);
      return runs.length - before;
    };

    it('is retried after 1 minute, then after doubled waits up to an hour, until the next due time', async () => {
      expect(await at(firstDue)).to.equal(1);
      let now = firstDue;
      for (const [n, minutes] of [1, 2, 4, 8, 16, 32, 60, 60, 60].entries()) {
        const next = now + minutes * minuteMs;
        expect(retries.at(-1)).to.deep.equal({ at: next, tryNumber: n + 2 });
        expect(schedule.nextRun().getTime(), 'as the heartbeat shows it').to.equal(next);
        expect(await at(next - 1), `before ${minutes} minutes`).to.equal(0);
        expect(await at(next), `after ${minutes} minutes`).to.equal(1);
        now = next;
      }
      expect(
        new Set(runs.map(({ due }) => due)),
        'each run gets the time since when it is due',
      ).to.deep.equal(new Set([firstDue]));
      for (now += 60 * minuteMs; now < nextDue; now += 60 * minuteMs) expect(await at(now)).to.equal(1);
      const reported = retries.length;
      expect(
        retries.filter((retry) => retry.at >= nextDue),
        'no retry is announced for the next due time or later',
      ).to.deep.equal([]);
      expect(now, 'an hour after the last try, the next run is due').to.be.above(nextDue);
      expect(await at(nextDue)).to.equal(1);
      expect(runs.at(-1)).to.deep.equal({ at: nextDue, due: nextDue });
      expect(retries.slice(reported)).to.deep.equal([{ at: nextDue + minuteMs, tryNumber: 2 }]);
      expect(await at(now), 'the retry is of the run that was due last').to.equal(1);
      expect(runs.at(-1)?.due).to.equal(nextDue);
    });

    it('is not retried after another end', async () => {
      await at(firstDue);
      end = 'ended';
      expect(await at(firstDue + minuteMs)).to.equal(1);
      for (let minutes = 2; minutes < 300; minutes *= 2)
        expect(await at(firstDue + minutes * minuteMs)).to.equal(0);
      expect(retries).to.have.length(1);
    });

    it('is checked every two seconds while another process runs it, which is no retry', async () => {
      await at(firstDue);
      end = 'locked';
      let now = firstDue + minuteMs;
      expect(await at(now)).to.equal(1);
      for (let n = 0; n < 3; n++) {
        expect(await at(now + 1_999)).to.equal(0);
        now += 2_000;
        expect(await at(now)).to.equal(1);
      }
      end = 'failed';
      await at(now + 2_000);
      expect(retries.slice(1)).to.deep.equal([{ at: now + 2_000 + 2 * minuteMs, tryNumber: 3 }]);
      expect(new Set(runs.map(({ due }) => due))).to.deep.equal(new Set([firstDue]));
    });

    it('is retried after the intended wait, although the clock is corrected meanwhile', async () => {
      await at(firstDue);
      const right = firstDue - 7 * 24 * 60 * minuteMs - 3 * 60 * minuteMs;
      expect(await at(right)).to.equal(0);
      expect(await at(right + minuteMs - 1)).to.equal(0);
      expect(await at(right + minuteMs)).to.equal(1);
    });

    it('is not retried after stop, which waits for the run in progress', async () => {
      await at(firstDue);
      let finish = (_end: RunEnd) => undefined as unknown;
      let begun = 0;
      const slow = startSchedule({
        ...{ cron: '0 3 * * *', timezone: 'UTC', lookEveryMs: 5 },
        run: () =>
          new Promise((resolve) => {
            begun += 1;
            finish = resolve;
          }),
        ...{ onLate: () => undefined, onSkipped: () => undefined },
        onRetry: () => void retries.push({ at: 0, tryNumber: 0 }),
      });
      slow.runNow();
      slow.runNow();
      let hasStopped = false;
      const stopping = Promise.all([slow.stop(), schedule.stop()]).then(() => {
        hasStopped = true;
      });
      await sleep(20);
      expect(hasStopped).to.equal(false);
      finish('failed');
      await stopping;
      slow.runNow();
      expect(begun, 'neither two at a time nor after the stop').to.equal(1);
      expect(await at(nextDue)).to.equal(0);
      expect(retries, 'retries of the first schedule').to.have.length(1);
    });

    it('leaves nothing in memory', async () => {
      setFlagsFromString('--expose-gc');
      const collectGarbage = runInNewContext('gc') as () => void;
      const kept: WeakRef<object>[] = [];
      let count = 0;
      const many = startSchedule({
        ...{ cron: '0 3 * * *', timezone: 'UTC', waits: { firstMs: 0, longestMs: 0, lockedMs: 0 } },
        run: () => {
          count += 1;
          const done = Promise.resolve<RunEnd>(count % 2 ? 'failed' : 'locked');
          kept.push(new WeakRef(done));
          return done;
        },
        ...{ onLate: () => undefined, onSkipped: () => undefined, onRetry: () => undefined },
      });
      many.runNow();
      while (count < 50) await sleep(5);
      await many.stop();
      await sleep(0);
      collectGarbage();
      expect(kept.slice(0, -2).filter((it) => it.deref() !== undefined)).to.deep.equal([]);
    });
  });

  const days: [title: string, cron: string, due: readonly string[]][] = [
    [
      'either of a day of the month and a day of the week, where both are named',
      '0 3 13 * fri',
      ['06', '13'],
    ],
    ['both, where one of them begins with a star', '0 3 */12 * fri', ['13']],
    ['the day of the month alone', '0 3 13 * *', ['13']],
    ['the day of the week alone', '0 3 * * 5', ['06', '13']],
  ];
  for (const [title, cron, due] of days) {
    it(`is due on ${title}, as in crontab(5)`, () => {
      const found: string[] = [];
      for (let now = '2026-03-01T12:00:00Z'; ; ) {
        const next = dueAfter(now, cron, 'UTC');
        if (next > '2026-03-14') break;
        found.push(next.slice(8, 10));
        now = next;
      }
      expect(found).to.deep.equal(due);
    });
  }

  const berlin: [title: string, now: string, cron: string, due: string][] = [
    [
      'at the change, where it passes over the time',
      '2026-03-28T20:00:00Z',
      '30 2 * * *',
      '2026-03-29T01:00:00Z',
    ],
    ['on the next day after that', '2026-03-29T01:00:00Z', '30 2 * * *', '2026-03-30T00:30:00Z'],
    [
      'at its time, where that is not passed over',
      '2026-03-28T20:00:00Z',
      '0 3 * * *',
      '2026-03-29T01:00:00Z',
    ],
    ['each hour, where every hour is meant', '2026-03-29T00:45:00Z', '30 * * * *', '2026-03-29T01:30:00Z'],
    ['at one of two such times', '2026-10-24T20:00:00Z', '30 2 * * *', '2026-10-25T01:30:00Z'],
    ['and at the other one not', '2026-10-25T01:30:00Z', '30 2 * * *', '2026-10-26T01:30:00Z'],
    [
      'only at the change of a day that is meant',
      '2026-03-28T20:00:00Z',
      '30 2 * * mon',
      '2026-03-30T00:30:00Z',
    ],
    ['at a change that is far away', '2026-01-01T00:00:00Z', '30 2 29 3 *', '2026-03-29T01:00:00Z'],
  ];
  for (const [title, now, cron, due] of berlin) {
    it(`runs once where clocks change: ${title}`, () => {
      expect(dueAfter(now, cron, 'Europe/Berlin')).to.equal(due.replace('Z', '.000Z'));
    });
  }
});

/** Returns the lines of a process, which grow as they arrive. */
function linesOf({ stdout }: ChildProcess): string[] {
  const lines: string[] = [];
  let rest = '';
  stdout?.on('data', (chunk) => {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts);
  });
  return lines;
}
