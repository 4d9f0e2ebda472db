// Sends a response of a version: validators, 304, caching headers, gzip.

import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import Accept from '@hapi/accept';
import Boom from '@hapi/boom';
import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';
import type { Version } from '../../shared/store/versions.ts';
import type { Body } from './body.ts';
import { bodyRevision } from './envelope.ts';

/** Bodies over this many bytes are sent as gzip to clients that accept it. */
const gzipOver = 4_096;

/** Everything besides the version that determines the bytes of a response, such as page and base URL. */
export type Variant = readonly (string | number)[];

/** Returns validators that differ between responses. The variant is written as JSON, so different variants never collide. */
export function validatorsOf(version: Version, variant: Variant): Validators {
  const tag = `${bodyRevision}-${version.checksum.slice(0, 20)}-${fingerprint(JSON.stringify(variant))}`;
  return { etag: `W/"${tag}"`, lastModified: httpDate(version) };
}

/** Returns a short fingerprint of a text: FNV-1a from two offsets. It need not withstand an attack. */
function fingerprint(text: string): string {
  let [a, b] = [0x811c9dc5, 0x050c5d1f];
  for (let n = 0; n < text.length; n += 1) {
    const code = text.charCodeAt(n);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ (code + n), 0x01000193);
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36);
}

/** HTTP dates of versions, cached because every response needs one. */
const dates = new WeakMap<Version, string>();

function httpDate(version: Version): string {
  const known = dates.get(version);
  if (known) return known;
  const date = new Date(version.publishedAt).toUTCString();
  dates.set(version, date);
  return date;
}

/** A request and its response, without the parts of hapi. */
export interface Exchange {
  readonly raw: { readonly req: IncomingMessage; readonly res: ServerResponse };
}

/** Returns whether the client already has this response. */
export function isFresh({ raw }: Exchange, validators: Validators): boolean {
  const { headers } = raw.req;
  const ifNoneMatch = headers['if-none-match'];
  return isNotModified({ ifNoneMatch, ifModifiedSince: headers['if-modified-since'] }, validators);
}

/** A response of a version, without its body. */
export interface VersionedResponse {
  readonly version: Version;
  readonly validators: Validators;
  /** Further header fields: names and values in turn. */
  readonly fields?: readonly string[];
}

/** A response with its body. */
export interface Reply extends VersionedResponse {
  readonly body: () => Body;
}

/** Sends 304: the client already has this response. */
export function notModified({ raw }: Request, h: ResponseToolkit, fresh: VersionedResponse): symbol {
  writeLater(raw.res, () => {
    raw.res.writeHead(304, fieldsOf(fresh));
    raw.res.end();
  });
  return h.abandon;
}

/**
 * Writes a response after all requests of this turn of the event loop were read. Each write wakes its client, which costs more
 * than most responses; if several writes follow each other, only the first one does.
 */
function writeLater(res: ServerResponse, write: () => void): void {
  if (waiting.push({ res, write }) === 1) setImmediate(writeWaiting);
}

/** The responses of this turn. */
let waiting: { readonly res: ServerResponse; readonly write: () => void }[] = [];

function writeWaiting(): void {
  const ready = waiting;
  waiting = [];
  for (const { res, write } of ready) if (!res.headersSent) write(); // Otherwise a timeout has sent 503.
}

/**
 * Sends 200, or 304 if the client already has the response. It bypasses hapi, which would take as long as the rest of the
 * request and would evaluate the conditions again by its own rules.
 */
export async function sendReply(
  request: Request,
  h: ResponseToolkit,
  { body, ...its }: Reply,
): Promise<symbol> {
  if (isFresh(request, its.validators)) return notModified(request, h, its);
  await writeBody(request.raw, { body, ...its });
  return h.abandon;
}

async function writeBody({ req, res }: Exchange['raw'], { body, ...its }: Reply): Promise<void> {
  const made = body();
  const isGzip = made.length > gzipOver && acceptsGzip(req.headers['accept-encoding']);
  const pieces = isGzip ? [await made.gzip()] : (made.texts?.() ?? [made.text()]);
  const fields = fieldsOf(its);
  fields.push('content-type', 'application/json', 'content-length', String(lengthOf(pieces)));
  if (isGzip) fields.push('content-encoding', 'gzip');
  writeLater(res, () => {
    res.writeHead(200, fields);
    endWith(res, pieces);
  });
}

function lengthOf(pieces: readonly Buffer[]): number {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  return length;
}

/** Ends a response with the pieces of its body in one write. */
function endWith(res: ServerResponse, pieces: readonly Buffer[]): void {
  const last = pieces.length - 1;
  if (last === 0) return void res.end(pieces[0]);
  res.cork();
  for (let n = 0; n < last; n += 1) res.write(pieces[n]);
  res.end(pieces[last]);
  res.uncork();
}

/** Returns the header fields of a response, names and values in turn: common fields first. */
export function fieldsOf({ version, validators, fields = [] }: VersionedResponse): string[] {
  // biome-ignore format: one name and value per line
  return [
    'medref-version', String(version.version),
    'last-modified', validators.lastModified,
    'etag', validators.etag,
    'cache-control', 'private, no-cache',
    'vary', 'Accept, Accept-Encoding, Authorization',
    'accept-ranges', 'none',
    ...fields,
  ];
}

/** Returns whether a client accepts gzip and does not prefer the plain text. */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  if (acceptEncoding === 'gzip') return true;
  try {
    return Accept.encoding(acceptEncoding, ['gzip', 'identity']) === 'gzip';
  } catch (error) {
    if (Boom.isBoom(error)) return false; // A malformed field counts as absent.
    throw error;
  }
}

/** The validators of a response. */
export interface Validators {
  /** Weak entity tag, including `W/`. */
  readonly etag: string;
  /** HTTP date. */
  readonly lastModified: string;
  /** `false` if responses with the same date can differ. */
  readonly isExactByDate?: boolean;
}

/** The conditions of a request. */
export interface Conditions {
  readonly ifNoneMatch: string | undefined;
  readonly ifModifiedSince: string | undefined;
}

/**
 * Returns whether the response is 304. `If-None-Match` (a list, `W/` or not, or `*`) takes precedence over `If-Modified-Since`,
 * which must equal the date: after a rollback, an earlier or later date proves nothing.
 */
export function isNotModified(
  { ifNoneMatch, ifModifiedSince }: Conditions,
  { etag, lastModified, isExactByDate = true }: Validators,
): boolean {
  if (ifNoneMatch !== undefined) return matches(ifNoneMatch, etag);
  return isExactByDate && ifModifiedSince !== undefined && ifModifiedSince.trim() === lastModified;
}

/** Weak comparison (RFC 9110, section 8.8.3.2). */
function matches(list: string, etag: string): boolean {
  if (list.trim() === '*') return true;
  const tags = list.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return tags.some((tag) => opaque(tag) === opaque(etag));
}

function opaque(tag: string): string {
  return tag.replace(/^W\//, '');
}

const compress: (bytes: Buffer) => Promise<Buffer> = promisify(gzip);

/** Bytes with their media type and further header fields. */
export interface FixedBody {
  readonly type: string;
  readonly bytes: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Returns a handler that responds with these bytes, or with 304 if the client has them. */
export function fixedResponse({ type, bytes, headers = {} }: FixedBody) {
  const etag = `W/"${createHash('sha256').update(bytes).digest('base64url')}"`;
  const fields = {
    ...{ etag, 'cache-control': 'no-cache', vary: 'Accept-Encoding' },
    ...headers,
  };
  let compressed: Promise<Buffer> | undefined;
  return async (request: Request, h: ResponseToolkit): Promise<ResponseObject> => {
    const { 'if-none-match': ifNoneMatch, 'accept-encoding': accepted } = request.raw.req.headers;
    if (isNotModified({ ifNoneMatch, ifModifiedSince: undefined }, { etag, lastModified: '' }))
      return withFields(h.response().code(304), fields);
    if (!acceptsGzip(accepted)) return withFields(h.response(bytes).type(type), fields);
    compressed ??= compress(bytes);
    const response = h.response(await compressed).type(type);
    return withFields(response, { ...fields, 'content-encoding': 'gzip' });
  };
}

function withFields(response: ResponseObject, fields: Readonly<Record<string, string>>): ResponseObject {
  response.charset('');
  for (const [name, value] of Object.entries(fields)) response.header(name, value);
  return response;
}
