// A bound on requests under way in this process. Beyond it a request is answered with 503 at once, so that those that were
// taken stay fast.

import type { IncomingMessage } from 'node:http';
import type { Plugin, Server } from '@hapi/hapi';
import { sendError } from '../answers/error-response.ts';
import { RequestsUnderWay } from '../answers/requests-under-way.ts';
import { requestIdOf, TracedResponse } from '../answers/traced-response.ts';
import { overloaded, type Trouble } from '../reads/trouble.ts';
import { aroundRequests, requestEvents } from './around-requests.ts';

/** What the plugin is given. */
export interface OverloadOptions {
  readonly maxRequests: number;
  /** How late the event loop may be before fewer are taken, in ms. */
  readonly lateMs?: number | undefined;
  /** Told of each request that was refused. */
  readonly onTrouble: (trouble: Trouble, requestId: string) => void;
}

/** Takes as many requests at once as are answered quickly. */
export const overload: Plugin<OverloadOptions> = {
  name: 'overload',
  register(server: Server, { maxRequests, lateMs, onTrouble }: OverloadOptions) {
    const { listener } = server;
    const underWay = new RequestsUnderWay(maxRequests, { lateMs });
    const { status, message, retryAfter } = overloaded;
    aroundRequests(listener, requestEvents, (request, response, goOn) => {
      if (isBounded(request)) {
        if (underWay.isFull) {
          sendError(response, status, message, { 'retry-after': String(retryAfter) });
          onTrouble(overloaded, requestIdOf(response));
          return;
        }
        if (response instanceof TracedResponse) response.countIn(underWay);
      }
      goOn(request, response);
    });
    underWay.watch();
    listener.once('close', () => underWay.stop());
  },
};

/**
 * Whoever asks how the process is gets an answer. And those that come to wait have a bound of their own: thousands of them are
 * answered after one publication, and take nothing from others meanwhile.
 */
function isBounded({ url = '' }: IncomingMessage): boolean {
  return !url.startsWith('/health/') && !/^[^?]*\/changes\?(?:.*&)?wait=/.test(url);
}
