// Requests of one API process that wait for a publication. They wait in memory and send no commands to Redis.

import type { Socket } from 'node:net';
import type { Collection } from '../../shared/collections/define.ts';
import type { LiveVersions } from './live-versions.ts';

/** How many requests may wait at once. */
export const usuallyMaxWaiting = 10_000;

/** How many of them get a response in one turn of the event loop, so that other readers get their turn. */
const inOneTurn = 50;

/** The limit of waiting requests is reached; more would take memory that responses need. */
export class TooManyWaitingError extends Error {
  constructor() {
    super(
      'Too many requests are waiting for a publication. Send the request without "wait", or try again shortly.',
    );
  }
}

/** Why a wait ended: a publication, the end of its time, a disconnected client, or shutdown. */
export type WaitEnd = 'published' | 'over' | 'left' | 'stopped';

/** A wait. */
export interface Wait {
  /** The collection whose publication ends the wait. */
  readonly source: Collection;
  /** Number of the version that the client has. */
  readonly since: number;
  /** The longest time to wait, in ms. */
  readonly ms: number;
  /** Receives a function that ends the wait when the client disconnects. */
  readonly onWaiting: (leave: () => void) => void;
}

/** Lets requests wait until a newer version is live than the one they know. */
export class PublicationWaits {
  readonly #live: LiveVersions;
  readonly #max: number;
  /** Waiting requests in order of arrival, by collection. */
  readonly #waiting = new Map<string, Set<(why: WaitEnd) => void>>();
  #count = 0;
  /** Whether a publication still has responses to send, and the sockets to read from after that. */
  #isEnding = false;
  readonly #paused: Socket[] = [];
  #isOver = false;

  constructor(live: LiveVersions, max = usuallyMaxWaiting) {
    this.#live = live;
    this.#max = max;
    live.onMove((source) => this.#moved(source));
  }

  /** How many requests wait at the moment. */
  get count(): number {
    return this.#count;
  }

  /** Waits for a publication. @returns why the wait ended. @throws TooManyWaitingError at once */
  until({ source, since, ms, onWaiting }: Wait): Promise<WaitEnd> {
    if (this.#isOver) return Promise.resolve('stopped');
    if (this.#live.known(source)?.version !== since) return Promise.resolve('published');
    if (this.#count >= this.#max) throw new TooManyWaitingError();
    const ofSource = this.#waiting.get(source.name) ?? new Set();
    this.#waiting.set(source.name, ofSource);
    return new Promise((resolve) => {
      const end = (why: WaitEnd) => {
        if (!ofSource.delete(end)) return;
        clearTimeout(timer);
        this.#count -= 1;
        resolve(why);
      };
      const timer = setTimeout(() => end('over'), ms);
      this.#count += 1;
      ofSource.add(end);
      onWaiting(() => end('left'));
    });
  }

  /** Ends all waits, including later ones. */
  stop(): void {
    this.#isOver = true;
    for (const ofSource of this.#waiting.values()) for (const end of ofSource) end('stopped');
  }

  #moved(source: Collection): void {
    this.#endSome([...(this.#waiting.get(source.name) ?? [])]);
  }

  /** Stops reading from a client after its response until all have theirs: reading its next request takes as long as a response. */
  readOnLater(socket: Socket): void {
    if (!this.#isEnding) return;
    socket.pause();
    this.#paused.push(socket);
  }

  #endSome(ends: ((why: WaitEnd) => void)[]): void {
    for (const end of ends.splice(0, inOneTurn)) end('published');
    this.#isEnding = ends.length > 0;
    if (ends.length > 0) setImmediate(() => this.#endSome(ends));
    else this.#readSome();
  }

  /** Resumes some clients per turn of the event loop; libuv would read all of them in one turn. */
  #readSome(): void {
    for (const socket of this.#paused.splice(0, inOneTurn)) socket.resume();
    if (this.#paused.length > 0) setImmediate(() => this.#readSome());
  }
}
