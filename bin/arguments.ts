// In: the text of an argument or an option. Out: what it means, or an error that says what it takes.

import { servedCollections } from '../shared/collections/collections.ts';

/** The number of a version. */
export function parseVersion(text: string): number {
  const version = Number(text);
  if (/^[0-9]+$/.test(text) && version >= 1 && version <= Number.MAX_SAFE_INTEGER) return version;
  throw new Error('It takes the number of a version.');
}

/** The name of a client. */
export function parseClient(text: string): string {
  if (text.trim() === '' || text.length > 200 || /\p{Cc}/u.test(text)) {
    throw new Error('It takes a name of 1 to 200 characters, without control characters.');
  }
  return text;
}

const isoDate = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** A time in the future, ISO 8601: a date (midnight UTC), or date and time with its zone. */
export function parseExpiry(text: string): Date {
  const time = isoDate.test(text) ? new Date(text) : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()) || !isDay(text.slice(0, 10)))
    throw new Error('It takes an ISO 8601 time, such as 2027-01-31T00:00:00Z.');
  if (time.getTime() <= Date.now()) throw new Error('It lies in the past.');
  return time;
}

/** Whether a date is in the calendar; JavaScript takes 30 February for 2 March. */
function isDay(date: string): boolean {
  return new Date(`${date}T00:00:00Z`).toISOString().startsWith(date);
}

/** Requests a second, such as `10/s`. */
export function parseRate(text: string): string {
  if (!/^[1-9][0-9]{0,8}\/s$/.test(text))
    throw new Error('It takes a number of requests a second, such as 10/s.');
  return text;
}

/** Collections that a key is made for, such as `products,drugs`. */
export function parseCollections(text: string): string[] {
  const names = servedCollections.map(({ collection }) => collection.name);
  const unknown = text.split(',').find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new Error(
      `There is no collection ${JSON.stringify(unknown)}; it takes some of ${names.join(', ')}, with commas between them.`,
    );
  return names.filter((name) => text.split(',').includes(name));
}

const secondsIn = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

/** A length of time, such as `36h`. @returns seconds */
export function parseDuration(text: string): number {
  const [, value, unit] = /^([1-9][0-9]{0,8})([smhd])$/.exec(text) ?? [];
  if (value === undefined) throw new Error('It takes a number and one of s, m, h and d, such as 36h.');
  return Number(value) * secondsIn[unit as keyof typeof secondsIn];
}
