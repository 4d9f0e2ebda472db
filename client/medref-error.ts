// The error of the client: a status, a reason and a sentence.

/**
 * Thrown by everything in `medref-client`, except that wrong options throw a TypeError.
 *
 * | `status` | `reason` | Means |
 * |---|---|---|
 * | 400 to 599 | the reason phrase, such as `Unauthorized` | an error of medref; `message` is its sentence |
 * | 200 | `DigestMismatch` | the data does not match its digest |
 * | the response's status | `NotMedref` | the response is not from medref |
 * | 0 | `ConnectionError` | no response, or a truncated or stalled one; `cause` has details |
 */
export class MedrefError extends Error {
  /** Status of the response; 0 without a complete response. */
  readonly status: number;
  /** The reason phrase of the status, or `DigestMismatch`, `NotMedref` or `ConnectionError`. */
  readonly reason: string;
  /** Seconds to wait before a retry; `null` if the service does not say. */
  readonly retryAfter: number | null;
  /** `X-Request-Id` of the response, which the log of the service has, too; `null` without one. */
  readonly requestId: string | null;

  constructor(status: number, reason: string, message: string, details: ErrorDetails = {}) {
    const { retryAfter = null, requestId = null, cause } = details;
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'MedrefError';
    this.status = status;
    this.reason = reason;
    this.retryAfter = retryAfter;
    this.requestId = requestId;
  }
}

/** What an error may know besides its sentence. */
export interface ErrorDetails {
  /** Seconds. */
  readonly retryAfter?: number | null;
  /** `X-Request-Id`. */
  readonly requestId?: string | null;
  /** The underlying error. */
  readonly cause?: unknown;
}

/** Returns the error of an incomplete response. */
export function broken(url: string, why: string, cause?: unknown): MedrefError {
  return new MedrefError(0, 'ConnectionError', `${url} could not be read completely: ${why}.`, { cause });
}

/** Returns the error of a request without a response. */
export function unreachable(url: string, why: string, cause?: unknown): MedrefError {
  const { origin } = new URL(url);
  const { location } = globalThis as { location?: { origin?: string } };
  const isForeign = location?.origin !== undefined && location.origin !== origin;
  const cors = isForeign ? ` Check that CORS_ORIGINS of the service names ${location?.origin}.` : '';
  const advice = `Check that the service runs at ${origin}, and that this machine reaches it.${cors}`;
  return new MedrefError(0, 'ConnectionError', `${url} could not be requested: ${why}. ${advice}`, { cause });
}

/** Returns the error of a response that is not from medref. */
export function notMedref(status: number, url: string, what: string, details?: ErrorDetails): MedrefError {
  return new MedrefError(status, 'NotMedref', `Not a response of medref: ${url} ${what}.`, details);
}

/** The reason of the error for data that does not match its digest. */
export const mismatch = 'DigestMismatch';

/** Returns the error for records that do not match the digest of their version. */
export function notTheVersion(collection: string, version: number | undefined): MedrefError {
  return new MedrefError(
    200,
    mismatch,
    `The ${collection} received are not version ${version}: their digest differs.`,
  );
}

/** Returns the error for a version whose content has changed. */
export function otherContent(collection: string, version: number): MedrefError {
  return new MedrefError(
    200,
    mismatch,
    `Version ${version} of ${collection} has a different digest than before: another installation responded, or its data was replaced.`,
  );
}

/** Returns whether an error may be temporary. */
export function isPassing(error: unknown): error is MedrefError {
  return error instanceof MedrefError && [0, 429, 502, 503, 504].includes(error.status);
}
