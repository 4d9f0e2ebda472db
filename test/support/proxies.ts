// Servers between client and server: a relay that damages responses, a proxy that breaks connections, and a company's HTTP proxy.

import { request as ask, createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer as createNetServer, type Socket } from 'node:net';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Responder } from './upstream-server.ts';

/** A response of the API on its way to the client. */
export interface RelayedAnswer {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Responds instead of the API; returns false to leave the response unchanged. */
export type Spoil = (
  response: Parameters<Responder>[0],
  answer: RelayedAnswer,
  request: IncomingMessage,
) => boolean;

/** Responds as the API on a port does, unless `spoil` responds. */
export function relaying(port: () => number, spoil: Spoil = () => false): Responder {
  return (response, request) => {
    const { url: path, method, headers } = request;
    const asked = ask({ port: port(), host: '127.0.0.1', path, method, headers, agent: false }, (answer) => {
      answer.toArray().then((chunks) => {
        const body = Buffer.concat(chunks);
        if (spoil(response, { headers: answer.headers, body }, request)) return;
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        response.end(body);
      });
    });
    asked.on('error', () => response.destroy());
    asked.end();
  };
}

/** Sends half of every complete list, and then cuts the connection. */
export const cutInHalf: Spoil = (response, { headers, body }) => {
  if (headers['content-type'] !== 'application/x-ndjson') return false;
  response.writeHead(200, headers);
  response.write(body.subarray(0, body.length / 2), () => response.socket?.destroy());
  return true;
};

/** Sends half of the lines of every complete list and ends it normally, like a proxy that hides a cut. */
export const endedInHalf: Spoil = (response, { headers, body }) => {
  if (headers['content-type'] !== 'application/x-ndjson') return false;
  const isGzip = headers['content-encoding'] === 'gzip';
  const lines = (isGzip ? gunzipSync(body) : body).toString().split('\n').slice(0, -1);
  const half = `${lines.slice(0, lines.length / 2).join('\n')}\n`;
  response.writeHead(200, headers);
  response.end(isGzip ? gzipSync(half) : half);
  return true;
};

/** Responds to the first request as a service that is unavailable for a moment. */
export function awayAtFirst(): Spoil {
  let requests = 0;
  return (response) => {
    requests += 1;
    if (requests > 1) return false;
    response.writeHead(503, { 'retry-after': '1' }).end();
    return true;
  };
}

/** What happens to a connection. */
export type Fault =
  | { readonly kind: 'none' }
  /** The connection ends after so many bytes from the server; `isReset`: with a reset. */
  | { readonly kind: 'cut'; readonly after: number; readonly isReset: boolean }
  /** The proxy itself responds to the first request. */
  | { readonly kind: 'answer'; readonly status: number; readonly retryAfter: string | null };

export interface FaultyProxy {
  readonly origin: string;
  close(): Promise<void>;
}

/** Starts a faulty proxy; the caller calls `close`. */
export async function startFaultyProxy(port: () => number, nextFault: () => Fault): Promise<FaultyProxy> {
  const sockets = new Set<Socket>();
  const track = (socket: Socket) =>
    sockets.add(socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket)));
  const server = createNetServer((client) => {
    track(client);
    const fault = nextFault();
    if (fault.kind === 'answer') {
      client.once('data', () => client.end(replyOf(fault)));
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

function replyOf({ status, retryAfter }: Fault & { readonly kind: 'answer' }): string {
  // The words of a proxy; other tests use those of medref.
  const body = '<html>One moment please</html>';
  const fields = ['content-type: text/html', `content-length: ${body.length}`, 'connection: close'];
  if (retryAfter !== null) fields.push(`retry-after: ${retryAfter}`);
  return `HTTP/1.1 ${status} Trouble\r\n${fields.join('\r\n')}\r\n\r\n${body}`;
}

/** A proxy, and the requests that it got: `GET http://…` or `CONNECT host:port`. */
export interface HttpProxy {
  readonly url: string;
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** Starts an HTTP proxy; the caller calls `close`. @param credentials `user:password` that clients must send, if any */
export async function startHttpProxy(credentials?: string): Promise<HttpProxy> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const wanted = credentials && `Basic ${Buffer.from(credentials).toString('base64')}`;
  const server = createServer(({ method, url = '', headers }, response) => {
    asked.push(`${method} ${url}`);
    if (wanted && headers['proxy-authorization'] !== wanted) return void response.writeHead(407).end();
    const { 'proxy-authorization': _, ...passed } = headers;
    ask(url, { headers: passed }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    }).end();
  });
  server.on('connection', (socket) => sockets.add(socket));
  server.on('connect', ({ url = '', headers }, client: Socket) => {
    asked.push(`CONNECT ${url}`);
    if (wanted && headers['proxy-authorization'] !== wanted)
      return void client.end('HTTP/1.1 407 Who are you\r\n\r\n');
    const { hostname, port } = new URL(`tunnel://${url}`);
    const target = connect(Number(port), hostname, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      client.pipe(target).pipe(client);
    });
    for (const it of [client, target]) it.on('error', () => target.destroy());
    sockets.add(target);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${credentials ? `${credentials}@` : ''}127.0.0.1:${port}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
