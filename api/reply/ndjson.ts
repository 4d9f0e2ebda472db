// A whole collection as newline-delimited JSON: streamed as fast as the client reads, or reset, never cut off in order.

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Request, ResponseToolkit } from '@hapi/hapi';
import type { Logger } from 'pino';
import { requestIdOf } from '../http.ts';
import { prefersToJson } from '../query.ts';
import { onTheFly } from './body.ts';
import { digestFields } from './envelope.ts';
import { type Answer, acceptsGzip, fieldsOf } from './reply.ts';

const mediaType = 'application/x-ndjson';

/** Whether a client would rather have lines than the envelope. */
export function prefersNdjson(request: Request): boolean {
  return prefersToJson(request, mediaType);
}

/**
 * Streams lines.
 * @param lines text that ends at the ends of lines; what it throws resets the connection, and is logged
 */
export function answerLines(
  request: Request,
  h: ResponseToolkit,
  { lines, logger, ...its }: Answer & { readonly lines: AsyncIterable<Buffer>; readonly logger: Logger },
): symbol {
  const { req, res } = request.raw;
  const isGzip = acceptsGzip(req.headers['accept-encoding']);
  const { version, fields: own = [] } = its;
  const fields = [
    ...fieldsOf({ ...its, fields: [...digestFields(version), ...own] }),
    ...['content-type', mediaType],
    // nginx hands on what comes as it comes; no other than nginx heeds it.
    ...['x-accel-buffering', 'no'],
  ];
  if (isGzip) fields.push('content-encoding', 'gzip');
  // It shows that a stream was cut, also if the end of the connection is the end of the body.
  else if (version.linesLength !== undefined) fields.push('content-length', String(version.linesLength));
  res.writeHead(200, fields);
  if (request.method === 'head') {
    res.end();
    return h.abandon;
  }
  res.setMaxListeners(20); // Each part of a pipeline listens to it; Node would warn of more than ten in all.
  const source = Readable.from(lines, { objectMode: false });
  const sent = isGzip ? pipeline(source, createGzip(onTheFly), res) : pipeline(source, res);
  sent.catch((error: NodeJS.ErrnoException) => {
    // A client that has gone is no fault.
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE')
      logger.warn({ err: error, path: request.path, requestId: requestIdOf(res) }, 'A stream was reset.');
  });
  return h.abandon;
}
