// Upstreams for tests: real HTTP servers on free loopback ports, closed after each test, however they misbehave.

import { execFile } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createNetServer, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { onPath } from '../../bench/installed.ts';

/** Answers a request; `nth` counts the server's requests from 1. */
export type Responder = (response: ServerResponse, request: IncomingMessage, nth: number) => void;

export interface UpstreamServer {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  /** Every request so far. */
  readonly requests: readonly IncomingMessage[];
  url(path?: string): URL;
  /** Connections that are open now. */
  openConnections(): Promise<number>;
  /** Stops listening and cuts every connection. */
  close(): Promise<void>;
}

/** Starts a server that answers every request with `answer`. */
export async function startUpstreamServer(answer: Responder): Promise<UpstreamServer> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    response.on('error', () => {});
    answer(response, request, requests.length);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    requests,
    url: (path = '/list.json') => new URL(path, origin),
    openConnections: () =>
      new Promise((resolve, reject) => {
        server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Gives a test file servers that are closed after each of its tests. */
export function upstreamServers(): (answer: Responder) => Promise<UpstreamServer> {
  const open: UpstreamServer[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((server) => server.close()));
  });
  return async (answer) => {
    const server = await startUpstreamServer(answer);
    open.push(server);
    return server;
  };
}

/** Answers 200 with a body that is text, bytes, or a value to write as JSON. */
export function sending(body: unknown, headers: Record<string, string> = {}): Responder {
  const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers });
    response.end(bytes);
  };
}

/** Answers with a status, and a short body as real servers do. */
export function refusing(status: number, headers: Record<string, string> = {}): Responder {
  return (response) => {
    response.writeHead(status, headers);
    response.end(status === 204 || status === 304 ? undefined : `status ${status}`);
  };
}

/** Answers 200, sends the first part of a body, and cuts the connection. */
export function cutting(part: string | Uint8Array, headers: Record<string, string> = {}): Responder {
  return (response) => {
    response.writeHead(200, headers);
    response.write(part, () => response.socket?.destroy());
    if (part.length === 0) response.flushHeaders();
    if (part.length === 0) setTimeout(() => response.socket?.destroy(), 5);
  };
}

/** Why no server can be started that speaks TLS, or `null`. */
export const whyNoTls = onPath('openssl') === undefined ? 'openssl is not installed' : null;

/** A server that speaks both http and https on one port, with a certificate that it has signed itself. */
export interface TwoSchemeServer {
  /** Its certificate, of 127.0.0.1 and localhost, as PEM. */
  readonly certificate: string;
  readonly port: number;
  /** The scheme and the credential of every request so far. */
  readonly requests: readonly (readonly [scheme: 'http' | 'https', authorization: string | undefined])[];
  /** Resets every connection. */
  reset(): void;
  close(): Promise<void>;
}

/** Starts it; `answer` is also told the scheme. Whoever calls this calls `close`. */
export async function startTwoSchemeServer(
  answer: (response: ServerResponse, request: IncomingMessage, scheme: 'http' | 'https') => void,
): Promise<TwoSchemeServer> {
  const { stdout: pem } = await promisify(execFile)(onPath('openssl') as string, [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
    ...['-subj', '/CN=localhost', '-keyout', '-'],
    ...['-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'],
  ]);
  const requests: TwoSchemeServer['requests'][number][] = [];
  const answering = (scheme: 'http' | 'https') => (request: IncomingMessage, response: ServerResponse) => {
    requests.push([scheme, request.headers.authorization]);
    answer(response, request, scheme);
  };
  const plain = createServer(answering('http'));
  const secure = createTlsServer({ key: pem, cert: pem }, answering('https'));
  const sockets = new Set<Socket>();
  const server = createNetServer((socket) => {
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)));
    socket.once('data', (first) => {
      socket.pause().unshift(first);
      // The first byte of TLS is the type of a record, 22 for a handshake (RFC 8446, section 5.1).
      (first[0] === 22 ? secure : plain).emit('connection', socket);
      process.nextTick(() => socket.resume());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    certificate: pem.slice(pem.indexOf('-----BEGIN CERTIFICATE')),
    port: (server.address() as AddressInfo).port,
    requests,
    reset: () => {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** A port that nobody listens on. */
export async function closedPort(): Promise<number> {
  const server = await startUpstreamServer(() => {});
  await server.close();
  return Number(new URL(server.origin).port);
}

/** A server whose queue of connections is full, so that a further one is never accepted. */
export async function startDeafServer(): Promise<{ url: URL; close(): Promise<void> }> {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
     const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port);
       setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20000));
     });`,
    { eval: true },
  );
  const port = await new Promise<number>((resolve) => worker.once('message', resolve));
  await new Promise((resolve) => setTimeout(resolve, 50));
  const crowd: Socket[] = [];
  for (let count = 0; count < 8; count++) crowd.push(connect(port, '127.0.0.1').on('error', () => {}));
  await new Promise((resolve) => setTimeout(resolve, 50));
  return {
    url: new URL(`http://127.0.0.1:${port}/list.json`),
    close: async () => {
      for (const socket of crowd) socket.destroy();
      await worker.terminate();
    },
  };
}
