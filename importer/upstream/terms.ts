// What every part of the upstream speaks of: its failures, its limits, its documents, and how each is named.

/** A failure of the upstream, told as one plain sentence; the import ends with it as its reason. */
export class UpstreamError extends Error {
  override name = 'UpstreamError';
}

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

/** What lets a later import ask whether a document has changed. */
export interface Validators {
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** An upstream document whose body has yet to be read. */
export interface UpstreamDocument {
  /** Where the document was found, after redirects. */
  readonly url: URL;
  /** Whether it is JSON Lines, by its extension or its content type. */
  readonly lines: boolean;
  /** The `Medref-Version` header. */
  readonly version: string | null;
  readonly validators: Validators;
  /** The decoded bytes, to be read once; every failure in them is an {@link UpstreamError}. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Gives up what is not yet read; to be called at the end in any case. */
  close(): void;
}

/** What one import reaches its upstream with. */
export interface Access {
  readonly limits: UpstreamLimits;
  readonly token: string | undefined;
  readonly signal: AbortSignal;
}

/** A URL as reasons name it: without credentials and without the query, which may hold a secret. */
export function nameOf(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`;
}

/** The code of an error, as Node and its libraries give it. */
export function codeOf(error: unknown): string {
  return (error as { code?: string } | null)?.code ?? (error instanceof Error ? error.name : 'unknown');
}

/** A time as reasons name it. */
export function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 100) / 10} s`;
}

/** What to do about an upstream that is slow or unwell. */
export const slowAdvice = 'Ask who runs the upstream, or import again later.';
