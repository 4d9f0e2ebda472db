// Upstreams for tests: real HTTP servers on free loopback ports with any behaviour, closed after each test.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createNetServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { onPath } from '../../bench/installed.ts';

/** Responds to a request; `nth` counts the server's requests from 1. */
export type Responder = (response: ServerResponse, request: IncomingMessage, nth: number) => void;

export interface UpstreamServer {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  /** Every request so far. */
  readonly requests: readonly IncomingMessage[];
  url(path?: string): URL;
  /** Returns how many connections are open now. */
  openConnections(): Promise<number>;
  /** Stops listening and cuts every connection. */
  close(): Promise<void>;
}

/** Starts a server that responds to every request with `respond`. */
export async function startUpstreamServer(respond: Responder): Promise<UpstreamServer> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    response.on('error', () => {});
    respond(response, request, requests.length);
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

/** Declares servers for a test file; they close after each of its tests. */
export function upstreamServers(): (respond: Responder) => Promise<UpstreamServer> {
  const open: UpstreamServer[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((server) => server.close()));
  });
  return async (respond) => {
    const server = await startUpstreamServer(respond);
    open.push(server);
    return server;
  };
}

/** Responds with 200 and a body that is text, bytes, or a value to write as JSON. */
export function sending(body: unknown, headers: Record<string, string> = {}): Responder {
  const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers });
    response.end(bytes);
  };
}

/** Responds with a status and a short body, as real servers do. */
export function refusing(status: number, headers: Record<string, string> = {}): Responder {
  return (response) => {
    response.writeHead(status, headers);
    response.end(status === 204 || status === 304 ? undefined : `status ${status}`);
  };
}

/** Responds with 200, sends the first part of a body, and cuts the connection. */
export function cutting(part: string | Uint8Array, headers: Record<string, string> = {}): Responder {
  return (response) => {
    response.writeHead(200, headers);
    response.write(part, () => response.socket?.destroy());
    if (part.length === 0) response.flushHeaders();
    if (part.length === 0) setTimeout(() => response.socket?.destroy(), 5);
  };
}

/** The reason why no TLS server can start, or `null`. */
export const whyNoTls = onPath('openssl') === undefined ? 'openssl is not installed' : null;

/** A server for both http and https on one port, with a self-signed certificate. */
export interface TwoSchemeServer {
  /** Its certificate for 127.0.0.1 and localhost, as PEM. */
  readonly certificate: string;
  readonly port: number;
  /** The scheme and the credential of every request so far. */
  readonly requests: readonly (readonly [scheme: 'http' | 'https', authorization: string | undefined])[];
  /** Resets every connection. */
  reset(): void;
  close(): Promise<void>;
}

/** Starts a server for both schemes; `respond` also gets the scheme. The caller calls `close`. */
export async function startTwoSchemeServer(
  respond: (response: ServerResponse, request: IncomingMessage, scheme: 'http' | 'https') => void,
  { isExpired = false } = {},
): Promise<TwoSchemeServer> {
  const openssl = async (...args: string[]) =>
    (await promisify(execFile)(onPath('openssl') as string, args)).stdout;
  let pem = await openssl(
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
    ...['-subj', '/CN=localhost', '-keyout', '-'],
    ...['-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'],
  );
  if (isExpired) {
    const folder = await mkdtemp(join(tmpdir(), 'medref-test-certificate-'));
    const file = join(folder, 'server.pem');
    await writeFile(file, pem);
    pem += await openssl('x509', '-in', file, '-signkey', file, '-days', '-1');
    pem = pem.replace(/-----BEGIN CERTIFICATE[\s\S]*?-----END CERTIFICATE-----\n/, '');
    await rm(folder, { recursive: true });
  }
  const requests: TwoSchemeServer['requests'][number][] = [];
  const responding = (scheme: 'http' | 'https') => (request: IncomingMessage, response: ServerResponse) => {
    requests.push([scheme, request.headers.authorization]);
    respond(response, request, scheme);
  };
  const plain = createServer(responding('http'));
  const secure = createTlsServer({ key: pem, cert: pem }, responding('https'));
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

/** Returns a port without a listener. */
export async function closedPort(): Promise<number> {
  const server = await startUpstreamServer(() => {});
  await server.close();
  return Number(new URL(server.origin).port);
}

/** Starts a server whose connection queue is full, so that it never accepts a new connection. */
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
