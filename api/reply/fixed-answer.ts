// An answer that is the same for as long as the process lives: with an entity tag of its bytes, and gzip made once.

import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';
import { acceptsGzip } from './answer.ts';
import { isNotModified } from './conditional.ts';

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
