// Responses to bytes that are not a valid HTTP request. hapi never sees them. Each response closes its connection.

import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Server } from '@hapi/hapi';
import { sendError } from './errors.ts';
import { beforeRequests, type CompletedRequest, idOf, lastInProgress, safeFields } from './http.ts';
import { isHost } from './proxy.ts';
import { errorEnvelope } from './reply/envelope.ts';

/** RFC 9112, section 3.2: exactly one valid `Host` field; HTTP/1.0 may omit it. */
function hasGoodHost({ rawHeaders, headers, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  if (hosts === 0) return httpVersion === '1.0';
  return hosts === 1 && isHost(String(headers.host));
}

/** Returns whether the path of a target is percent-encoded UTF-8. */
function hasGoodPath(target: string): boolean {
  if (!target.includes('%')) return true;
  try {
    return decodeURI(target.split(/[?#]/, 1)[0] as string) !== null;
  } catch {
    return false;
  }
}

type ProtocolError = readonly [status: number, message: string];

/** Responses by error code of Node's HTTP parser. */
const protocolErrors: Readonly<Record<string, ProtocolError>> = {
  HPE_INVALID_URL: [400, 'The request target is not valid. Percent-encode characters outside ASCII.'],
  HPE_PAUSED_H2_UPGRADE: [505, 'Only HTTP/1.1 and HTTP/1.0 are supported.'],
  HPE_HEADER_OVERFLOW: [431, 'The request line and headers are longer than 16 KiB.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The chunk extensions of the request are too long.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not arrive in time.'],
};

const notAProxy: ProtocolError = [400, 'CONNECT is not supported: this is not a proxy.'];

/** An error of Node's HTTP parser, with the bytes and the position at which it stopped. */
interface ParserError extends NodeJS.ErrnoException {
  readonly bytesParsed?: number;
  readonly rawPacket?: Buffer;
}

/** A request line (RFC 9112, section 3) whose method is a token (RFC 9110, section 5.6.2). */
const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ \S+ HTTP\/1\.[01]$/;

/** Returns the response to a parser error. A valid request with an unknown method gets 501 (RFC 9110, section 9.1). */
function protocolErrorOf({ code = '', rawPacket, bytesParsed = 0 }: ParserError): ProtocolError {
  if (code === 'HPE_INVALID_METHOD' && rawPacket) {
    const from = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf('\n', bytesParsed - 1) + 1;
    const [line = ''] = rawPacket.toString('latin1', from, from + 16_384).split('\r\n', 1);
    if (requestLine.test(line)) return [501, 'Unknown method. Use GET or HEAD.'];
  }
  return protocolErrors[code] ?? [400, 'The request is not valid HTTP.'];
}

/** After the last response, further bytes are read and dropped for this long, in ms: a TCP reset could destroy the response. */
const lingerMs = 1_000;

/** Responds to invalid HTTP before hapi sees it, after the responses in progress on the connection; then closes the connection. */
export function respondToProtocolErrors(
  server: Server,
  onResponse: (request: CompletedRequest) => void,
): void {
  const { listener } = server;
  const ended = new WeakSet<Socket>();
  listener.on('connection', lingerAfterLast);
  beforeRequests(listener, (request, response) => {
    const { httpVersionMajor: major, url = '' } = request;
    if (major !== 1) return refuse(response, 505, 'Only HTTP/1.1 and HTTP/1.0 are supported.');
    if (!hasGoodHost(request)) return refuse(response, 400, 'The request must have one valid Host header.');
    return hasGoodPath(url) || refuse(response, 400, 'The path of the request is not percent-encoded UTF-8.');
  });
  listener.removeAllListeners('clientError');
  listener.on('clientError', (error: ParserError, socket: Socket) => {
    // The parser reports an error for each further chunk. A closed connection gets no response.
    if (ended.has(socket) || socket.destroyed) return;
    ended.add(socket);
    const refusal = protocolErrorOf(error);
    const refused = unseen(refusal, socket);
    onResponse(refused);
    endConnection(socket, rawError(refusal, refused.requestId), lastInProgress(socket));
  });
  listener.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    refuse(response, 417, 'Only "Expect: 100-continue" is supported.');
  });
  listener.on('connect', (request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => undefined); // Node no longer handles errors of this socket. A client that disconnects is no error.
    const refused = unseen(notAProxy, socket, { requestId: idOf(request), method: 'CONNECT' });
    onResponse(refused);
    endConnection(socket.resume(), rawError(notAProxy, refused.requestId), lastInProgress(socket));
  });
}

/** Responds with an error and closes the connection, so a body that follows is ignored. */
function refuse(response: ServerResponse, status: number, message: string): false {
  sendError(response, status, message, { connection: 'close' });
  return false;
}

/** Sends the last bytes of a connection after the response in progress, and cuts the connection if the client does not close it soon. */
function endConnection(socket: Socket, bytes: string, inProgress: ServerResponse | undefined): void {
  if (inProgress) return void inProgress.once('close', () => endConnection(socket, bytes, undefined));
  if (socket.writable) linger(socket, bytes);
}

/**
 * Keeps a connection open after its last response while the client still sends a body (RFC 9112, section 9.6).
 * Node would close it at once.
 */
function lingerAfterLast(socket: Socket): void {
  const destroySoon = socket.destroySoon.bind(socket);
  socket.destroySoon = () =>
    lastInProgress(socket)?.req.complete === false ? linger(socket) : destroySoon();
}

function linger(socket: Socket, lastBytes = ''): void {
  socket.end(lastBytes).resume();
  setTimeout(() => socket.destroy(), lingerMs).unref();
}

/** Describes a request that hapi does not see. Without a readable id it gets a generated one. */
function unseen(
  [status, message]: ProtocolError,
  socket: Socket,
  { requestId = idOf({ headers: {} }), method = null }: Partial<CompletedRequest> = {},
): CompletedRequest {
  return {
    ...{ requestId, method, target: null, route: null, client: null },
    ...{ status, beganMs: null, ms: 0, waitedMs: null, isWhole: true },
    bytes: errorEnvelope(status, message).length,
    address: socket.remoteAddress ?? null,
  };
}

const safeLines = Object.entries(safeFields).map(([name, value]) => `${name}: ${value}`);

function rawError([status, message]: ProtocolError, requestId: string): string {
  const body = errorEnvelope(status, message);
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    ...safeLines,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}
