// When a version that is published now became live: its date, by which HTTP tells it from others.

import type { Version } from '../../shared/versions.ts';

/** A date that lies further ahead than this was given by a clock that was wrong, in ms. */
const wrongClockMs = 600_000;

type Dated = Pick<Version, 'publishedAt'>;

/**
 * When a version that is published now became live. No two kept versions of a collection share a second, since HTTP dates
 * (`Last-Modified`) tell them apart by the second alone. Dates grow, unless the live one was given by a wrong clock: then
 * they go on from now.
 * @param kept versions kept so far
 */
export function publicationTime(now: Date, live: Dated | null, kept: readonly Dated[]): Date {
  const taken = new Set([...kept, ...(live ? [live] : [])].map(({ publishedAt }) => secondOf(publishedAt)));
  const grows = live !== null && !isDatedAhead(live, now);
  let second = Math.max(secondOf(now), grows ? secondOf(live.publishedAt) + 1 : 0);
  while (taken.has(second)) second += 1;
  return second === secondOf(now) ? now : new Date(second * 1000);
}

/** Whether a version has a date that lies so far ahead that a clock is or was wrong. */
export function isDatedAhead({ publishedAt }: Dated, now: Date): boolean {
  return Date.parse(publishedAt) - now.getTime() > wrongClockMs;
}

function secondOf(time: Date | string): number {
  return Math.floor(new Date(time).getTime() / 1000);
}
