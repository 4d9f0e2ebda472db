// A limit on how long a promise is awaited.

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
