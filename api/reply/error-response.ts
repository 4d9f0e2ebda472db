// An error as a response that is written past hapi.

import type { ServerResponse } from 'node:http';
import { errorEnvelope } from './envelope.ts';

/** Answers with an error in our shape. */
export function sendError(
  response: ServerResponse,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = errorEnvelope(status, message);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}
