// In: a connection to an upstream. Out: the same, on which a reset is an error wherever it can be told from an end.

import type { Socket } from 'node:net';

/** A connection was reset: what came before is not known to be all. Its code is what undici calls a failed socket. */
export class ConnectionReset extends Error {
  readonly code = 'UND_ERR_SOCKET';
}

/**
 * Makes a reset an error. undici takes ECONNRESET for the end of a body that has neither a length nor chunks (and fails
 * an assertion where such a body is read slowly); libuv tells a reset as an end where bytes came together with it.
 * @param socket connected, and not yet listened to by undici
 */
export function failingOnReset<S extends Socket>(socket: S): S {
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean;
  return Object.assign(socket, {
    emit: (event: string | symbol, ...args: unknown[]) => {
      if (event === 'error' && (args[0] as { code?: string }).code === 'ECONNRESET') {
        return emit('error', new ConnectionReset('reset'));
      }
      // After an end there is still a peer; after a reset there is none.
      if (event === 'end' && socket.remoteAddress === undefined) {
        socket.destroy(new ConnectionReset('reset'));
        return true;
      }
      return emit(event, ...args);
    },
  });
}
