// Requests come by way of those that wait; and who waits is answered when the process stops.

import type { Plugin, Server } from '@hapi/hapi';
import type { HeldRequests } from '../answers/held-requests.ts';
import { aroundRequests } from './around-requests.ts';

/** Lets those that have waited go before those that come to wait. */
export const waitingRequests: Plugin<{ readonly held: HeldRequests }> = {
  name: 'waiting-requests',
  register(server: Server, { held }: { readonly held: HeldRequests }) {
    const { listener } = server;
    aroundRequests(listener, ['request'], (req, res, serve) => held.take(serve, req, res));
    // As things are now, before connections are waited for.
    server.ext('onPreStop', () => held.waits.stop());
  },
};
