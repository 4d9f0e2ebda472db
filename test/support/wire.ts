// HTTP on the wire: responses with their encoded bytes, and requests that no HTTP client would send.

import { once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A response with its body as received, encoded or not. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface WireRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The parts of an API that a request needs. */
export interface Asked {
  readonly origin: string;
  readonly port: number;
  readonly key: string;
}

/** Sends a request with the API's key and only the given headers. */
export function send(
  { origin, key }: Asked,
  path: string,
  { headers = {}, ...rest }: WireRequest = {},
): Promise<WireAnswer> {
  return sendWithoutKey({ origin }, path, {
    headers: { authorization: `Bearer ${key}`, ...headers },
    ...rest,
  });
}

/** Sends a request with only the given headers. */
export function sendWithoutKey(
  { origin }: Pick<Asked, 'origin'>,
  path: string,
  { method = 'GET', headers = {}, body }: WireRequest = {},
): Promise<WireAnswer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(origin);
    const asked = request({ hostname, port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
        }),
      );
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

/** Sends bytes on a separate connection until the server closes it; returns all responses. */
export async function exchange({ port }: Pick<Asked, 'port'>, bytes: string | Buffer): Promise<WireAnswer[]> {
  return readAnswers(await exchangeBytes(port, bytes));
}

/** Waits at most ten seconds until a server listens on a loopback port. */
export async function awaitListener(port: number): Promise<void> {
  for (const deadline = Date.now() + 10_000; ; await sleep(50)) {
    const socket = connect(port, '127.0.0.1');
    try {
      return void (await once(socket, 'connect'));
    } catch (error) {
      if (Date.now() > deadline) throw error;
    } finally {
      socket.destroy();
    }
  }
}

function exchangeBytes(port: number, bytes: string | Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket: Socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('end', () => resolve(Buffer.concat(chunks)));
    socket.on('error', reject);
  });
}

function readAnswers(bytes: Buffer): WireAnswer[] {
  const responses: WireAnswer[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n');
    const [statusLine = '', ...lines] = rest.subarray(0, end).toString('latin1').split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
    if (end === -1 || Number.isNaN(status)) throw new Error(`Not an HTTP answer: ${rest.toString('latin1')}`);
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 2),
      ]),
    );
    const { body, length } = readBody(rest.subarray(end + 4), headers);
    responses.push({ status, headers, body });
    rest = rest.subarray(end + 4 + length);
  }
  return responses;
}

function readBody(bytes: Buffer, headers: IncomingHttpHeaders): { body: Buffer; length: number } {
  if (headers['transfer-encoding'] !== 'chunked') {
    const length = Number(headers['content-length'] ?? 0);
    return { body: bytes.subarray(0, length), length };
  }
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const size = Number.parseInt(bytes.subarray(at, lineEnd).toString('latin1'), 16);
    if (size === 0) return { body: Buffer.concat(parts), length: lineEnd + 4 };
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}
