// What goes wrong between a client and medref, as an error with a status, a name and a sentence.

/**
 * Thrown by everything in `medref/client`.
 *
 * | `status` | `name` | Means |
 * |---|---|---|
 * | 400 to 599 | the reason phrase, such as `Unauthorized` | medref answered so; `message` is its sentence |
 * | 200 | `DigestMismatch` | what came is not what its digest says |
 * | that of the answer | `NotMedref` | something answered that is not medref |
 * | 0 | `ConnectionError` | no answer came, or it was cut off, or silent for too long; `cause` says more |
 */
export class MedrefError extends Error {
  /** Status of the answer; 0 where none came to its end. */
  readonly status: number;
  /** After how many seconds the service wants to be asked again; `null` where it does not say. */
  readonly retryAfter: number | null;

  constructor(
    status: number,
    name: string,
    message: string,
    { retryAfter = null, cause }: { readonly retryAfter?: number | null; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.name = name;
    this.retryAfter = retryAfter;
  }
}

/** An answer that did not come to its end. */
export function broken(url: string, why: string, cause?: unknown): MedrefError {
  return new MedrefError(0, 'ConnectionError', `${url} could not be read to its end: ${why}.`, { cause });
}

/** An answer that medref would not give. */
export function notMedref(status: number, url: string, what: string): MedrefError {
  return new MedrefError(status, 'NotMedref', `This is not medref, or something hides it: ${url} ${what}.`);
}

/** The name of an error that says that what came is not what its digest says. */
export const mismatch = 'DigestMismatch';

/** Records that are not the version that they were sent as. */
export function notTheVersion(collection: string, version: number | undefined): MedrefError {
  return new MedrefError(
    200,
    mismatch,
    `The ${collection} that came are not version ${version}: their digest differs.`,
  );
}

/** A version that has another content than it had before. */
export function otherContent(collection: string, version: number): MedrefError {
  return new MedrefError(
    200,
    mismatch,
    `Version ${version} of ${collection} has another digest than before: another installation answers, or its data was replaced.`,
  );
}

/** Whether it may be gone when the service is asked again. */
export function isPassing(error: unknown): error is MedrefError {
  return error instanceof MedrefError && [0, 429, 502, 503, 504].includes(error.status);
}
