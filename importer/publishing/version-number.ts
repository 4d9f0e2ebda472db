// A version's number tells the second in which it was taken. It is published when that second is over by Redis's clock:
// so also a Redis that has forgotten the version, and only knows the time, never gives its number to another one.

import { setTimeout as sleep } from 'node:timers/promises';
import { beside, type Redis } from '../../shared/redis/connections.ts';

/** How long a publication waits at most, in ms: numbers that lie further ahead were given by a clock that was wrong. */
export const maxNumberWaitMs = 10_000;

/** Waits until the second of a number is over, by the clock of the Redis that has a key. @param maxMs what would take longer is not waited for */
export async function untilPast(
  redis: Redis,
  key: string,
  { number, maxMs }: { readonly number: number; readonly maxMs: number },
): Promise<void> {
  if (maxMs === 0) return;
  const [seconds, microseconds] = (await beside(redis, key, ['TIME'])) as [string, string];
  const now = Number(seconds) * 1000 + Number(microseconds) / 1000;
  const wait = timeOf(number) + 1000 - now;
  if (wait > 0 && wait <= maxMs) await sleep(Math.ceil(wait));
}

/** When the second of a number begins, in ms since 1970. */
export function timeOf(number: number): number {
  const [, ...parts] = /^(\d{4,})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(String(number)) ?? [];
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
