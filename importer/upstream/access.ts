// What an import reaches its upstream with: the limits, the token, and what ends it early.

import type { LookupFunction } from 'node:net';

/** What the importer allows an upstream. */
export interface UpstreamLimits {
  /** How often a document is asked for, the first time included. */
  readonly tries: number;
  /** From the first try to the headers of the answer: waits, timeouts, redirects, all together. */
  readonly requestMs: number;
  /** Until a connection stands. */
  readonly connectMs: number;
  /** From the request to the headers of its answer. */
  readonly headersMs: number;
  /** Wait before the second try; doubled for each further one, less a random part. */
  readonly backoffMs: number;
  /** Redirects followed in one try. */
  readonly redirects: number;
  /** Silence in the middle of a body. */
  readonly idleMs: number;
  /** Mean rate of a body below which it is given up, over {@link slowMs} of waiting for it. */
  readonly slowBytesPerSecond: number;
  /** Time spent waiting for the body, backpressure not counted, after which its rate is judged. */
  readonly slowMs: number;
  /** Size of a decoded body. */
  readonly bodyBytes: number;
  /** Times that a body may be compressed. */
  readonly gzipLayers: number;
}

/** The limits that hold outside of tests. */
export const upstreamLimits: UpstreamLimits = Object.freeze({
  tries: 4,
  requestMs: 60_000,
  connectMs: 10_000,
  headersMs: 15_000,
  backoffMs: 500,
  redirects: 5,
  idleMs: 30_000,
  slowBytesPerSecond: 1024,
  slowMs: 60_000,
  bodyBytes: 4 * 1024 ** 3,
  gzipLayers: 2,
});

/** What one import reaches its upstream with. */
export interface Access {
  readonly limits: UpstreamLimits;
  readonly token: string | undefined;
  readonly signal: AbortSignal;
  /** Names become addresses by it; tests have names of their own. */
  readonly lookup?: LookupFunction | undefined;
  /** Who is trusted to sign certificates, in the place of those whom Node trusts; of tests, too. */
  readonly ca?: string | undefined;
}
