// In: an error of a read. Out: why there is no answer: what the client is told, whether to come again, and the cause, which
// is counted and told to operators.

import { isRedisUnavailable, plainReason, refusalKind } from '../../shared/redis/failures.ts';
import { TooManyJoinsError } from '../read/changes.ts';
import { TooManyWaitingError } from '../read/publication-waits.ts';
import { DamagedError, NoVersionError } from '../read/versions.ts';
import { LateError } from './within.ts';

/** Why requests are not answered, each as the metrics name it. */
export const troubleCauses = [
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

export type TroubleCause = (typeof troubleCauses)[number];

/** What keeps a request from being answered. */
export interface Trouble {
  readonly cause: TroubleCause;
  /** 503 where asking again may help, 500 where somebody has to mend something first. */
  readonly status: 500 | 503;
  /** What the client is told. */
  readonly message: string;
  /** Seconds after which the client may ask again; `null` with 500. */
  readonly retryAfter: number | null;
  /** What operators are told, as a sentence; `null` where that is done as it happens. */
  readonly reason: string | null;
}

/** `/health/ready` says no, by a sentence for all who ask. Who asks takes 503 for that, whatever the cause is. */
export class NotReadyError extends Error {
  readonly because: unknown;

  constructor(message: string, because: unknown) {
    super(message);
    this.because = because;
  }
}

/** An answer that has not begun in time. */
export const late: Trouble = Object.freeze({
  ...{ cause: 'late', status: 503, retryAfter: 1 },
  message: 'The data cannot be read quickly enough at the moment. Try again shortly.',
  reason: 'An answer did not begin within 2 s.',
});

/** More requests are under way than are answered quickly. */
export const overloaded: Trouble = Object.freeze({
  ...{ cause: 'overload', status: 503, retryAfter: 1 },
  message: 'More requests come than can be answered quickly. Try again shortly.',
  reason: 'Too many requests in flight; try again.',
});

/** A mistake of ours, which is logged where it happens. */
export const fault: Trouble = Object.freeze({
  ...{ cause: 'fault', status: 500, retryAfter: null, reason: null },
  message: 'Something went wrong here; it has been logged.',
});

/** What an error of a read means; `null` for one that is no trouble of ours, or a mistake. */
export function troubleOf(error: unknown): Trouble | null {
  if (error instanceof LateError) return late;
  if (error instanceof NotReadyError) {
    const { cause, reason } = troubleOf(error.because) ?? {
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
    const message = 'The data cannot be reached at the moment. Try again shortly.';
    return { cause: 'away', status: 503, message, retryAfter: 1, reason: plainReason(error as Error) };
  }
  const cause = refusalKind(error);
  if (cause === null) return null;
  const { message: reply } = error as Error;
  return {
    ...{ cause, status: 500, retryAfter: null },
    message: 'The data cannot be read: Redis refuses it. Whoever runs the service has been told.',
    reason: `Redis refuses what the API asks: ${reply}`,
  };
}
