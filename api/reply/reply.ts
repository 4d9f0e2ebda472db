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

/** Everything besides the version's records that the bytes of an answer depend on, such as page and base URL. */
export type Variant = readonly (string | number)[];

/** What lets a client tell this answer from another one. The variant is written as JSON, which no two of them share. */
export function validatorsOf(version: Version, variant: Variant): Validators {
  const tag = `${bodyRevision}-${version.checksum.slice(0, 20)}-${fingerprint(JSON.stringify(variant))}`;
  return { etag: `W/"${tag}"`, lastModified: httpDate(version) };
}

/** A short text that differs where texts differ: FNV-1a from two beginnings. It need not withstand an attack. */
function fingerprint(text: string): string {
  let [a, b] = [0x811c9dc5, 0x050c5d1f];
  for (let n = 0; n < text.length; n += 1) {
    const code = text.charCodeAt(n);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ (code + n), 0x01000193);
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36);
}

/** HTTP dates of versions, which are asked for with each answer. */
const dates = new WeakMap<Version, string>();

function httpDate(version: Version): string {
  const known = dates.get(version);
  if (known) return known;
  const date = new Date(version.publishedAt).toUTCString();
  dates.set(version, date);
  return date;
}

/** A request and its response, without hapi's part of it. */
export interface Exchange {
  readonly raw: { readonly req: IncomingMessage; readonly res: ServerResponse };
}

/** Whether the client holds this answer already. */
export function isFresh({ raw }: Exchange, validators: Validators): boolean {
  const { headers } = raw.req;
  const ifNoneMatch = headers['if-none-match'];
  return isNotModified({ ifNoneMatch, ifModifiedSince: headers['if-modified-since'] }, validators);
}

/** An answer of a version. */
export interface Answer {
  readonly version: Version;
  readonly validators: Validators;
  /** Header fields that it has besides those of every answer, names and values by turns. */
  readonly fields?: readonly string[];
}

/** An answer with its body. */
export interface Reply extends Answer {
  readonly body: () => Body;
}

/** 304: the client has this response already. */
export function notModified({ raw }: Request, h: ResponseToolkit, fresh: Answer): symbol {
  writeLater(raw.res, () => {
    raw.res.writeHead(304, fieldsOf(fresh));
    raw.res.end();
  });
  return h.abandon;
}

/**
 * Writes a response after all requests of this turn of the event loop were read. A write wakes its client, which costs more
 * than most responses; of several writes in a row, only the first one does.
 */
function writeLater(res: ServerResponse, write: () => void): void {
  if (waiting.push({ res, write }) === 1) setImmediate(writeWaiting);
}

/** The responses of this turn. */
let waiting: { readonly res: ServerResponse; readonly write: () => void }[] = [];

function writeWaiting(): void {
  const ready = waiting;
  waiting = [];
  for (const { res, write } of ready) if (!res.headersSent) write(); // Otherwise it took too long and was 503.
}

/**
 * 200, or 304 where the client holds the answer. The bytes are written past hapi, which would spend as long on them as
 * on all the rest of a request, and would judge the conditions again, by other rules than ours.
 */
export async function answer(request: Request, h: ResponseToolkit, { body, ...its }: Reply): Promise<symbol> {
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

/** Ends a response with pieces of its body, which go out in one write. */
function endWith(res: ServerResponse, pieces: readonly Buffer[]): void {
  const last = pieces.length - 1;
  if (last === 0) return void res.end(pieces[0]);
  res.cork();
  for (let n = 0; n < last; n += 1) res.write(pieces[n]);
  res.end(pieces[last]);
  res.uncork();
}

/** The header fields of an answer, names and values by turns: those of every answer, then its own. */
export function fieldsOf({ version, validators, fields = [] }: Answer): string[] {
  // biome-ignore format: a name and its value to a line
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

/** Whether a client takes gzip, and would not rather have the text. */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  if (acceptEncoding === 'gzip') return true;
  try {
    return Accept.encoding(acceptEncoding, ['gzip', 'identity']) === 'gzip';
  } catch (error) {
    if (Boom.isBoom(error)) return false; // A malformed field is as good as none.
    throw error;
  }
}

/** What a response says of its body. */
export interface Validators {
  /** Weak entity tag, with its `W/`. */
  readonly etag: string;
  /** HTTP date. */
  readonly lastModified: string;
  /** `false` where the answer may be another one at the same date. */
  readonly isToldByDate?: boolean;
}

/** The request's conditions. */
export interface Conditions {
  readonly ifNoneMatch: string | undefined;
  readonly ifModifiedSince: string | undefined;
}

/**
 * Whether the answer is 304. `If-None-Match` (a list, `W/` or not, or `*`) goes before `If-Modified-Since`,
 * which must be the identical date: an older or later one proves nothing where versions can be rolled back.
 */
export function isNotModified(
  { ifNoneMatch, ifModifiedSince }: Conditions,
  { etag, lastModified, isToldByDate = true }: Validators,
): boolean {
  if (ifNoneMatch !== undefined) return matches(ifNoneMatch, etag);
  return isToldByDate && ifModifiedSince !== undefined && ifModifiedSince.trim() === lastModified;
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

/** Bytes, their media type, and header fields besides. */
export interface FixedBody {
  readonly type: string;
  readonly bytes: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Makes a handler that answers with these bytes, or with 304 where the client holds them. */
export function fixedAnswer({ type, bytes, headers = {} }: FixedBody) {
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
