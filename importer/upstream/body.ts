// In: the raw bytes of a document. Out: the document: its decoded bytes, within bounds of time and size, or one sentence.

import { addAbortSignal, pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { UpstreamLimits } from './access.ts';
import { ConnectionReset } from './connection-reset.ts';
import { codeOf, seconds, slowAdvice, UpstreamError, urlText } from './error.ts';
import { proven } from './told-digest.ts';

/** What lets a later import ask whether a document has changed. */
export interface Validators {
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** How much of a document has arrived, in bytes as they were sent. */
export interface Arrival {
  readonly bytes: number;
  /** Of how many; `null` where that is not known. */
  readonly of: number | null;
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
  arrival(): Arrival;
  /** Gives up what is not yet read; to be called at the end in any case. */
  close(): void;
}

/** What upstream says of a document that has not changed. */
export interface NotModified {
  readonly notModified: true;
  /** The `Medref-Version` header: it may be a later one, which has the same content. */
  readonly version: string | null;
}

/** What was found where a document was asked for. */
export type Found = UpstreamDocument | NotModified;

/** The raw bytes of a document and what is known of it. */
export interface Source {
  url: URL;
  raw: Readable;
  /** Whether the sender told where the bytes end, by a length or by chunks; if not, the connection ends with them. */
  framed: boolean;
  /** How many bytes there are, where that is known before they come. */
  length: number | null;
  limits: UpstreamLimits;
  signal: AbortSignal;
  lines: boolean;
  header(name: string): string | null;
}

/** A document of these bytes, whose body has yet to be read. */
export function documentOf(source: Source): UpstreamDocument {
  const { url, raw, signal, lines, header } = source;
  const arrived = { bytes: 0 };
  // What goes wrong is told to whoever reads; without a reader it concerns nobody.
  addAbortSignal(signal, raw).on('error', () => {});
  return {
    url,
    lines,
    version: header('medref-version'),
    validators: { etag: notTooLong(header('etag')), lastModified: notTooLong(settledDate(header)) },
    body: proven(
      bounded(unzipped(watched(source, arrived), urlText(url), source.limits.gzipLayers), source),
      {
        ...{ name: urlText(url), told: lines ? header('medref-digest') : null },
      },
    ),
    arrival: () => ({ ...arrived, of: source.length }),
    close: () => raw.destroy(),
  };
}

/** The number of a version, from the header of a medref; `null` of any other upstream. */
export function medrefVersion(text: string | null): string | null {
  return text !== null && /^[1-9][0-9]{0,15}$/.test(text) ? text : null;
}

/** A longer validator is as good as none: each of the reports that are kept has it. */
const maxValidatorLength = 1_000;

function notTooLong(validator: string | null): string | null {
  return validator !== null && validator.length > maxValidatorLength ? null : validator;
}

/**
 * `Last-Modified`, where it cannot be that the document changes again within the same second (RFC 9110, section
 * 8.8.2.2): when the answer is of a later one.
 */
function settledDate(header: Source['header']): string | null {
  const modified = header('last-modified');
  const age = Date.parse(header('date') ?? '') - Date.parse(modified ?? '');
  return age >= 1_000 ? modified : null;
}

/** The body as it arrives, given up when it is silent or drips. */
async function* watched(
  { url, raw, framed, lines, limits, signal }: Source,
  all: { bytes: number },
): AsyncGenerator<Uint8Array> {
  const name = urlText(url);
  const chunks = raw[Symbol.asyncIterator]();
  let waited = 0;
  let arrived = 0;
  for (;;) {
    const start = performance.now();
    const silence = new UpstreamError(
      `${name} stopped in the middle of its body for ${seconds(limits.idleMs)}. ${slowAdvice}`,
    );
    const idle = setTimeout(() => raw.destroy(silence), limits.idleMs);
    const next = await chunks
      .next()
      .catch((error: unknown) => {
        signal.throwIfAborted();
        // An array and an envelope show their end themselves; JSON Lines do not.
        if (error instanceof ConnectionReset && !framed && !lines) return { done: true } as const;
        throw bodyFailure(name, error);
      })
      .finally(() => clearTimeout(idle));
    if (next.done) return;
    waited += performance.now() - start;
    arrived += next.value.length;
    all.bytes += next.value.length;
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

function bodyFailure(name: string, error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error;
  const code = codeOf(error);
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
    return new UpstreamError(
      `${name} sent a body of another length than its Content-Length says. ${slowAdvice}`,
    );
  }
  if (['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'HPE_INVALID_EOF_STATE'].includes(code)) {
    return new UpstreamError(
      `${name} is cut off: the connection ended before the body did. Import again later.`,
    );
  }
  return new UpstreamError(`${name} could not be read to its end (${code}). Import again later.`);
}

/** Inflates what begins like gzip, whatever its headers and name say. */
async function* unzipped(
  source: AsyncIterable<Uint8Array>,
  name: string,
  layers: number,
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
  else yield* unzipped(inflated(whole, name), name, layers - 1);
}

async function* rejoined(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (head.length > 0) yield head;
  yield* { [Symbol.asyncIterator]: () => rest };
}

async function* inflated(source: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: 64 * 1024 });
  let fed = 0;
  const counted = async function* () {
    for await (const chunk of source) {
      fed += chunk.length;
      yield chunk;
    }
  };
  // Its failures reach the reader of gunzip, which pipeline destroys with them.
  pipeline(counted, gunzip, () => {});
  try {
    yield* gunzip;
  } catch (error) {
    const code = codeOf(error);
    if (code === 'Z_BUF_ERROR') {
      throw new UpstreamError(`${name} is cut off: its gzip data ends too early. Import again later.`);
    }
    if (code.startsWith('Z_'))
      throw new UpstreamError(`${name} holds corrupt gzip data. Ask who runs the upstream.`);
    throw error;
  }
  // zlib ends in order at a zero byte after a member, and leaves all that follows: another member may be among it.
  if (gunzip.bytesWritten < fed) {
    throw new UpstreamError(
      `${name} holds corrupt gzip data: what follows its first members is not gzip. Ask who runs the upstream.`,
    );
  }
}

async function* bounded(
  source: AsyncIterable<Uint8Array>,
  { url, limits }: Source,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (size > limits.bodyBytes) {
      throw new UpstreamError(
        `${urlText(url)} is larger than ${limits.bodyBytes} bytes, the most that is read.`,
      );
    }
    yield chunk;
  }
}

/** Whether a URL's path says that it is JSON Lines. */
export function hasLinesExtension(url: URL): boolean {
  return /\.(jsonl|ndjson)(\.gz)?$/i.test(url.pathname);
}
