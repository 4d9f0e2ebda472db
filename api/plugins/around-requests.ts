// In: a listener of HTTP. Out: one more step around all that answers its requests so far.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';

/** The events by which Node hands on a request: as usual, and where its client asks first whether to send a body. */
export const requestEvents = ['request', 'checkContinue'] as const;

/** Has a step decide of each request whether, and when, it goes on to those that listened before. */
export function aroundRequests(
  listener: Server,
  events: readonly string[],
  step: (request: IncomingMessage, response: ServerResponse, goOn: RequestListener) => void,
): void {
  for (const event of events) {
    const serve = listener.listeners(event) as RequestListener[];
    // Where nobody listens Node answers by itself.
    if (serve.length === 0) continue;
    const goOn: RequestListener = (request, response) => {
      for (const listen of serve) listen(request, response);
    };
    listener.removeAllListeners(event);
    listener.on(event, (request: IncomingMessage, response: ServerResponse) => step(request, response, goOn));
  }
}
