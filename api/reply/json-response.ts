// A JSON body as a response. JSON is UTF-8 (RFC 8259, section 8.1), so its media type carries no charset.

import type { ResponseObject, ResponseToolkit } from '@hapi/hapi';

/** A response of JSON text. */
export function jsonResponse(h: ResponseToolkit, body: Buffer | string): ResponseObject {
  const response = h.response(body).type('application/json');
  response.charset('');
  return response;
}
