// Which route a request came to, and with whose key: noted beside its response, which tells it as it ends.

import type { Plugin, Server } from '@hapi/hapi';
import { TracedResponse } from '../answers/traced-response.ts';

export const tracedRequests: Plugin<void> = {
  name: 'traced-requests',
  register(server: Server) {
    // Before anything is asked of the request, so that those without a valid key have their route as well.
    server.ext('onPreAuth', (request, h) => {
      const { res } = request.raw;
      if (res instanceof TracedResponse) res.routed = request;
      return h.continue;
    });
  },
};
