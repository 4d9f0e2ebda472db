// Whether a request can still be answered: nothing follows the last answer of a connection, though Node reads on while that ends.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Plugin, Server } from '@hapi/hapi';

/**
 * Leaves requests unanswered that came after the last answer of their connection. Of an answer that cannot be sent Node
 * says too soon that it has ended, finds that others were to end before it, and ends the process.
 */
export const lastAnswers: Plugin<void> = {
  name: 'last-answers',
  register({ listener }: Server) {
    for (const event of ['request', 'checkContinue', 'checkExpectation']) {
      const serve = listener.listeners(event) as RequestListener[];
      if (serve.length === 0) continue;
      listener.removeAllListeners(event);
      listener.on(event, (request: IncomingMessage, response: ServerResponse) => {
        if (!request.socket.writable) return;
        for (const listen of serve) listen(request, response);
      });
    }
  },
};
