// CORS: preflights, and the fields that let pages of other origins read a response.

import type { Plugin, Server } from '@hapi/hapi';

/** What a page may send; `*` would not stand for `Authorization`. */
const permitted = {
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': 'Authorization, If-None-Match, If-Modified-Since, X-Request-Id',
  // For two hours: no browser that is common remembers it for longer than a day, and Chromium not for longer than this.
  'access-control-max-age': '7200',
};

/**
 * Answers preflights, on every path: so a page gets to read the error of a wrong one. They come without a key. Who may read
 * the answers is said by each of them, see cross-origin.ts.
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

/** Origins of pages; `*`: those of all. */
export type AllowedOrigins = '*' | readonly string[];

/** What a page may read besides the fields that every page may. */
const exposed = [
  ...['Medref-Version', 'Medref-Digest', 'ETag', 'Last-Modified', 'Content-Length'],
  ...['Retry-After', 'RateLimit', 'RateLimit-Policy', 'WWW-Authenticate', 'X-Request-Id'],
].join(', ');

/** The fields by which a page of this origin may read an answer, names and values by turns. */
export function crossOriginFields(allowed: AllowedOrigins, origin: string | undefined): string[] {
  if (allowed === '*') return readableBy('*');
  const isAllowed = origin !== undefined && allowed.includes(origin);
  // Also where the answer is for nobody: a cache must not give it to others.
  return [...(isAllowed ? readableBy(origin) : []), 'vary', 'Origin'];
}

function readableBy(origin: string): string[] {
  return ['access-control-allow-origin', origin, 'access-control-expose-headers', exposed];
}
