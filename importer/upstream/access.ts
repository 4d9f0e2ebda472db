// What an import reaches its upstream with: the limits, the token, and the signal that ends it early.

import type { LookupFunction } from 'node:net';

/** What the importer allows an upstream. */
export interface UpstreamLimits {
  /** How often a document is requested, the first time included. */
  readonly attempts: number;
  /** From the first attempt to the headers of the response: waits, timeouts and redirects together. */
  readonly requestMs: number;
  /** Until a connection is made. */
  readonly connectMs: number;
  /** From the request to the headers of its response. */
  readonly headersMs: number;
  /** Wait before the second attempt; doubled for each further one, less a random part. */
  readonly backoffMs: number;
  /** Redirects followed in one attempt. */
  readonly redirects: number;
  /** Silence in the middle of a body. */
  readonly idleMs: number;
  /** Mean rate of a body below which the import gives up, over {@link slowMs} of waiting for it. */
  readonly slowBytesPerSecond: number;
  /** Time spent waiting for the body, backpressure not counted, after which its rate is checked. */
  readonly slowMs: number;
  /** Size of a decoded body. */
  readonly bodyBytes: number;
}

/** The limits that hold outside of tests. */
export const upstreamLimits: UpstreamLimits = Object.freeze({
  attempts: 4,
  requestMs: 60_000,
  connectMs: 10_000,
  headersMs: 15_000,
  backoffMs: 500,
  redirects: 5,
  idleMs: 30_000,
  slowBytesPerSecond: 1024,
  slowMs: 60_000,
  bodyBytes: 4 * 1024 ** 3,
});

/** What one import reaches its upstream with. */
export interface Access {
  readonly limits: UpstreamLimits;
  readonly token: string | undefined;
  readonly signal: AbortSignal;
  /** Looks up host names; tests have names of their own. */
  readonly lookup?: LookupFunction | undefined;
  /** Certificates to trust instead of those that Node trusts, for tests. */
  readonly ca?: string | undefined;
}
