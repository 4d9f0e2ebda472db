// Time limits of promises, and times that lie in the future.

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

/** Returns whether the date of a version is so far in the future that a clock is or was wrong. */
export function isInFuture({ publishedAt }: Pick<Version, 'publishedAt'>, now: Date): boolean {
  return Date.parse(publishedAt) - now.getTime() > wrongClockMs;
}

/** Returns the warning about a version that is dated in the future; none about others. */
export function futureVersionWarning({ version, publishedAt }: Version): string[] {
  if (!isInFuture({ publishedAt }, new Date())) return [];
  return [
    `Version ${version} is dated ${publishedAt}, which lies ahead: the clock was wrong as it was published, or is wrong now. The next version is dated by the clock again.`,
  ];
}

/** Returns a time of ISO 8601, or `null` if it lies so far in the future that it is not known. */
export function knownTime(time: string | null): string | null {
  return time !== null && isInFuture({ publishedAt: time }, new Date()) ? null : time;
}

/** Returns the warning about a check of upstream that is dated in the future; none about others. */
export function futureCheckWarning(checkedAt: string | null): string[] {
  if (checkedAt === knownTime(checkedAt)) return [];
  return [
    `The last upstream check is dated ${checkedAt}, which is in the future: a clock was wrong then, or is wrong now. Its time counts as unknown until the next import.`,
  ];
}
