// Every error of a request in the one shape of the API: errors of handlers, of hapi and of reads.

import { STATUS_CODES } from 'node:http';
import Boom from '@hapi/boom';
import type { Plugin, Request, ResponseToolkit, Server } from '@hapi/hapi';
import type { Logger } from 'pino';
import { fault, late, type ServiceError, serviceErrorOf } from './errors.ts';
import { type CompletedRequest, noteRoute, requestIdOf } from './http.ts';
import { respondToProtocolErrors } from './protocol-errors.ts';
import { quoted } from './query.ts';
import { VersionGoneError } from './read/versions.ts';
import { errorEnvelope, jsonResponse } from './reply/envelope.ts';

/** The options of the plugin. */
export interface ErrorOptions {
  readonly logger: Logger;
  /** Called for each response to bytes that are not a valid HTTP request. */
  readonly onResponse: (request: CompletedRequest) => void;
  /** Called for each 500 and 503, with its cause. */
  readonly onServiceError: (serviceError: ServiceError, requestId: string) => void;
  /** Called for each 401. */
  readonly onUnauthorized: () => void;
}

export const errors: Plugin<ErrorOptions> = {
  name: 'errors',
  register(server: Server, options: ErrorOptions) {
    server.ext('onPreResponse', (request, h) => shapeError(request, h, options));
    respondToProtocolErrors(server, options.onResponse);
  },
};

function shapeError(
  request: Request,
  h: ResponseToolkit,
  { logger, onServiceError, onUnauthorized }: ErrorOptions,
) {
  const { raw } = request;
  noteRoute(request); // Routes without a key have no other place for this.
  // The 503 for a timeout has been sent; the late result is dropped.
  if (raw.res.headersSent) return h.abandon;
  if (!Boom.isBoom(request.response)) return h.continue;
  const { response } = request;
  const found = isTimeout(response) ? late : serviceErrorOf(response);
  const error = found ? boomOf(found) : clientError(response);
  const { statusCode, headers } = error.output;
  const isFault = !found && statusCode === 500;
  const requestId = requestIdOf(raw.res);
  if (isFault) logger.error({ err: response, path: request.path, requestId }, 'A request failed.');
  if (statusCode === 401) onUnauthorized();
  const serviceError = isFault ? fault : found;
  if (serviceError) onServiceError(serviceError, requestId);
  const message = serviceError?.message ?? messageOf(error, request);
  const shaped = jsonResponse(h, errorEnvelope(statusCode, message)).code(statusCode);
  for (const [name, value] of Object.entries(headers)) shaped.header(name, String(value));
  return shaped;
}

/** Whether hapi gave up on a request because its response did not begin in time. */
function isTimeout(error: Boom.Boom): boolean {
  return error.output.statusCode === 503 && error.message === 'Service Unavailable';
}

/** Returns the response to an error of the client. */
function clientError(error: Boom.Boom): Boom.Boom {
  return error instanceof VersionGoneError ? Boom.resourceGone(error.message) : error;
}

function boomOf({ status, message, retryAfter }: ServiceError): Boom.Boom {
  const error = new Boom.Boom(message, { statusCode: status });
  if (retryAfter !== null) error.output.headers['Retry-After'] = retryAfter;
  return error;
}

function messageOf(error: Boom.Boom, request: Request): string {
  const { statusCode } = error.output;
  if (statusCode === 404 && error.message === 'Not Found') return `Nothing found at ${quoted(request.path)}.`;
  if (error.message === STATUS_CODES[statusCode])
    return `The request to ${quoted(request.path)} is not valid.`;
  return /[.!?]$/.test(error.message) ? error.message : `${error.message}.`;
}
