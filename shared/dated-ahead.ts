// A version whose date lies ahead of the clock: how that is told.

import type { Version } from './versions.ts';

/** A date that lies further ahead than this was given by a clock that was wrong, in ms. */
const wrongClockMs = 600_000;

/** Whether a version has a date that lies so far ahead that a clock is or was wrong. */
export function isDatedAhead({ publishedAt }: Pick<Version, 'publishedAt'>, now: Date): boolean {
  return Date.parse(publishedAt) - now.getTime() > wrongClockMs;
}

/** What an operator should know of a version with a date that lies ahead; nothing of others. */
export function datedAheadWarning({ version, publishedAt }: Version): string[] {
  if (!isDatedAhead({ publishedAt }, new Date())) return [];
  return [
    `Version ${version} is dated ${publishedAt}, which lies ahead: the clock was wrong as it was published, or is wrong now. The next version is dated by the clock again.`,
  ];
}
