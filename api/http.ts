// The data listener as Node sees it: request ids, a record of each completed request, connection limits, and shutdown.
// All time limits are options of Node and hapi.

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

/** A response that does not start within this time, in ms, becomes a 503 (hapi's `timeout.server`). */
export const respondWithinMs = 2_000;

/** A connection that is silent for this long, in ms, is closed. It is longer than the longest wait for a publication. */
const defaultStallMs = 90_000;

/** A connection with more requests in progress than this is closed. */
const maxPipelined = 10;

/** Requests are refused while the event loop lags by more than this, in ms. */
const defaultLateMs = 1_000;

/** A completed request. Read its values at once: they are not kept. */
export interface CompletedRequest {
  readonly requestId: string;
  /** `null` if the request could not be parsed. */
  readonly method: string | null;
  /** Path and query as sent; `null` if the request could not be parsed. */
  readonly target: string | null;
  /** The path of the route, such as `/products/{id}`; `null` if no route matched. */
  readonly route: string | null;
  /** `null` if the client disconnected before the response. */
  readonly status: number | null;
  /** Time from the head of the request to the start of the response, without the wait for a publication, in ms; `null` without a response. */
  readonly beganMs: number | null;
  /** Time from the head of the request to the end of the response, in ms. */
  readonly ms: number;
  /** Time spent waiting for a publication, in ms; `null` if the request did not wait. */
  readonly waitedMs: number | null;
  /** Size of the body as sent, in bytes. */
  readonly bytes: number;
  /** Whether the response was sent completely. */
  readonly isWhole: boolean;
  /** The client that the key was issued to; `null` without a valid key. */
  readonly client: string | null;
  readonly address: string | null;
}

/** A request id that a client may send: 1 to 128 visible ASCII characters. */
const taken = /^[\x21-\x7e]{1,128}$/;

/** The prefix of generated ids, different for each process. */
const begin = randomBytes(9).toString('base64url');

let given = 0;

/** Returns the id of a request: the client's, or a short generated id. */
export function idOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const sent = headers['x-request-id'];
  return typeof sent === 'string' && taken.test(sent) ? sent : `${begin}-${(++given).toString(36)}`;
}

/** Header fields of every response: no content sniffing, no referrer. */
export const safeFields = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' } as const;

/** For clients that use TLS: use TLS for a year (RFC 6797, section 7.2 forbids the field without TLS). */
const fieldsByTls = { ...safeFields, 'strict-transport-security': 'max-age=31536000' };

const safePairs = Object.entries(safeFields).flat();
const pairsByTls = Object.entries(fieldsByTls).flat();

/** The part of a routed request that metrics and the log need. */
type Routed = Pick<Request, 'route' | 'auth'>;

/** A response that carries the id of its request and records how the request ended. */
export class TracedResponse extends ServerResponse implements CompletedRequest {
  readonly requestId: string;
  /** When the head of the request arrived, in ms of the process. */
  readonly arrivedAt: number;
  /** When the response began; `0` until then. */
  begunAt: number;
  bytes: number;
  waitedMs: number | null;
  /** The request of hapi, once it is routed. */
  routed: Routed | undefined;

  constructor(request: IncomingMessage, options: ServerOptions) {
    // @ts-expect-error Node passes the options of the server; its types do not show it.
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

  /** Ignores a reason phrase: the standard phrases are sent. */
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

  // biome-ignore lint/suspicious/noExplicitAny: the method has many overloads and passes all of them on.
  override write(chunk: any, encoding?: any, callback?: any): boolean {
    if (this.req.method !== 'HEAD') this.bytes += lengthOf(chunk);
    return super.write(chunk, encoding, callback);
  }

  // biome-ignore lint/suspicious/noExplicitAny: the method has many overloads and passes all of them on.
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
 * Makes the response class of a listener.
 * @param onResponse called for each request when its response has ended
 * @param allowed origins whose pages may read responses; none by default
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
  class ReportedResponse extends TracedResponse {
    constructor(request: IncomingMessage, options: ServerOptions) {
      super(request, options);
      this.on('close', report);
      const connection = connections.get(request.socket);
      if (!connection) return;
      connection.inProgress += 1;
      connection.last = this;
    }
  }
  const made = allowed === undefined ? ReportedResponse : readableFrom(ReportedResponse, allowed);
  return made as unknown as typeof ServerResponse; // The type of ServerResponse is generic over requests.
}

/** Adds the fields of CORS. It is a separate class, so that services without CORS pay nothing. */
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

/** Stores the route of a request with its response. An extension point of hapi would cost a tenth of the request. */
export function noteRoute(request: Request): void {
  const { res } = request.raw;
  if (res instanceof TracedResponse) res.routed = request;
}

/** Returns the id of the request of a response; `''` if the response has none. */
export function requestIdOf(response: ServerResponse): string {
  return response instanceof TracedResponse ? response.requestId : '';
}

/** A connection: its requests in progress, and the response to the latest request. */
interface Connection {
  inProgress: number;
  last: ServerResponse | undefined;
}

const connections = new WeakMap<Socket, Connection>();

/** Returns the last response in progress on a connection, or `undefined` if all were sent. */
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

/** The events by which Node passes on a request: the usual one, and one for `Expect: 100-continue`. */
const requestEvents = ['request', 'checkContinue'];

/** Runs a step for each request before hapi. A step that returns `false` must have sent a response. */
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
    // After a connection's last response Node keeps reading, and another request would crash the process.
    const { socket } = request;
    if (!socket.writable) return false;
    if ((connections.get(socket)?.inProgress ?? 0) > maxPipelined) {
      socket.destroy();
      return false;
    }
    // Node does not read pipelined requests after an upgrade request, so the connection must close.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    if (server.load.eventLoopDelay <= lateMs || isAlwaysTaken(request)) return true;
    const { status, message, retryAfter } = overloaded;
    sendError(response, status, message, { 'retry-after': String(retryAfter) });
    onServiceError(overloaded, requestIdOf(response));
    return false;
  });
}

/** Health checks always pass, and so do waits for a publication: thousands of clients reconnect at once after each one. */
function isAlwaysTaken({ url = '' }: IncomingMessage): boolean {
  return url.startsWith('/health/') || url.includes('wait=');
}

/**
 * Closes connections on shutdown without failing a request (RFC 9112, section 9.6). New connections are refused.
 * Each open connection closes after its next response: closing it between requests could lose one that is on its way.
 * @param quietMs how long silent connections stay open, in ms
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
    // `http.Server.close` would close idle connections at once.
    NetServer.prototype.close.call(listener as NetServer);
    // For `Expect: 100-continue` Node closes the connection itself.
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
