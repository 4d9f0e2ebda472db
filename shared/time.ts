// Time limits of promises, and times in the future.

import type { Version } from './store/versions.ts';

/** The promise did not settle in time. */
export class TimeoutError extends Error {}

/** Awaits a promise for some ms; its later outcome is ignored. @throws TimeoutError */
export async function withTimeout<Value>(work: Promise<Value>, ms: number): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeoutError()), ms);
  });
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}

/** A time further in the future than this is wrong, in ms. */
const wrongClockMs = 600_000;

/** Returns whether a version's date is so far in the future that a clock is or was wrong. */
export function isInFuture({ publishedAt }: Pick<Version, 'publishedAt'>, now: Date): boolean {
  return Date.parse(publishedAt) - now.getTime() > wrongClockMs;
}

/** Returns a warning if a version is dated in the future. */
export function futureVersionWarning({ version, publishedAt }: Version): string[] {
  if (!isInFuture({ publishedAt }, new Date())) return [];
  return [
    `Version ${version} is dated ${publishedAt}, which is in the future: a clock was wrong then, or is wrong now. The next version is dated by the clock again.`,
  ];
}

/** Returns a time of ISO 8601; `null` if it is too far in the future to be right. */
export function knownTime(time: string | null): string | null {
  return time !== null && isInFuture({ publishedAt: time }, new Date()) ? null : time;
}

/** Returns a warning if an upstream check is dated in the future. */
export function futureCheckWarning(checkedAt: string | null): string[] {
  if (checkedAt === knownTime(checkedAt)) return [];
  return [
    `The last upstream check is dated ${checkedAt}, which is in the future: a clock was wrong then, or is wrong now. Its time counts as unknown until the next import.`,
  ];
}
