// A receiver of a webhook: a real HTTP server that keeps all requests, whatever it responds.

import { createHmac } from 'node:crypto';
import { text } from 'node:stream/consumers';
import type { Notice } from '../../importer/webhook.ts';
import { type Responder, upstreamServers } from './upstream-server.ts';

/** A request as it arrived. */
export interface Received {
  readonly method: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  readonly notice: Notice;
}

export interface Receiver {
  readonly url: URL;
  readonly received: readonly Received[];
}

/** Declares receivers for a test file; they close after each of its tests. */
export function receivers(): (respond?: Responder) => Promise<Receiver> {
  const start = upstreamServers();
  return async (respond = (response) => response.end()) => {
    const received: Received[] = [];
    const server = await start((response, request, nth) => {
      void text(request).then((body) => {
        const { method, headers } = request;
        received.push({ method, headers, body, notice: JSON.parse(body) as Notice });
        respond(response, request, nth);
      });
    });
    return { url: server.url('/hook/of-a-path-that-is-secret'), received };
  };
}

/** Computes the signature by which a receiver recognizes notices of a sender with the secret. */
export function expectedSignature(body: string, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}
