// Parsers of arguments and options. Each returns the value of a text, or throws an error with the accepted values.

import { closestMatch } from 'leven';
import { servedCollections } from '../shared/collections/collections.ts';
import type { Collection, ServedCollection } from '../shared/collections/define.ts';
import { UsageError } from './context.ts';

/** How many wrong letters a name may have to be suggested. */
const maxTypingErrors = 3;

const secondsIn: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

const collectionNames = servedCollections.map(({ collection }) => collection.name);

/** Returns the collection with a name. @throws UsageError */
export function collectionNamed(name: string): ServedCollection {
  const found = servedCollections.find(({ collection }) => collection.name === name);
  if (found) return found;
  const meant = closestMatch(name, collectionNames, { maxDistance: maxTypingErrors });
  const question = meant === undefined ? '' : ` Did you mean ${meant}?`;
  throw new UsageError(
    `Unknown collection ${JSON.stringify(name)}. Collections: ${collectionNames.join(', ')}.${question}`,
  );
}

/** Returns the imported collection with a name. @throws UsageError also for a derived collection */
export function importedCollectionNamed(name: string, command: string): Collection {
  const { collection, source } = collectionNamed(name);
  if (collection === source) return collection;
  throw new UsageError(`${name} are derived from ${source.name}; use "medref ${command} ${source.name}".`);
}

/** Parses the number of a version. */
export function parseVersion(text: string): number {
  const version = Number(text);
  if (/^[0-9]+$/.test(text) && version >= 1 && version <= Number.MAX_SAFE_INTEGER) return version;
  throw new Error('It accepts a version number.');
}

/** Parses the number of a version, or `candidate`. */
export function parseVersionOrCandidate(text: string): number | 'candidate' {
  if (text === 'candidate') return text;
  try {
    return parseVersion(text);
  } catch {
    throw new Error('It accepts a version number, or "candidate".');
  }
}

/** Parses the name of a client. */
export function parseClient(text: string): string {
  if (text.trim() === '' || text.length > 200 || /\p{Cc}/u.test(text))
    throw new Error('It accepts a name of 1 to 200 characters without control characters.');
  return text;
}

const isoDate = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** Parses a time in the future, ISO 8601: a date (midnight UTC), or date and time with its zone. */
export function parseExpiry(text: string): Date {
  const time = isoDate.test(text) ? new Date(text) : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()) || !isDay(text.slice(0, 10)))
    throw new Error('It accepts an ISO 8601 time, such as 2027-01-31T00:00:00Z.');
  if (time.getTime() <= Date.now()) throw new Error('It is in the past.');
  return time;
}

/** Returns whether a date exists; JavaScript reads 30 February as 2 March. */
function isDay(date: string): boolean {
  return new Date(`${date}T00:00:00Z`).toISOString().startsWith(date);
}

/** Parses a rate, such as `10/s`. */
export function parseRate(text: string): string {
  if (/^[1-9][0-9]{0,8}\/s$/.test(text)) return text;
  throw new Error('It accepts a number of requests per second, such as 10/s.');
}

/** Parses the collections of a key, such as `products,drugs`. */
export function parseCollections(text: string): string[] {
  const given = text.split(',');
  const unknown = given.find((name) => !collectionNames.includes(name));
  if (unknown !== undefined)
    throw new Error(
      `Unknown collection ${JSON.stringify(unknown)}; it accepts ${collectionNames.join(', ')}, separated by commas.`,
    );
  return collectionNames.filter((name) => given.includes(name));
}

/** Parses the reason of an operator: 1 to 500 characters without control characters. */
export function parseReason(text: string): string {
  const { length } = [...text.trim()];
  if (length > 0 && length <= 500 && !/\p{Cc}/u.test(text)) return text.trim();
  throw new Error('It accepts 1 to 500 characters without control characters.');
}

/** Parses a duration, such as `36h`. @returns seconds */
export function parseDuration(text: string): number {
  const seconds = secondsOf(text);
  if (seconds > 0) return seconds;
  throw new Error('It accepts a number and one of s, m, h and d, such as 36h.');
}

/** Parses how long a replaced key still works: a duration, or `0s`. @returns seconds */
export function parseOverlap(text: string): number {
  const seconds = secondsOf(text);
  if (seconds >= 0) return seconds;
  throw new Error('It accepts a number and one of s, m, h and d, such as 7d, or 0s.');
}

function secondsOf(text: string): number {
  const [, value, unit = ''] = /^(0|[1-9][0-9]{0,8})([smhd])$/.exec(text) ?? [];
  return Number(value) * (secondsIn[unit] ?? Number.NaN);
}
