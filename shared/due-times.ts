// In: a cron line and a time zone. Out: when it is due. Only this file knows node-cron.

import { createTask, type ScheduledTask } from 'node-cron';

/**
 * Tells when a cron line is due next, after now. As in crontab(5): where both a day of the month and a day of the week are
 * named, either will do; and a time that the clock is put forward over comes as that is done. node-cron wants both days,
 * and passes over such a time.
 */
export function dueTimes(cron: string, timezone: string): () => Date {
  const lines = linesOf(cron);
  const tasks = lines.map((line) => createTask(line, () => undefined, { timezone }));
  // By a clock that is never put forward.
  const plain = lines.map((line) => createTask(line, () => undefined, { timezone: 'UTC' }));
  const isEachHour = cron.split(' ').at(-4)?.startsWith('*');
  return () => {
    const times = tasks.map((task) => (task.getNextRuns(1)[0] as Date).getTime());
    const next = Math.min(...times);
    return new Date((isEachHour ? null : passedOver(plain, timezone, next)) ?? next);
  };
}

/** How many times ahead a schedule is looked at: a week of one that runs each day. */
const runsAhead = 8;

/** The longest time between two of the next runs of a cron line, in ms. */
export function longestGapMs(cron: string, timezone: string): number {
  const times = linesOf(cron)
    .flatMap((line) => createTask(line, () => undefined, { timezone }).getNextRuns(runsAhead))
    .map((time) => time.getTime())
    .sort((a, b) => a - b)
    .slice(0, runsAhead);
  return Math.max(...times.slice(1).map((time, n) => time - (times[n] as number)));
}

/** A line for the day of the month and one for the day of the week, where both are named. */
function linesOf(cron: string): string[] {
  const fields = cron.split(' ');
  const [day = '', month = '', weekday = ''] = fields.slice(-3);
  if (day.startsWith('*') || weekday.startsWith('*')) return [cron];
  const time = fields.slice(0, -3).join(' ');
  return [`${time} ${day} ${month} *`, `${time} * ${month} ${weekday}`];
}

const minuteMs = 60_000;

/** Clocks are not put forward more often than this, in ms. */
const strideMs = 24 * 60 * minuteMs;

/** When the clock of a time zone is next put forward over a time at which one of these is due, before a time; or `null`. */
function passedOver(plain: readonly ScheduledTask[], timezone: string, until: number): number | null {
  const offsetAt = offsetsOf(timezone);
  for (let from = Date.now(); from < until; from += strideMs) {
    let [before, after] = [from, Math.min(from + strideMs, until)];
    const [was, is] = [offsetAt(before), offsetAt(after)];
    if (is <= was) continue;
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (offsetAt(middle) === was) before = middle;
      else after = middle;
    }
    for (let minute = after + was; minute < after + is; minute += minuteMs) {
      if (plain.some((task) => task.match(new Date(minute)))) return after;
    }
  }
  return null;
}

/** How far a time zone is ahead of UTC at a time, in ms. */
function offsetsOf(timeZone: string): (time: number) => number {
  const format = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' });
  return (time) => {
    const [, sign, hours, minutes] = /GMT([+-])(\d\d):(\d\d)/.exec(format.format(time)) ?? [];
    return Number(`${sign ?? ''}1`) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * minuteMs;
  };
}
