// The response to each request that could be parsed: it carries the request's id, and tells what came of it as it ends.

import { randomBytes } from 'node:crypto';
import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
} from 'node:http';
import type { Request } from '@hapi/hapi';
import type { ApiKey } from '../../shared/api-keys.ts';

/** What is known of a request when its answer has ended. */
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
  /** For how long of that it waited, as it had asked for, in ms; `null` where it did not. */
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

/** What hapi knows of a request, as far as it is told. */
interface Routed {
  readonly route: { readonly path: string };
  readonly auth: { readonly credentials: Request['auth']['credentials'] };
}

function routedOf(routed: Routed | undefined): Routed | undefined {
  return routed && { route: { path: routed.route.path }, auth: { credentials: routed.auth.credentials } };
}

/** A response that carries its request's id, whoever writes it. */
export class TracedResponse extends ServerResponse {
  readonly requestId: string;
  /** The request as hapi knows it, once it is routed. */
  routed: Routed | undefined;
  readonly #arrivedAt = performance.now();
  #begunAt: number | null = null;
  #bytes = 0;
  #heldAt: number | null = null;
  #waitedMs: number | null = null;
  /** When its wait ended; 0 where it did not wait. */
  releasedAt = 0;

  constructor(...args: ConstructorParameters<typeof ServerResponse>) {
    super(...args);
    this.requestId = idOf(args[0]);
    this.on('close', this.#end);
  }

  /** Whether it waits, as its client asked for; nobody is late meanwhile. */
  get isHeld(): boolean {
    return this.#heldAt !== null;
  }

  /** Begins to wait: hapi's part of the request, which takes more memory than all others, is let go of. */
  hold(): void {
    this.#heldAt = performance.now();
    this.routed = routedOf(this.routed);
  }

  /** Waits no longer. */
  release(): void {
    this.releasedAt = performance.now();
    this.#waitedMs = (this.#waitedMs ?? 0) + this.releasedAt - (this.#heldAt ?? this.releasedAt);
    this.#heldAt = null;
  }

  /** Takes no reason phrase: the usual ones are sent. */
  override writeHead(
    status: number,
    headers?: OutgoingHttpHeaders | OutgoingHttpHeader[] | string,
    ..._none: unknown[]
  ): this {
    this.#begunAt = performance.now();
    if (Array.isArray(headers)) return super.writeHead(status, [...headers, 'x-request-id', this.requestId]);
    this.setHeader('x-request-id', this.requestId);
    return typeof headers === 'object' ? super.writeHead(status, headers) : super.writeHead(status);
  }

  // biome-ignore lint/suspicious/noExplicitAny: its overloads are many, and all are handed on.
  override write(chunk: any, ...rest: any[]): boolean {
    this.#count(chunk);
    return super.write(chunk, ...rest);
  }

  // biome-ignore lint/suspicious/noExplicitAny: its overloads are many, and all are handed on.
  override end(...args: any[]): this {
    this.#count(args[0]);
    return super.end(...args);
  }

  /** Is told what came of the request. */
  protected answered(_it: AnsweredRequest): void {}

  #count(chunk: unknown): void {
    if (this.req.method === 'HEAD') return;
    if (typeof chunk === 'string') this.#bytes += Buffer.byteLength(chunk);
    else if (chunk instanceof Uint8Array) this.#bytes += chunk.length;
  }

  #end(): void {
    const { req, routed } = this;
    const { key } = (routed?.auth.credentials?.app ?? {}) as { readonly key?: ApiKey };
    const begunAt = this.#begunAt;
    if (this.isHeld) this.release();
    const waitedMs = this.#waitedMs;
    this.answered({
      requestId: this.requestId,
      method: req.method ?? null,
      target: req.url ?? null,
      route: routed?.route.path ?? null,
      status: begunAt === null ? null : this.statusCode,
      beganMs: begunAt === null ? null : begunAt - this.#arrivedAt - (waitedMs ?? 0),
      ms: performance.now() - this.#arrivedAt,
      waitedMs,
      bytes: this.#bytes,
      isWhole: this.writableFinished,
      client: key?.client ?? null,
      address: req.socket.remoteAddress ?? null,
    });
  }
}

/** Makes the responses of a listener. @param onAnswered told of each request as its answer ends */
export function tracedResponses(onAnswered: (it: AnsweredRequest) => void): typeof ServerResponse {
  class ToldResponse extends TracedResponse {
    protected override answered(it: AnsweredRequest): void {
      onAnswered(it);
    }
  }
  return ToldResponse as unknown as typeof ServerResponse; // Its type knows requests of any type.
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
