// Cron lines of five fields: whether a line is one, and when it is due in a time zone.

import { createTask, type ScheduledTask, validate } from 'node-cron';

/** Returns whether a text is a cron line: minute, hour, day of month, month and day of week, and such a day exists. */
export function isCronLine(text: string): boolean {
  const fields = fieldsOf(text);
  return fields.length === 5 && validate(fields.join(' '));
}

function fieldsOf(text: string): string[] {
  return text.trim().split(/\s+/);
}

/**
 * Returns a function that tells when a cron line is due next. As in crontab(5), either day will do if both a day of the month
 * and a day of the week are named, and a time that the clock skips is due when the clock is put forward. node-cron requires
 * both days, and skips such a time.
 */
export function dueTimes(cron: string, timezone: string): () => Date {
  const lines = linesOf(cron);
  const tasks = lines.map((line) => createTask(line, () => undefined, { timezone }));
  // By a clock that is never put forward.
  const plain = lines.map((line) => createTask(line, () => undefined, { timezone: 'UTC' }));
  const isEachHour = fieldsOf(cron)[1]?.startsWith('*');
  return () => {
    const times = tasks.map((task) => (task.getNextRuns(1)[0] as Date).getTime());
    const next = Math.min(...times);
    return new Date((isEachHour ? null : passedOver(plain, timezone, next)) ?? next);
  };
}

/** How many runs ahead are compared: a week of a schedule that runs each day. */
const runsAhead = 8;

/** Returns the longest time between two of the next runs of a cron line, in ms. */
export function longestGapMs(cron: string, timezone: string): number {
  const times = linesOf(cron)
    .flatMap((line) => createTask(line, () => undefined, { timezone }).getNextRuns(runsAhead))
    .map((time) => time.getTime())
    .sort((a, b) => a - b)
    .slice(0, runsAhead);
  return Math.max(...times.slice(1).map((time, n) => time - (times[n] as number)));
}

/** Returns a line for the day of the month and one for the day of the week if both are named. */
function linesOf(cron: string): string[] {
  const [minute, hour, day = '', month, weekday = ''] = fieldsOf(cron);
  if (day.startsWith('*') || weekday.startsWith('*')) return [fieldsOf(cron).join(' ')];
  return [`${minute} ${hour} ${day} ${month} *`, `${minute} ${hour} * ${month} ${weekday}`];
}

const minuteMs = 60_000;

/** Clocks are not put forward more often than this, in ms. */
const strideMs = 24 * 60 * minuteMs;

/** Returns when the clock of a time zone is next put forward over a time at which one of these tasks is due; or `null`. */
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

/** Returns a function that tells how far a time zone is ahead of UTC at a time, in ms. */
function offsetsOf(timeZone: string): (time: number) => number {
  const format = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' });
  return (time) => {
    const [, sign, hours, minutes] = /GMT([+-])(\d\d):(\d\d)/.exec(format.format(time)) ?? [];
    return Number(`${sign ?? ''}1`) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * minuteMs;
  };
}
