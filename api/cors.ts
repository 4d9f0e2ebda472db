// CORS: preflights, and the fields that let pages of other origins read a response.

import type { Plugin, Server } from '@hapi/hapi';

/** Methods and headers that a page may send. `*` would not cover `Authorization`. */
const permitted = {
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers':
    'Authorization, If-None-Match, If-Modified-Since, Medref-Have, X-Request-Id',
  // Two hours: Chromium keeps a preflight no longer than this.
  'access-control-max-age': '7200',
};

/**
 * Responds to preflights on every path, without a key, so that a page can read the error of a wrong path.
 * `crossOriginFields` decides which pages may read each response.
 */
export const preflights: Plugin<object> = {
  name: 'preflights',
  register(server: Server) {
    server.ext('onRequest', ({ method, headers }, h) => {
      if (method !== 'options' || headers['access-control-request-method'] === undefined) return h.continue;
      const response = h.response().code(204);
      for (const [name, value] of Object.entries(permitted)) response.header(name, value);
      return response.takeover();
    });
  },
};

/** The origins of pages that may read responses; `*` allows all. */
export type AllowedOrigins = '*' | readonly string[];

/** Header fields that a page may read besides the CORS-safelisted ones. */
const exposed = [
  ...['Medref-Version', 'Medref-Digest', 'ETag', 'Last-Modified', 'Content-Length'],
  ...['Retry-After', 'RateLimit', 'RateLimit-Policy', 'WWW-Authenticate', 'X-Request-Id'],
].join(', ');

/** Returns the header fields that let a page of this origin read a response: names and values in turn. */
export function crossOriginFields(allowed: AllowedOrigins, origin: string | undefined): string[] {
  if (allowed === '*') return readableBy('*');
  const isAllowed = origin !== undefined && allowed.includes(origin);
  // Sent to every client: a cache must not reuse a response for another origin.
  return [...(isAllowed ? readableBy(origin) : []), 'vary', 'Origin'];
}

function readableBy(origin: string): string[] {
  return ['access-control-allow-origin', origin, 'access-control-expose-headers', exposed];
}
