// The data listener as Node sees it: responses with a request id, what becomes of each request, limits of connections, and
// how it stops. All time limits are Node's and hapi's own.

import { randomBytes } from 'node:crypto';
import {
  createServer as createListener,
  type Server as HttpServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type RequestListener,
  type ServerOptions,
  ServerResponse,
} from 'node:http';
import { type BlockList, Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request, Server } from '@hapi/hapi';
import type { ApiKey } from '../shared/store/api-keys.ts';
import { type AllowedOrigins, crossOriginFields } from './cors.ts';
import { overloaded, type ServiceError, sendError } from './errors.ts';
import { cameByTls, clientAddressOf, forwardedRequests } from './proxy.ts';

/** A response begins within this time, in ms, or is 503 (hapi's `timeout.server`). */
export const answerWithinMs = 2_000;

/** A connection on which nothing moves for this long, in ms, is cut: longer than a client may wait for a publication. */
const defaultStallMs = 90_000;

/** A connection with more requests in progress than this is closed. */
const maxPipelined = 10;

/** While the event loop is later than this, in ms, requests are refused. */
const defaultLateMs = 1_000;

/** What is known of a request when its answer has ended; to be read at once. */
export interface CompletedRequest {
  readonly requestId: string;
  /** `null` where the request could not be parsed. */
  readonly method: string | null;
  /** Path and query as they were sent; `null` where the request could not be parsed. */
  readonly target: string | null;
  /** The path of the route, such as `/products/{id}`; `null` where it got to none. */
  readonly route: string | null;
  /** `null` where the client had gone before there was an answer. */
  readonly status: number | null;
  /** From the arrival of its head to the beginning of its answer, but for what it waited, in ms; `null` where there was none. */
  readonly beganMs: number | null;
  /** From the arrival of its head until the answer was handed over, or cut off, in ms. */
  readonly ms: number;
  /** For how long of that it waited for a publication, in ms; `null` if it did not. */
  readonly waitedMs: number | null;
  /** Of the body of the answer, encoded, in bytes. */
  readonly bytes: number;
  /** Whether the whole answer was handed over. */
  readonly isWhole: boolean;
  /** Whom its key was issued to; `null` where it had no valid one, or needed none. */
  readonly client: string | null;
  readonly address: string | null;
}

/** What a client may send as the id of its request: 1 to 128 visible ASCII characters. */
const taken = /^[\x21-\x7e]{1,128}$/;

/** What ids of this process begin with, so that no other process gives the same. */
const begin = randomBytes(9).toString('base64url');

let given = 0;

/** The id of a request: the client's, or one of ours, which is short since each answer carries it. */
export function idOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const sent = headers['x-request-id'];
  return typeof sent === 'string' && taken.test(sent) ? sent : `${begin}-${(++given).toString(36)}`;
}

/** What every answer has: it is what its type says, and its address is told to nobody. */
export const safeFields = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' } as const;

/** A client that came by TLS comes by TLS for a year (RFC 6797, section 7.2: nobody else is told so). */
const fieldsByTls = { ...safeFields, 'strict-transport-security': 'max-age=31536000' };

const safePairs = Object.entries(safeFields).flat();
const pairsByTls = Object.entries(fieldsByTls).flat();

/** What the metrics and the log need of a request that hapi has routed. */
type Routed = Pick<Request, 'route' | 'auth'>;

/** A response that carries its request's id, whoever writes it, and knows what became of its request. */
export class TracedResponse extends ServerResponse implements CompletedRequest {
  readonly requestId: string;
  /** When the head of the request had arrived, in ms of the process. */
  readonly arrivedAt: number;
  /** When the response began; `0` until then. */
  begunAt: number;
  bytes: number;
  waitedMs: number | null;
  /** The request as hapi knows it, once it is routed. */
  routed: Routed | undefined;

  constructor(request: IncomingMessage, options: ServerOptions) {
    // @ts-expect-error Node passes the options of the server, which its types do not tell.
    super(request, options);
    this.requestId = idOf(request);
    this.arrivedAt = performance.now();
    this.begunAt = 0;
    this.bytes = 0;
    this.waitedMs = null;
    this.routed = undefined;
  }

  get method(): string | null {
    return this.req.method ?? null;
  }
  get target(): string | null {
    return this.req.url ?? null;
  }
  get route(): string | null {
    return this.routed?.route.path ?? null;
  }
  get status(): number | null {
    return this.begunAt === 0 ? null : this.statusCode;
  }
  get beganMs(): number | null {
    return this.begunAt === 0 ? null : this.begunAt - this.arrivedAt - (this.waitedMs ?? 0);
  }
  get ms(): number {
    return performance.now() - this.arrivedAt;
  }
  get isWhole(): boolean {
    return this.writableFinished;
  }
  get client(): string | null {
    const { key } = (this.routed?.auth.credentials?.app ?? {}) as { readonly key?: ApiKey };
    return key?.client ?? null;
  }
  get address(): string | null {
    return clientAddressOf(this.req) || null;
  }

  /** Takes no reason phrase: the usual ones are sent. */
  override writeHead(status: number, headers?: OutgoingHttpHeaders | OutgoingHttpHeader[] | string): this {
    this.begunAt = performance.now();
    const isByTls = cameByTls(this.req);
    if (Array.isArray(headers)) {
      const safe = isByTls ? pairsByTls : safePairs;
      return super.writeHead(status, [...headers, 'x-request-id', this.requestId, ...safe]);
    }
    this.setHeader('x-request-id', this.requestId);
    const safe = Object.entries(isByTls ? fieldsByTls : safeFields);
    for (const [name, value] of safe) this.setHeader(name, value);
    return typeof headers === 'object' ? super.writeHead(status, headers) : super.writeHead(status);
  }

  // biome-ignore lint/suspicious/noExplicitAny: its overloads are many, and all are handed on.
  override write(chunk: any, encoding?: any, callback?: any): boolean {
    if (this.req.method !== 'HEAD') this.bytes += lengthOf(chunk);
    return super.write(chunk, encoding, callback);
  }

  // biome-ignore lint/suspicious/noExplicitAny: its overloads are many, and all are handed on.
  override end(chunk?: any, encoding?: any, callback?: any): this {
    if (this.req.method !== 'HEAD') this.bytes += lengthOf(chunk);
    return super.end(chunk, encoding, callback);
  }
}

function lengthOf(chunk: unknown): number {
  if (chunk instanceof Uint8Array) return chunk.length;
  return typeof chunk === 'string' ? Buffer.byteLength(chunk) : 0;
}

/**
 * Makes the responses of a listener.
 * @param onResponse told of each request as its answer ends
 * @param allowed the pages of browsers that may read them; none unless it is given
 */
export function tracedResponses(
  onResponse: (it: CompletedRequest) => void,
  allowed?: AllowedOrigins,
): typeof ServerResponse {
  function report(this: TracedResponse): void {
    const connection = connections.get(this.req.socket);
    if (connection) connection.inProgress -= 1;
    onResponse(this);
  }
  class ToldResponse extends TracedResponse {
    constructor(request: IncomingMessage, options: ServerOptions) {
      super(request, options);
      this.on('close', report);
      const connection = connections.get(request.socket);
      if (!connection) return;
      connection.inProgress += 1;
      connection.last = this;
    }
  }
  const made = allowed === undefined ? ToldResponse : readableFrom(ToldResponse, allowed);
  return made as unknown as typeof ServerResponse; // Its type knows requests of any type.
}

/** The same responses, which pages of other origins may read. A class of its own: where there are none, this costs nothing. */
function readableFrom(Response: typeof TracedResponse, allowed: AllowedOrigins): typeof TracedResponse {
  return class extends Response {
    override writeHead(status: number, headers?: OutgoingHttpHeaders | OutgoingHttpHeader[] | string): this {
      const fields = crossOriginFields(allowed, this.req.headers.origin);
      if (Array.isArray(headers)) return super.writeHead(status, [...headers, ...fields]);
      for (let n = 0; n < fields.length; n += 2)
        this.appendHeader(fields[n] as string, fields[n + 1] as string);
      return super.writeHead(status, headers);
    }
  };
}

/** Notes which route a request came to, beside its response. Another extension point of hapi would cost a tenth of a request. */
export function noteRoute(request: Request): void {
  const { res } = request.raw;
  if (res instanceof TracedResponse) res.routed = request;
}

/** The id of the request that a response is to; `''` where nobody traces it. */
export function requestIdOf(response: ServerResponse): string {
  return response instanceof TracedResponse ? response.requestId : '';
}

/** A connection: how many of its requests are in progress, and the response to the request that came last. */
interface Connection {
  inProgress: number;
  last: ServerResponse | undefined;
}

const connections = new WeakMap<Socket, Connection>();

/** Returns the last response that a connection will give to the requests so far, or `undefined` if it was given. */
export function lastInProgress(socket: Socket): ServerResponse | undefined {
  const last = connections.get(socket)?.last;
  return last?.closed ? undefined : last;
}

/** The options of the listener. */
export interface ListenerOptions {
  /** Called for each request when its response has ended. */
  readonly onResponse: (request: CompletedRequest) => void;
  /** Origins of pages that may read responses; none by default. */
  readonly corsOrigins?: AllowedOrigins | undefined;
  /** Proxies whose forwarding headers are trusted; none by default. */
  readonly trustedProxies?: BlockList | undefined;
  readonly stallMs?: number | undefined;
}

/** Makes the listener of the data server. */
export function createDataListener({
  onResponse,
  corsOrigins,
  trustedProxies,
  stallMs = defaultStallMs,
}: ListenerOptions): HttpServer {
  const listener = createListener({
    requireHostHeader: false, // A missing Host header gets an error in our own shape.
    ...(trustedProxies && { IncomingMessage: forwardedRequests(trustedProxies) }),
    ServerResponse: tracedResponses(onResponse, corsOrigins),
  });
  listener.on('connection', (socket: Socket) => connections.set(socket, { inProgress: 0, last: undefined }));
  return listener.setTimeout(stallMs);
}

/** The events by which Node passes on a request: as usual, and if its client asks first whether to send a body. */
const requestEvents = ['request', 'checkContinue'];

/** Has a step decide of each request, before hapi, whether it goes on; one that does not must be answered by the step. */
export function beforeRequests(
  listener: HttpServer,
  goesOn: (request: IncomingMessage, response: ServerResponse) => boolean,
): void {
  for (const event of requestEvents) {
    const serve = listener.listeners(event) as RequestListener[];
    listener.removeAllListeners(event);
    listener.on(event, (request: IncomingMessage, response: ServerResponse) => {
      if (goesOn(request, response)) for (const listen of serve) listen(request, response);
    });
  }
}

/** The options of the limits. */
export interface LimitOptions {
  /** Called for each request that is refused because the process is overloaded. */
  readonly onServiceError: (serviceError: ServiceError, requestId: string) => void;
  readonly lateMs?: number | undefined;
}

/** Refuses requests while the process is overloaded, and closes connections with too many requests in progress. */
export function limitRequests(
  server: Server,
  { onServiceError, lateMs = defaultLateMs }: LimitOptions,
): void {
  beforeRequests(server.listener, (request, response) => {
    // After the last response of a connection Node reads on, and ends the process if another one follows.
    const { socket } = request;
    if (!socket.writable) return false;
    if ((connections.get(socket)?.inProgress ?? 0) > maxPipelined) {
      socket.destroy();
      return false;
    }
    // Node reads nothing more of what came in one piece with such a request, so a client that sent more would wait for ever.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    if (server.load.eventLoopDelay <= lateMs || isAlwaysTaken(request)) return true;
    const { status, message, retryAfter } = overloaded;
    sendError(response, status, message, { 'retry-after': String(retryAfter) });
    onServiceError(overloaded, requestIdOf(response));
    return false;
  });
}

/** Health checks are always answered. Thousands of clients that wait come again at once after each publication. */
function isAlwaysTaken({ url = '' }: IncomingMessage): boolean {
  return url.startsWith('/health/') || url.includes('wait=');
}

/**
 * Lets clients go when the server stops without a request that fails (RFC 9112, section 9.6): no connection is accepted any
 * more, and each open one ends with its next response. A connection that is closed between two requests would lose the
 * request that is on its way.
 * @param quietMs how long connections without a request stay open, in ms
 */
export function drainOnStop(server: Server, quietMs: number): void {
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
    // The method of HTTP would close connections that are idle at the moment.
    NetServer.prototype.close.call(listener as NetServer);
    // If a client asks whether to send a body, Node makes the response the last one by itself.
    listener.prependListener('request', (_request: IncomingMessage, response: ServerResponse) =>
      makeLast(response),
    );
    for (const socket of open) makeLast(lastInProgress(socket));
    const empty = new Promise<void>((resolve) => {
      onEmpty = resolve;
    });
    if (open.size > 0) await Promise.race([empty, sleep(quietMs, null, { ref: false })]);
  });
}

function makeLast(response: ServerResponse | undefined): void {
  if (response?.headersSent === false) response.setHeader('connection', 'close');
}
