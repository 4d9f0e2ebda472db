// Cron lines of five fields: validation, and the next due time in a time zone.

import { createTask, type ScheduledTask, validate } from 'node-cron';

/** Returns whether a text is a cron line with a date that exists: minute, hour, day of month, month, day of week. */
export function isCronLine(text: string): boolean {
  const fields = fieldsOf(text);
  return fields.length === 5 && validate(fields.join(' '));
}

function fieldsOf(text: string): string[] {
  return text.trim().split(/\s+/);
}

/**
 * Returns a function that returns the next due time of a cron line. As in crontab(5), a line with both days is due on either
 * day, and a time that daylight saving skips is due at the change. node-cron requires both days, and skips such a time.
 */
export function dueTimes(cron: string, timezone: string): () => Date {
  const lines = linesOf(cron);
  const tasks = lines.map((line) => createTask(line, () => undefined, { timezone }));
  // In UTC, whose clock never changes.
  const plain = lines.map((line) => createTask(line, () => undefined, { timezone: 'UTC' }));
  const isEachHour = fieldsOf(cron)[1]?.startsWith('*');
  return () => {
    const times = tasks.map((task) => (task.getNextRuns(1)[0] as Date).getTime());
    const next = Math.min(...times);
    return new Date((isEachHour ? null : passedOver(plain, timezone, next)) ?? next);
  };
}

/** How many runs are compared: a week of daily runs. */
const runsAhead = 8;

/** Returns the longest time between two runs of a cron line, in ms. */
export function longestGapMs(cron: string, timezone: string): number {
  const times = linesOf(cron)
    .flatMap((line) => createTask(line, () => undefined, { timezone }).getNextRuns(runsAhead))
    .map((time) => time.getTime())
    .sort((a, b) => a - b)
    .slice(0, runsAhead);
  return Math.max(...times.slice(1).map((time, n) => time - (times[n] as number)));
}

/** Returns separate lines for the day of the month and the day of the week, if the cron line has both. */
function linesOf(cron: string): string[] {
  const [minute, hour, day = '', month, weekday = ''] = fieldsOf(cron);
  if (day.startsWith('*') || weekday.startsWith('*')) return [fieldsOf(cron).join(' ')];
  return [`${minute} ${hour} ${day} ${month} *`, `${minute} ${hour} * ${month} ${weekday}`];
}

const minuteMs = 60_000;

/** Clock changes are at least this far apart, in ms. */
const strideMs = 24 * 60 * minuteMs;

/** Returns the next clock change that skips a due time of one of these tasks; `null` if there is none. */
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

/** Returns a function that returns the UTC offset of a time zone at a time, in ms. */
function offsetsOf(timeZone: string): (time: number) => number {
  const format = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' });
  return (time) => {
    const [, sign, hours, minutes] = /GMT([+-])(\d\d):(\d\d)/.exec(format.format(time)) ?? [];
    return Number(`${sign ?? ''}1`) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * minuteMs;
  };
}
