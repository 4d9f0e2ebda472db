// In: a server's port. Out: a proxy before it that passes bytes on, and inflicts a fault on each connection that is chosen for it.

import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What becomes of a connection. */
export type Fault =
  | { readonly kind: 'none' }
  /** It is cut when so many bytes have come from the server; `isReset`: by a reset. */
  | { readonly kind: 'cut'; readonly after: number; readonly isReset: boolean }
  /** Its first request is answered so by the proxy itself. */
  | { readonly kind: 'answer'; readonly status: number; readonly retryAfter: string | null };

export interface FaultyProxy {
  readonly origin: string;
  close(): Promise<void>;
}

/** Starts one; whoever calls this calls `close`. */
export async function startFaultyProxy(port: () => number, nextFault: () => Fault): Promise<FaultyProxy> {
  const sockets = new Set<Socket>();
  const track = (socket: Socket) =>
    sockets.add(socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket)));
  const server = createServer((client) => {
    track(client);
    const fault = nextFault();
    if (fault.kind === 'answer') {
      client.once('data', () => client.end(answerOf(fault)));
      return;
    }
    const upstream = connect(port(), '127.0.0.1');
    track(upstream);
    client.pipe(upstream);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    let left = fault.kind === 'cut' ? fault.after : Number.POSITIVE_INFINITY;
    upstream.on('data', (bytes: Buffer) => {
      const passed = bytes.subarray(0, left);
      left -= bytes.length;
      if (left > 0) client.write(passed);
      else if (fault.kind === 'cut' && fault.isReset) client.write(passed, () => client.resetAndDestroy());
      else client.end(passed);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function answerOf({ status, retryAfter }: Fault & { readonly kind: 'answer' }): string {
  // As a proxy says it; the words of medref are tried elsewhere.
  const body = '<html>One moment please</html>';
  const fields = ['content-type: text/html', `content-length: ${body.length}`, 'connection: close'];
  if (retryAfter !== null) fields.push(`retry-after: ${retryAfter}`);
  return `HTTP/1.1 ${status} Trouble\r\n${fields.join('\r\n')}\r\n\r\n${body}`;
}
