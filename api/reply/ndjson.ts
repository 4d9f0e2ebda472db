// A whole collection as NDJSON, at the speed of the client. A failed export resets the connection, so it never looks complete.

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Request, ResponseToolkit } from '@hapi/hapi';
import type { Logger } from 'pino';
import { requestIdOf } from '../http.ts';
import { prefersToJson } from '../query.ts';
import { onTheFly } from './body.ts';
import { digestFields } from './envelope.ts';
import { acceptsGzip, fieldsOf, type VersionedResponse } from './reply.ts';

const mediaType = 'application/x-ndjson';

/** Returns whether a client prefers NDJSON to the envelope. */
export function prefersNdjson(request: Request): boolean {
  return prefersToJson(request, mediaType);
}

/**
 * Streams an NDJSON export.
 * @param lines text that ends with whole lines; an error resets the connection and is logged
 */
export function sendLines(
  request: Request,
  h: ResponseToolkit,
  {
    lines,
    logger,
    ...its
  }: VersionedResponse & { readonly lines: AsyncIterable<Buffer>; readonly logger: Logger },
): symbol {
  const { req, res } = request.raw;
  const isGzip = acceptsGzip(req.headers['accept-encoding']);
  const { version, fields: own = [] } = its;
  const fields = [
    ...fieldsOf({ ...its, fields: [...digestFields(version), ...own] }),
    ...['content-type', mediaType],
    // nginx then forwards each piece at once; other proxies ignore the field.
    ...['x-accel-buffering', 'no'],
  ];
  if (isGzip) fields.push('content-encoding', 'gzip');
  // The length reveals a truncated stream even if the connection closes normally.
  else if (version.linesLength !== undefined) fields.push('content-length', String(version.linesLength));
  res.writeHead(200, fields);
  if (request.method === 'head') {
    res.end();
    return h.abandon;
  }
  res.setMaxListeners(20); // Each part of a pipeline adds listeners; Node warns after ten.
  const source = Readable.from(lines, { objectMode: false });
  const sent = isGzip ? pipeline(source, createGzip(onTheFly), res) : pipeline(source, res);
  sent.catch((error: NodeJS.ErrnoException) => {
    // A client that disconnects is no error.
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE')
      logger.warn({ err: error, path: request.path, requestId: requestIdOf(res) }, 'A stream was reset.');
  });
  return h.abandon;
}
