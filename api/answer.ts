// In: the bytes of a body and the version they are of. Out: the response: validators, 304, caching headers, gzip.

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import Accept from '@hapi/accept';
import Boom from '@hapi/boom';
import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';
import type { Version } from '../shared/versions.ts';
import { isNotModified, type Validators } from './conditional.ts';
import { bodyRevision } from './envelope.ts';
import { jsonResponse } from './json-response.ts';

/** Bodies over this many bytes are sent as gzip to clients that accept it. */
const gzipOver = 4_096;

const compress = promisify(gzip);

/** What is answered, before it becomes bytes. */
export interface Answer {
  readonly version: Version;
  /** Everything besides the version's records that the bytes depend on, such as page and base URL. */
  readonly variant: readonly (string | number)[];
  /** Makes the body; not called for a 304. */
  readonly body: () => Buffer;
}

/** Answers a data request, with 304 where the client holds the answer already. */
export async function answer(
  request: Request,
  h: ResponseToolkit,
  { version, variant, body }: Answer,
): Promise<ResponseObject> {
  const validators = validatorsOf(version, variant);
  const { headers } = request.raw.req;
  const conditions = { ifNoneMatch: headers['if-none-match'], ifModifiedSince: headers['if-modified-since'] };
  const response = isNotModified(conditions, validators)
    ? jsonResponse(h, noBody()).code(304)
    : await encoded(h, body(), headers['accept-encoding']);
  // hapi would judge the conditions again, by other rules than ours.
  delete request.headers['if-none-match'];
  delete request.headers['if-modified-since'];
  return response
    .header('medref-version', String(version.version))
    .header('last-modified', validators.lastModified)
    .header('etag', validators.etag)
    .header('cache-control', 'private, no-cache')
    .header('vary', 'Accept, Accept-Encoding, Authorization')
    .header('accept-ranges', 'none');
}

/** A stream, because hapi tells HEAD the length of anything else: 0, which is not the length of what was not modified. */
function noBody(): Readable {
  return Readable.from([], { objectMode: false });
}

function validatorsOf(version: Version, variant: Answer['variant']): Validators {
  const tag = createHash('sha256')
    .update(JSON.stringify([bodyRevision, version.checksum, ...variant]))
    .digest('base64url')
    .slice(0, 27);
  return { etag: `W/"${tag}"`, lastModified: new Date(version.publishedAt).toUTCString() };
}

async function encoded(
  h: ResponseToolkit,
  body: Buffer,
  acceptEncoding: string | undefined,
): Promise<ResponseObject> {
  if (body.length <= gzipOver || !acceptsGzip(acceptEncoding)) return jsonResponse(h, body);
  return jsonResponse(h, await compress(body)).header('content-encoding', 'gzip');
}

function acceptsGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  try {
    return Accept.encoding(acceptEncoding, ['gzip', 'identity']) === 'gzip';
  } catch (error) {
    if (Boom.isBoom(error)) return false; // A malformed field is as good as none.
    throw error;
  }
}
