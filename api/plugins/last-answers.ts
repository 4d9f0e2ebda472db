// Whether a request can still be answered: nothing follows the last answer of a connection, though Node reads on while that ends.

import type { Plugin, Server } from '@hapi/hapi';
import { aroundRequests, requestEvents } from './around-requests.ts';

/**
 * Leaves requests unanswered that came after the last answer of their connection. Of an answer that cannot be sent Node
 * says too soon that it has ended, finds that others were to end before it, and ends the process.
 */
export const lastAnswers: Plugin<void> = {
  name: 'last-answers',
  register({ listener }: Server) {
    aroundRequests(listener, [...requestEvents, 'checkExpectation'], (request, response, goOn) => {
      if (request.socket.writable) goOn(request, response);
    });
  },
};
