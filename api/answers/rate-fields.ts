// In: a request whose key has a rate. Out: the fields by which a client sees how it stands
// (draft-ietf-httpapi-ratelimit-headers-10), or 429.

import Boom from '@hapi/boom';
import type { Request } from '@hapi/hapi';
import type { ApiKey } from '../../shared/store/api-keys.ts';
import type { Charge, Standing } from '../reads/rates.ts';

/** What is known of who sent a request that was let in. */
export interface Caller {
  readonly key: ApiKey;
  /** `null` where the key has no rate. */
  readonly charge: Charge | null;
}

/** Who sent a request. */
export function callerOf({ auth }: Request): Caller {
  return (auth.credentials as { readonly app: unknown }).app as Caller;
}

/**
 * Charges a request, where that was not done before, without waiting for what comes of it.
 * @returns 429 where it is known to be beyond its rate
 */
export function refusalOf({ charge }: Caller): Boom.Boom | null {
  const refusal = charge?.begin();
  return refusal ? tooManyRequests(refusal) : null;
}

/** The same. @throws Boom 429 */
export function beginCharge(caller: Caller): void {
  const refusal = refusalOf(caller);
  if (refusal) throw refusal;
}

/**
 * Charges a request, and waits for what comes of it where that is not known at once.
 * @returns fields of its answer, names and values by turns. @throws Boom 429
 */
export function settleCharge(charge: Charge): readonly string[] | Promise<readonly string[]> {
  const standing = charge.settle();
  return standing instanceof Promise ? standing.then(fieldsOrRefusal) : fieldsOrRefusal(standing);
}

function fieldsOrRefusal(standing: Standing): readonly string[] {
  if (!standing.isWithin) throw tooManyRequests(standing);
  return ['ratelimit-policy', policyOf(standing), 'ratelimit', limitOf(standing)];
}

/** 429 for a request beyond its rate. */
function tooManyRequests(standing: Standing): Boom.Boom {
  const { rate, retryAfterS } = standing;
  const error = Boom.tooManyRequests(
    `This key may ask ${rate} times a second. Try again in ${retryAfterS} s.`,
  );
  Object.assign(error.output.headers, {
    'retry-after': String(retryAfterS),
    'ratelimit-policy': policyOf(standing),
    ratelimit: limitOf(standing),
  });
  return error;
}

/** A window of one second. */
function policyOf({ rate }: Standing): string {
  return `"default";q=${rate};w=1`;
}

/** What is left of it, and within how many seconds all of it is back. */
function limitOf({ left, fullAfterS }: Standing): string {
  return `"default";r=${left};t=${fullAfterS}`;
}
