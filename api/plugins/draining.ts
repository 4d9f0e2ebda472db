// In: a server that is asked to stop. Out: no connection is taken any more, and each that is open ends with the answer to
// the next request on it. A connection that is closed between two requests would lose the one that is on its way.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Plugin, Server } from '@hapi/hapi';
import { lastUnderWay } from './connection-limits.ts';

/** What the plugin is given. */
export interface DrainingOptions {
  /** For how long connections on which nothing comes stay open, in ms. */
  readonly quietMs: number;
}

/** Lets clients go without a request that fails (RFC 9112, section 9.6). */
export const draining: Plugin<DrainingOptions> = {
  name: 'draining',
  register(server: Server, { quietMs }: DrainingOptions) {
    const { listener } = server;
    const open = new Set<Socket>();
    let onEmpty: () => void = () => undefined;
    listener.on('connection', (socket: Socket) => {
      open.add(socket);
      socket.once('close', () => {
        open.delete(socket);
        if (open.size === 0) onEmpty();
      });
    });
    server.ext('onPreStop', async () => {
      if (quietMs === 0) return;
      // That of HTTP would end those that are idle for the moment.
      NetServer.prototype.close.call(listener as NetServer);
      // Where a client asks whether to send a body, Node makes the answer the last one: none is read.
      listener.prependListener('request', (_request: IncomingMessage, response: ServerResponse) =>
        makeLast(response),
      );
      for (const socket of open) makeLast(lastUnderWay(socket));
      const empty = new Promise<void>((resolve) => {
        onEmpty = resolve;
      });
      if (open.size > 0) await Promise.race([empty, sleep(quietMs, null, { ref: false })]);
    });
  },
};

/** Has an answer say that its connection ends with it. */
function makeLast(response: ServerResponse | undefined): void {
  if (response?.headersSent === false) response.setHeader('connection', 'close');
}
