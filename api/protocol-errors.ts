// Responses to what is not a valid HTTP request, which hapi never sees. Each one ends its connection.

import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Server } from '@hapi/hapi';
import { sendError } from './errors.ts';
import { beforeRequests, type CompletedRequest, idOf, lastInProgress, safeFields } from './http.ts';
import { isHost } from './proxy.ts';
import { errorEnvelope } from './reply/envelope.ts';

/** RFC 9112, section 3.2: one `Host` field, of the form of a host; HTTP/1.0 may do without. */
function hasGoodHost({ rawHeaders, headers, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  if (hosts === 0) return httpVersion === '1.0';
  return hosts === 1 && isHost(String(headers.host));
}

/** Whether the path of a target is percent-encoded UTF-8. */
function hasGoodPath(target: string): boolean {
  if (!target.includes('%')) return true;
  try {
    return decodeURI(target.split(/[?#]/, 1)[0] as string) !== null;
  } catch {
    return false;
  }
}

type ProtocolError = readonly [status: number, message: string];

/** What a client is told when Node's HTTP parser gives up on its request. */
const protocolErrors: Readonly<Record<string, ProtocolError>> = {
  HPE_INVALID_URL: [400, 'The address of the request is not valid; percent-encode what is not ASCII.'],
  HPE_PAUSED_H2_UPGRADE: [505, 'The service speaks HTTP/1.1 and HTTP/1.0 only.'],
  HPE_HEADER_OVERFLOW: [431, 'The request line and headers are longer than 16 KiB.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The chunk extensions of the request are too long.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not arrive in time.'],
};

const notAProxy: ProtocolError = [400, 'This is not a proxy; CONNECT is not answered.'];

/** What Node's HTTP parser says: where in which bytes it gave up. */
interface ParserError extends NodeJS.ErrnoException {
  readonly bytesParsed?: number;
  readonly rawPacket?: Buffer;
}

/** RFC 9112, section 3, with a method that is a token (RFC 9110, section 5.6.2). */
const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ \S+ HTTP\/1\.[01]$/;

/** A request that is well-formed but for a method that nobody knows is 501 (RFC 9110, section 9.1). */
function protocolErrorOf({ code = '', rawPacket, bytesParsed = 0 }: ParserError): ProtocolError {
  if (code === 'HPE_INVALID_METHOD' && rawPacket) {
    const from = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf('\n', bytesParsed - 1) + 1;
    const [line = ''] = rawPacket.toString('latin1', from, from + 16_384).split('\r\n', 1);
    if (requestLine.test(line)) return [501, 'The method is not known; GET and HEAD are.'];
  }
  return protocolErrors[code] ?? [400, 'The request is not valid HTTP.'];
}

/** How long what a client sends after its last answer is read and dropped, in ms: a reset could overtake that answer. */
const lingerMs = 1_000;

/** Answers what is not valid HTTP before hapi sees it: after the answers under way on its connection, which then ends. */
export function answerProtocolErrors(server: Server, onResponse: (request: CompletedRequest) => void): void {
  const { listener } = server;
  const ended = new WeakSet<Socket>();
  listener.on('connection', lingerAfterLast);
  beforeRequests(listener, (request, response) => {
    const { httpVersionMajor: major, url = '' } = request;
    if (major !== 1) return refuse(response, 505, 'The service speaks HTTP/1.1 and HTTP/1.0 only.');
    if (!hasGoodHost(request)) return refuse(response, 400, 'The request needs one valid Host header.');
    return hasGoodPath(url) || refuse(response, 400, 'The path of the request is not percent-encoded UTF-8.');
  });
  listener.removeAllListeners('clientError');
  listener.on('clientError', (error: ParserError, socket: Socket) => {
    // The parser gives up again on all that still comes; of a connection that is gone, nobody would hear.
    if (ended.has(socket) || socket.destroyed) return;
    ended.add(socket);
    const refusal = protocolErrorOf(error);
    const refused = unseen(refusal, socket);
    onResponse(refused);
    endConnection(socket, rawError(refusal, refused.requestId), lastInProgress(socket));
  });
  listener.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    refuse(response, 417, 'The Expect header is not understood; only 100-continue is.');
  });
  listener.on('connect', (request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => undefined); // Node has let go of the socket; a client that is gone is no fault here.
    const refused = unseen(notAProxy, socket, { requestId: idOf(request), method: 'CONNECT' });
    onResponse(refused);
    endConnection(socket.resume(), rawError(notAProxy, refused.requestId), lastInProgress(socket));
  });
}

/** A body that follows is nobody's concern, so the connection ends. */
function refuse(response: ServerResponse, status: number, message: string): false {
  sendError(response, status, message, { connection: 'close' });
  return false;
}

/** Sends the last bytes of a connection, after the answer under way, and cuts it when the client does not close it soon. */
function endConnection(socket: Socket, bytes: string, underWay: ServerResponse | undefined): void {
  if (underWay) return void underWay.once('close', () => endConnection(socket, bytes, undefined));
  if (socket.writable) linger(socket, bytes);
}

/**
 * Where a client still sends the body of a request whose answer is the last one, its connection does not end with that
 * (RFC 9112, section 9.6). Node would end it.
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

/** What is known of a request that hapi does not get to see; its id is one of ours, where there is none to read. */
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
