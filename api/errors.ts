// Turns an error of a read into a service error: the response to the client, and the cause, which is counted and logged.

import type { ServerResponse } from 'node:http';
import { isRedisUnavailable, plainReason, refusalKind } from '../shared/redis/failures.ts';
import { TimeoutError } from '../shared/time.ts';
import { TooManyJoinsError } from './read/changes.ts';
import { TooManyWaitingError } from './read/publication-waits.ts';
import { DamagedError, NoVersionError } from './read/versions.ts';
import { errorEnvelope } from './reply/envelope.ts';

/** Causes of service errors, as the metrics name them. */
export const serviceErrorCauses = [
  'away',
  'late',
  'busy',
  'overload',
  'nothing-published',
  'damaged',
  'forbidden',
  'full',
  'refused',
  'fault',
] as const;

export type ServiceErrorCause = (typeof serviceErrorCauses)[number];

/** Why the API cannot respond with data. */
export interface ServiceError {
  readonly cause: ServiceErrorCause;
  /** 503 if a retry may help; 500 if an operator must fix something first. */
  readonly status: 500 | 503;
  /** The message for the client. */
  readonly message: string;
  /** Seconds after which the client may ask again; `null` with 500. */
  readonly retryAfter: number | null;
  /** The sentence for the log; `null` if the error is logged elsewhere. */
  readonly reason: string | null;
}

/** `/health/ready` is 503 with this message, whatever the cause is. */
export class NotReadyError extends Error {
  readonly because: unknown;

  constructor(message: string, because: unknown) {
    super(message);
    this.because = because;
  }
}

/** The response did not start in time. */
export const late: ServiceError = Object.freeze({
  ...{ cause: 'late', status: 503, retryAfter: 1 },
  message: 'The data could not be read in time. Try again shortly.',
  reason: 'A response did not start within 2 s.',
});

/** The event loop is late. */
export const overloaded: ServiceError = Object.freeze({
  ...{ cause: 'overload', status: 503, retryAfter: 1 },
  message: 'Too many requests in flight. Try again shortly.',
  reason: 'Too many requests in flight.',
});

/** A mistake in the code, which is logged elsewhere. */
export const fault: ServiceError = Object.freeze({
  ...{ cause: 'fault', status: 500, retryAfter: null, reason: null },
  message: 'Internal error; it has been logged.',
});

/** Returns the meaning of a read error for the client; `null` for an error of the client, or a mistake in the code. */
export function serviceErrorOf(error: unknown): ServiceError | null {
  if (error instanceof TimeoutError) return late;
  if (error instanceof NotReadyError) {
    const { cause, reason } = serviceErrorOf(error.because) ?? {
      cause: 'nothing-published',
      reason: error.message,
    };
    return { cause, status: 503, message: error.message, retryAfter: 5, reason };
  }
  if (error instanceof NoVersionError) {
    const isDamage = error instanceof DamagedError;
    return {
      ...{ cause: isDamage ? 'damaged' : 'nothing-published', status: 503, message: error.message },
      ...{ retryAfter: 5, reason: isDamage ? null : error.message },
    };
  }
  if (error instanceof TooManyJoinsError || error instanceof TooManyWaitingError) {
    return { cause: 'busy', status: 503, message: error.message, retryAfter: 1, reason: error.message };
  }
  if (isRedisUnavailable(error)) {
    const message = 'The data is temporarily unavailable. Try again shortly.';
    return { cause: 'away', status: 503, message, retryAfter: 1, reason: plainReason(error as Error) };
  }
  const cause = refusalKind(error);
  if (cause === null) return null;
  const { message: reply } = error as Error;
  return {
    ...{ cause, status: 500, retryAfter: null },
    message: 'The service cannot read its data. The error has been logged.',
    reason: `Redis refuses a command of the API: ${reply}`,
  };
}

/** Sends an error in the shape of the API. */
export function sendError(
  response: ServerResponse,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = errorEnvelope(status, message);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}
