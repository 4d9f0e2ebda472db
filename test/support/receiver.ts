// A receiver of a webhook: a real HTTP server that keeps what it is sent, however it answers.

import { createHmac } from 'node:crypto';
import { text } from 'node:stream/consumers';
import type { Notice } from '../../importer/webhook.ts';
import { type Responder, upstreamServers } from './upstream-server.ts';

/** A request as it came. */
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

/** Gives a test file receivers that are closed after each of its tests. */
export function receivers(): (answer?: Responder) => Promise<Receiver> {
  const start = upstreamServers();
  return async (answer = (response) => response.end()) => {
    const received: Received[] = [];
    const server = await start((response, request, nth) => {
      void text(request).then((body) => {
        const { method, headers } = request;
        received.push({ method, headers, body, notice: JSON.parse(body) as Notice });
        answer(response, request, nth);
      });
    });
    return { url: server.url('/hook/of-a-path-that-is-secret'), received };
  };
}

/** What a receiver computes to know whether a notice is from whoever has the secret. */
export function expectedSignature(body: string, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}
