// A browser asks by OPTIONS whether a page may send a request with a key, and gets no further where nobody answers it.

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
