// The response to each request that could be parsed: it carries the request's id, and tells what came of it as it ends.

import { randomBytes } from 'node:crypto';
import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type ServerOptions,
  ServerResponse,
} from 'node:http';
import type { Request } from '@hapi/hapi';
import type { ApiKey } from '../../shared/store/api-keys.ts';
import { cameByTls, clientAddressOf } from '../requests/client-address.ts';
import { type AllowedOrigins, crossOriginFields } from './cross-origin.ts';
import type { RequestsUnderWay } from './requests-under-way.ts';

/** What is known of a request when its answer has ended; to be read at once. */
export interface AnsweredRequest {
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
  /** For how long of that it waited, as it had asked for or since it asked too much, in ms; `null` where it did not. */
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

/** What is told of a request that hapi knows. */
interface Routed {
  readonly route: { readonly path: string };
  readonly auth: { readonly credentials: Request['auth']['credentials'] };
}

function routedOf(routed: Routed | undefined): Routed | undefined {
  return routed && { route: { path: routed.route.path }, auth: { credentials: routed.auth.credentials } };
}

/**
 * A response that carries its request's id, whoever writes it. It is made for each request: its fields are plain ones, and
 * its methods take what is called by, since private fields and rest parameters together cost a third of it.
 */
export class TracedResponse extends ServerResponse {
  readonly requestId: string;
  /** When the head of the request had arrived, in ms of the process. */
  readonly arrivedAt: number;
  /** When the answer began; `0` until then. */
  begunAt: number;
  /** Bytes of the body that were written. */
  written: number;
  /** The request as hapi knows it, once it is routed; of one that waits, what is told of it. */
  routed: Routed | undefined;
  /** Since when it waits, as its client has asked or since that asks too much; `0` where it does not. */
  heldAt: number;
  /** When it had waited; `0` before, and where it does not wait. */
  releasedAt: number;
  /** For how long it has waited so far, in ms. */
  waited: number;
  /** Where its request is counted until it has ended. */
  countedIn: RequestsUnderWay | undefined;

  constructor(request: IncomingMessage, options: ServerOptions) {
    // @ts-expect-error Node gives it the options of the server, which its types do not tell.
    super(request, options);
    this.requestId = idOf(request);
    this.arrivedAt = performance.now();
    this.begunAt = 0;
    this.written = 0;
    this.routed = undefined;
    this.heldAt = 0;
    this.releasedAt = 0;
    this.waited = 0;
    this.countedIn = undefined;
  }

  /** Has its request counted from now until it has ended. */
  countIn(underWay: RequestsUnderWay): void {
    this.countedIn = underWay;
    underWay.begin();
  }

  /** Its request has ended, or is not worked on any more. */
  countOut(): void {
    this.countedIn?.end();
    this.countedIn = undefined;
  }

  /** Begins to wait: hapi's part of the request, which takes more memory than all others, is let go of. */
  hold(): void {
    this.heldAt = performance.now();
    this.routed = routedOf(this.routed);
  }

  /** Waits no longer. */
  release(): void {
    this.releasedAt = performance.now();
    this.waited += this.releasedAt - this.heldAt;
    this.heldAt = 0;
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
    this.written += lengthOf(chunk);
    return super.write(chunk, encoding, callback);
  }

  // biome-ignore lint/suspicious/noExplicitAny: its overloads are many, and all are handed on.
  override end(chunk?: any, encoding?: any, callback?: any): this {
    this.written += lengthOf(chunk);
    return super.end(chunk, encoding, callback);
  }
}

function lengthOf(chunk: unknown): number {
  if (chunk instanceof Uint8Array) return chunk.length;
  return typeof chunk === 'string' ? Buffer.byteLength(chunk) : 0;
}

/** What came of a request, looked up as it is asked: most of it is of the log alone. */
class Account implements AnsweredRequest {
  readonly response: TracedResponse;

  constructor(response: TracedResponse) {
    this.response = response;
  }

  get requestId(): string {
    return this.response.requestId;
  }
  get method(): string | null {
    return this.response.req.method ?? null;
  }
  get target(): string | null {
    return this.response.req.url ?? null;
  }
  get route(): string | null {
    return this.response.routed?.route.path ?? null;
  }
  get status(): number | null {
    return this.response.begunAt === 0 ? null : this.response.statusCode;
  }
  get beganMs(): number | null {
    const { begunAt, arrivedAt, waited } = this.response;
    return begunAt === 0 ? null : begunAt - arrivedAt - waited;
  }
  get ms(): number {
    return performance.now() - this.response.arrivedAt;
  }
  get waitedMs(): number | null {
    const { releasedAt, heldAt, waited } = this.response;
    if (heldAt > 0) return waited + performance.now() - heldAt;
    return releasedAt === 0 ? null : waited;
  }
  get bytes(): number {
    return this.response.req.method === 'HEAD' ? 0 : this.response.written;
  }
  get isWhole(): boolean {
    return this.response.writableFinished;
  }
  get client(): string | null {
    const { key } = (this.response.routed?.auth.credentials?.app ?? {}) as { readonly key?: ApiKey };
    return key?.client ?? null;
  }
  get address(): string | null {
    return clientAddressOf(this.response.req) || null;
  }
}

/**
 * Makes the responses of a listener.
 * @param onAnswered told of each request as its answer ends
 * @param allowed the pages of browsers that may read them; none unless it is given
 */
export function tracedResponses(
  onAnswered: (it: AnsweredRequest) => void,
  allowed?: AllowedOrigins,
): typeof ServerResponse {
  function tell(this: TracedResponse): void {
    this.countOut();
    onAnswered(new Account(this));
  }
  class ToldResponse extends TracedResponse {
    constructor(request: IncomingMessage, options: ServerOptions) {
      super(request, options);
      this.on('close', tell);
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

/** When the head of the request that a response is to had arrived, in ms of the process; now where nobody traces it. */
export function arrivalOf(response: ServerResponse): number {
  return response instanceof TracedResponse ? response.arrivedAt : performance.now();
}

/**
 * Since when a client waits for its answer, in ms of the process: it may have asked to wait before. `undefined` while it does
 * as it has asked.
 */
export function awaitedSince(response: ServerResponse, begunAt: number): number | undefined {
  if (!(response instanceof TracedResponse) || response.releasedAt + response.heldAt === 0) return begunAt;
  return response.heldAt > 0 ? undefined : Math.max(begunAt, response.releasedAt);
}

/** The id of the request that a response is to; `''` where nobody traces it. */
export function requestIdOf(response: ServerResponse): string {
  return response instanceof TracedResponse ? response.requestId : '';
}
