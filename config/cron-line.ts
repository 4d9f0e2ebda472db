// A schedule as five cron fields, judged without the scheduler: every command checks it, and one of them schedules.

/** What one field may hold. */
interface Field {
  readonly least: number;
  readonly most: number;
  /** Names that stand for the numbers from {@link namesFrom} on. */
  readonly names?: readonly string[];
  readonly namesFrom?: number;
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const fields: readonly Field[] = [
  { least: 0, most: 59 },
  { least: 0, most: 23 },
  { least: 1, most: 31 },
  { least: 1, most: 12, names: months, namesFrom: 1 },
  { least: 0, most: 7, names: weekdays, namesFrom: 0 },
];

/** How many days each month has at most. */
const longestMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** An item of a field: `*`, a value, or a range of values, and after `*` and a range a step. */
const item = /^(?:\*|(\w+)-(\w+))(?:\/([0-9]+))?$|^(\w+)$/;

/**
 * Whether a line is a schedule: minute, hour, day of month, month and day of week, each a list of `*`, numbers, names of
 * months and weekdays (`jan`, `mon`), ranges (`1-5`) and steps (`1-31/2`); and whether there is such a day at all.
 */
export function isCronLine(line: string): boolean {
  const parts = line.trim().split(/\s+/);
  if (parts.length !== fields.length) return false;
  const values = parts.map((part, n) => valuesOf(part, fields[n] as Field));
  const [, , days, monthsMeant] = values;
  if (values.includes(null) || !days || !monthsMeant) return false;
  return monthsMeant.some((month) => days.some((day) => day <= (longestMonths[month - 1] as number)));
}

/** The numbers that a field means; `null` where it is not one. */
function valuesOf(part: string, field: Field): number[] | null {
  const found: number[] = [];
  for (const text of part.split(',')) {
    const [matched, from, to, step = '1', single] = item.exec(text) ?? [];
    if (matched === undefined || Number(step) === 0) return null;
    const first = single ?? from;
    const last = single ?? to;
    const [low, high] = [
      first === undefined ? field.least : numberOf(first, field),
      last === undefined ? field.most : numberOf(last, field),
    ];
    if (low === null || high === null || low > high) return null;
    for (let value = low; value <= high; value += Number(step)) found.push(value);
  }
  return [...new Set(found)];
}

function numberOf(text: string, { least, most, names = [], namesFrom = 0 }: Field): number | null {
  const named = names.indexOf(text.toLowerCase());
  if (named !== -1) return named + namesFrom;
  const value = /^[0-9]{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return value >= least && value <= most ? value : null;
}
