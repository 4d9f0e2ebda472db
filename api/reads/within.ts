// A bound on how long something is waited for.

/** What was waited for did not come in time. */
export class LateError extends Error {}

/** What work comes to within some ms; what it comes to later is nobody's concern. @throws LateError */
export async function within<Value>(work: Promise<Value>, ms: number): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LateError()), ms);
  });
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}
