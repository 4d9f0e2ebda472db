// An upstream document: inflates its bytes, limits time and size, and verifies the digest of a medref.

import { createHash } from 'node:crypto';
import { addAbortSignal, pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { UpstreamLimits } from './access.ts';
import { codeOf, seconds, slowAdvice, UpstreamError, urlText } from './access.ts';

/** Values for a later conditional request. */
export interface Validators {
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** How much of a document has arrived, in bytes on the wire. */
export interface Arrival {
  readonly bytes: number;
  /** The total size; `null` if unknown. */
  readonly of: number | null;
}

/** An upstream document whose body is not read yet. */
export interface UpstreamDocument {
  /** Its location after redirects. */
  readonly url: URL;
  /** Whether it is JSON Lines, by file extension or content type. */
  readonly lines: boolean;
  /** The `Medref-Version` header. */
  readonly version: string | null;
  readonly validators: Validators;
  /** The decoded bytes, to be read once. Every failure is an {@link UpstreamError}. */
  readonly body: AsyncIterable<Uint8Array>;
  arrival(): Arrival;
  /** Drops the unread rest. Always call it at the end. */
  close(): void;
}

/** A document that has not changed. */
export interface NotModified {
  readonly notModified: true;
  /** The `Medref-Version` header. It may be a later version with the same content. */
  readonly version: string | null;
}

/** The result of a request for a document. */
export type Found = UpstreamDocument | NotModified;

/** The raw bytes of a document and its metadata. */
export interface Source {
  readonly url: URL;
  readonly raw: Readable;
  /** The number of bytes, if known in advance. */
  readonly length: number | null;
  readonly limits: UpstreamLimits;
  readonly signal: AbortSignal;
  readonly lines: boolean;
  header(name: string): string | null;
}

/** How many layers of gzip a body may have. */
const gzipLayers = 2;

/** Longer validators are not stored, because each report repeats them. */
const maxValidatorLength = 1_000;

/** Makes a document of raw bytes. */
export function documentOf(source: Source): UpstreamDocument {
  const { url, raw, signal, lines, header, limits, length } = source;
  const name = urlText(url);
  let arrived = 0;
  const chunks = watched(source, (bytes) => {
    arrived += bytes;
  });
  const decoded = limited(inflated(chunks, { name, layers: gzipLayers }), { name, limits });
  const digest = lines ? listDigest(header('medref-digest')) : null;
  // The reader of the body handles its failure; without a reader, the failure is irrelevant.
  addAbortSignal(signal, raw).on('error', () => {});
  return {
    url,
    lines,
    version: header('medref-version'),
    validators: { etag: shortValidator(header('etag')), lastModified: shortValidator(lastModified(header)) },
    body: digest === null ? decoded : verified(decoded, { name, digest }),
    arrival: () => ({ bytes: arrived, of: length }),
    close: () => raw.destroy(),
  };
}

/** Returns the version number in a medref's header; `null` for other upstreams. */
export function medrefVersion(text: string | null): string | null {
  return text !== null && /^[1-9][0-9]{0,15}$/.test(text) ? text : null;
}

/** Returns whether the path of a URL has an extension of JSON Lines. */
export function hasLinesExtension(url: URL): boolean {
  return /\.(jsonl|ndjson)(\.gz)?$/i.test(url.pathname);
}

function shortValidator(validator: string | null): string | null {
  return validator !== null && validator.length > maxValidatorLength ? null : validator;
}

/**
 * Returns `Last-Modified` if the response is from a later second. Otherwise the document may change again within the same
 * second (RFC 9110, section 8.8.2.2).
 */
function lastModified(header: Source['header']): string | null {
  const modified = header('last-modified');
  const age = Date.parse(header('date') ?? '') - Date.parse(modified ?? '');
  return age >= 1_000 ? modified : null;
}

/** Yields the body as it arrives; fails if it is too slow. */
async function* watched(
  { url, raw, limits, signal }: Source,
  count: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const name = urlText(url);
  const chunks = raw[Symbol.asyncIterator]();
  let waited = 0;
  let arrived = 0;
  for (;;) {
    const start = performance.now();
    const next = await chunks.next().catch((error: unknown) => {
      signal.throwIfAborted();
      throw bodyFailure(name, error, limits);
    });
    if (next.done) return;
    waited += performance.now() - start;
    arrived += next.value.length;
    count(next.value.length);
    if (waited >= limits.slowMs) {
      if (arrived < (limits.slowBytesPerSecond * waited) / 1000) {
        throw new UpstreamError(
          `${name} sends its body too slowly: ${arrived} bytes in ${seconds(waited)}. ${slowAdvice}`,
        );
      }
      waited = 0;
      arrived = 0;
    }
    yield next.value;
  }
}

function bodyFailure(name: string, error: unknown, limits: UpstreamLimits): UpstreamError {
  switch (codeOf(error)) {
    case 'UND_ERR_BODY_TIMEOUT':
      return new UpstreamError(
        `${name} sent nothing during its body for ${seconds(limits.idleMs)}. ${slowAdvice}`,
      );
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return new UpstreamError(
        `${name} sent a body whose length differs from its Content-Length. ${slowAdvice}`,
      );
    case 'UND_ERR_SOCKET':
    case 'ECONNRESET':
    case 'EPIPE':
    case 'ETIMEDOUT':
    case 'HPE_INVALID_EOF_STATE':
    case 'HTTPParserError':
      return new UpstreamError(
        `${name} is truncated: the connection closed before the end of the body. Import again later.`,
      );
    default:
      return new UpstreamError(
        `${name} could not be read to the end (${codeOf(error)}). Import again later.`,
      );
  }
}

/** Inflates bytes that begin like gzip, whatever headers and names claim. */
async function* inflated(
  source: AsyncIterable<Uint8Array>,
  { name, layers }: { name: string; layers: number },
): AsyncGenerator<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  while (head.length < 2) {
    const next = await chunks.next();
    if (next.done) break;
    head = Buffer.concat([head, next.value]);
  }
  const whole = rejoined(head, chunks);
  if (layers === 0 || head[0] !== 0x1f || head[1] !== 0x8b) yield* whole;
  else yield* inflated(gunzipped(whole, name), { name, layers: layers - 1 });
}

async function* rejoined(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (head.length > 0) yield head;
  yield* { [Symbol.asyncIterator]: () => rest };
}

async function* gunzipped(source: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: 64 * 1024 });
  let fed = 0;
  const counted = async function* () {
    for await (const chunk of source) {
      fed += chunk.length;
      yield chunk;
    }
  };
  // pipeline destroys gunzip with the error, which its reader sees.
  pipeline(counted, gunzip, () => {});
  try {
    yield* gunzip;
  } catch (error) {
    const code = codeOf(error);
    if (code === 'Z_BUF_ERROR') {
      throw new UpstreamError(`${name} is truncated: its gzip data ends early. Import again later.`);
    }
    if (code.startsWith('Z_')) {
      throw new UpstreamError(`${name} holds corrupt gzip data. Contact the operator of the upstream.`);
    }
    throw error;
  }
  // zlib ends without an error at a zero byte after a member, and ignores everything after it, even another member.
  if (gunzip.bytesWritten < fed) {
    throw new UpstreamError(
      `${name} holds corrupt gzip data: the bytes after its first members are not gzip. Contact the operator of the upstream.`,
    );
  }
}

async function* limited(
  source: AsyncIterable<Uint8Array>,
  { name, limits }: { name: string; limits: UpstreamLimits },
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (size > limits.bodyBytes) {
      throw new UpstreamError(`${name} is larger than ${limits.bodyBytes} bytes, the limit.`);
    }
    yield chunk;
  }
}

/** Returns the SHA-256 of the list in a `Medref-Digest`, in base64. */
function listDigest(header: string | null): string | null {
  return /(?:^|[,\s])list=:([^:]*):/.exec(header ?? '')?.[1] ?? null;
}

/** Passes bytes on; fails at the end if they do not match the digest. */
async function* verified(
  source: AsyncIterable<Uint8Array>,
  { name, digest }: { name: string; digest: string },
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  for await (const chunk of source) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest('base64') === digest) return;
  throw new UpstreamError(
    `${name} sent a list that does not match its Medref-Digest: it was changed in transit, or is damaged upstream. ` +
      'Import again later; if that fails, run "medref verify" at the upstream.',
  );
}
