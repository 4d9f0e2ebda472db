// Requests that wait for a publication. While they do, nothing is left of them but the request and its response. Then they go
// on, a few in each turn of the event loop, before those that come to wait meanwhile.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { PublicationWaits, Wait } from '../reads/publication-waits.ts';
import { Turns } from '../reads/turns.ts';
import { TracedResponse } from './traced-response.ts';

/** What is waited for, and what is done then. */
export interface HeldRequest {
  readonly req: IncomingMessage;
  readonly res: TracedResponse;
  readonly wait: Omit<Wait, 'onWaiting'>;
  /** Begins with what is to be answered, which many may share; gives what writes it. */
  readonly prepare: () => Promise<() => Promise<void>>;
}

/** Holds requests, for one server. */
export class HeldRequests {
  readonly waits: PublicationWaits;
  readonly #turns = new Turns();
  readonly #servedAgain = new WeakSet<ServerResponse>();
  #serve: RequestListener = () => undefined;

  constructor(waits: PublicationWaits) {
    this.waits = waits;
  }

  /**
   * Holds a request until it is time; then it is answered, or served as if it had come only now where that fails: its key
   * may be revoked, and Redis away. @throws TooManyWaitingError at once
   */
  hold({ req, res, wait, prepare }: HeldRequest): void {
    if (res.closed) return;
    const onWaiting = (leave: () => void) => res.once('close', leave);
    const waiting = this.waits.until({ ...wait, onWaiting });
    res.hold();
    waiting.then(async (end) => {
      if (end === 'left') return;
      const prepared = prepare();
      prepared.catch(() => undefined);
      await this.#turns.next();
      // Not before: where many are told at once on a busy machine, an answer is better than a 503 that has it asked for again.
      res.release();
      res.once('finish', () => this.#readOnInTurn(req.socket));
      await prepared
        .then((write) => write())
        .catch(() => {
          this.#servedAgain.add(res);
          this.#serveNow(req, res);
        });
    });
  }

  /** Whether a request has waited already, and is served once more. */
  hasWaited(res: ServerResponse): boolean {
    return this.#servedAgain.has(res);
  }

  /** Takes a request: one that comes to wait lets those go first that have waited. */
  take(serve: RequestListener, req: IncomingMessage, res: ServerResponse): void {
    this.#serve = serve;
    const isToWait = res instanceof TracedResponse && req.url?.includes('wait=');
    if (this.#turns.isBusy && isToWait) this.#serveInTurn(req, res);
    else this.#serveNow(req, res);
  }

  async #serveInTurn(req: IncomingMessage, res: TracedResponse): Promise<void> {
    res.hold();
    await this.#turns.next();
    res.release();
    this.#serveNow(req, res);
  }

  /**
   * A client asks again as soon as it has its answer. To read that takes as long as to answer another one that waits still, so
   * it stays where it is until all have gone that wait now.
   */
  async #readOnInTurn(socket: Socket): Promise<void> {
    if (!this.#turns.isBusy) return;
    socket.pause();
    await this.#turns.next();
    socket.resume();
  }

  #serveNow(req: IncomingMessage, res: ServerResponse): void {
    this.#serve(req, res);
  }
}
