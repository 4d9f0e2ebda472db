// When a version that is published now became live: its date, by which HTTP tells it from others.

import { isDatedAhead } from '../../shared/dated-ahead.ts';
import type { Version } from '../../shared/store/versions.ts';

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

function secondOf(time: Date | string): number {
  return Math.floor(new Date(time).getTime() / 1000);
}
