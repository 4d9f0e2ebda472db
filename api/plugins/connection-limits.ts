// What one connection may cost: a few requests under way, an answer to each within 2 s, and no client that takes nothing.
// Requests beyond that wait, and nothing more is read from their connection meanwhile.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Plugin, Server } from '@hapi/hapi';
import { sendError } from '../answers/error-response.ts';
import { arrivalOf, awaitedSince, requestIdOf } from '../answers/traced-response.ts';
import { late, type Trouble } from '../reads/trouble.ts';
import { aroundRequests, requestEvents } from './around-requests.ts';

/** A client that takes nothing of its answers for this long is given up, in ms. */
const defaultStallMs = 60_000;

/** How long a reader waits for the first byte, in ms; then the answer is 503, whatever it is that takes so long. */
const answerWithinMs = 2_000;

/** How often both are looked at, in ms, for all connections together: a timer for each request would cost more. */
const lookEveryMs = 100;

/** How many requests of one connection are under way at once: with more, others wait longer for their turn. */
const maxUnderWay = 2;

/** No further request of a connection begins while this many bytes of its answers are not sent. */
const maxUnsent = 1_000_000;

/** What the plugin is given. */
export interface LimitOptions {
  /** Tests shorten it. */
  readonly stallMs: number | undefined;
  /** Told of each answer that came too late. */
  readonly onTrouble: (trouble: Trouble, requestId: string) => void;
}

/** Keeps the cost of each connection within limits, whatever its client does. */
export const connectionLimits: Plugin<LimitOptions> = {
  name: 'connection-limits',
  register(server: Server, { stallMs = defaultStallMs, onTrouble }: LimitOptions) {
    const { listener } = server;
    const onLate = (response: ServerResponse) => onTrouble(late, requestIdOf(response));
    const open = new Set<Connection>();
    listener.on('connection', (socket: Socket) => {
      const connection = new Connection(socket);
      known.set(socket, connection);
      open.add(connection);
      socket.once('close', () => {
        open.delete(connection);
        setImmediate(() => connection.leave()); // Node sees to the answer that was being sent, after this.
      });
    });
    aroundRequests(listener, [...requestEvents, 'checkExpectation'], (request, response, serve) => {
      // Node reads nothing more of what came in one piece with it, so that whoever sent more would wait for ever.
      if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
      known.get(request.socket)?.take({ serve, request, response });
    });
    const look = () => {
      const now = performance.now();
      for (const connection of open) connection.look({ now, stallMs, onLate });
    };
    const timer = setInterval(look, lookEveryMs).unref();
    listener.once('close', () => clearInterval(timer));
  },
};

/** The last answer that a connection will give to what has come by it, unless that is given already. */
export function lastUnderWay(socket: Socket): ServerResponse | undefined {
  const last = known.get(socket)?.last;
  return last?.closed ? undefined : last;
}

const known = new WeakMap<Socket, Connection>();

/** A request that has come, and who answers it. */
interface Asked {
  readonly serve: RequestListener;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** One connection, and the requests on it in their order: those that were begun, then those that wait. */
class Connection {
  /** The answer to the request that came last. */
  last: ServerResponse | undefined;
  readonly #socket: Socket;
  readonly #begun: { readonly response: ServerResponse; readonly at: number }[] = [];
  #waiting: Asked[] = [];
  #isHeld: boolean | undefined;
  /** How far the client has got with what is sent to it, and since when it is no further. */
  #taken = { mark: nothingOwed, at: 0 };

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Begins a request, or lets it wait. */
  take(asked: Asked): void {
    // Answers go out in order, so with the last one all are sent: this is how most requests come.
    if (this.last?.writableFinished) this.#begun.length = 0;
    this.last = asked.response;
    if (this.#waiting.length === 0 && this.#mayBegin()) this.#begin(asked, arrivalOf(asked.response));
    else if (this.#waiting.push(asked) === 1) this.#hold();
  }

  /** Answers who has waited too long, and gives up who takes nothing. */
  look({
    now,
    stallMs,
    onLate,
  }: {
    now: number;
    stallMs: number;
    onLate: (response: ServerResponse) => void;
  }): void {
    for (const { response, at } of this.#begun) {
      if (now - at <= answerWithinMs - lookEveryMs || response.headersSent) continue;
      const since = awaitedSince(response, at) ?? now;
      if (now - since <= answerWithinMs - lookEveryMs) continue;
      sendError(response, late.status, late.message, { 'retry-after': String(late.retryAfter) });
      onLate(response);
    }
    const mark = markOf(this.#socket);
    if (mark !== this.#taken.mark) this.#taken = { mark, at: now };
    else if (mark !== nothingOwed && now - this.#taken.at >= stallMs) this.#socket.destroy();
  }

  /** Ends the answers that were behind another one when the client left: Node tells nobody of these. */
  leave(): void {
    for (const { response } of this.#begun) {
      if (response.destroyed || response.writableFinished) continue;
      response.destroyed = true;
      response.emit('close');
    }
  }

  #mayBegin(): boolean {
    const begun = this.#begun;
    while (begun[0]?.response.writableFinished) begun.shift();
    if (begun.length >= maxUnderWay) return false;
    let unsent = 0;
    for (const { response } of begun) unsent += response.writableLength;
    return unsent < maxUnsent;
  }

  #begin({ serve, request, response }: Asked, at: number): void {
    this.#begun.push({ response, at });
    serve(request, response);
  }

  /** Reads nothing more until nobody waits. Node reads on by itself in places, so it is told again each time. */
  #hold(): void {
    if (this.#isHeld === undefined) this.#socket.on('resume', () => this.#isHeld && this.#socket.pause());
    this.#isHeld = true;
    this.#socket.pause();
    this.#awaitTurn();
  }

  #awaitTurn(): void {
    this.#begun[0]?.response.once('finish', () => this.#next());
  }

  #next(): void {
    if (!this.#socket.writable) this.#waiting = []; // That answer was the last one of the connection.
    while (this.#waiting.length > 0 && this.#mayBegin())
      this.#begin(this.#waiting.shift() as Asked, performance.now());
    if (this.#waiting.length === 0) {
      this.#isHeld = false;
      this.#socket.resume();
    } else this.#awaitTurn();
  }
}

const nothingOwed = -1;

/** A number that changes when a client takes something of what it is owed. */
function markOf(socket: Socket): number {
  const { writableLength } = socket;
  if (writableLength === 0) return nothingOwed;
  return socket.bytesWritten - writableLength - inKernelQueue(socket);
}

/**
 * How much of what is written now the kernel has not taken. Node tells it to its own time-outs only, which count a write
 * as progress that was never taken further, and so last twice as long as they say.
 */
function inKernelQueue(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { writeQueueSize?: number } | null };
  return handle?.writeQueueSize ?? 0;
}
