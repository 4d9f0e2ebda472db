// Requests that wait for a publication, of one process that serves. They wait in memory: nothing is asked of Redis for them.

import type { Socket } from 'node:net';
import type { Collection } from '../../shared/collections/define.ts';
import type { LiveVersions } from './live-versions.ts';

/** How many requests wait at once. */
export const usuallyMaxWaiting = 10_000;

/** How many are answered in one turn of the event loop, so that other readers are answered between them. */
const inOneTurn = 50;

/** So many requests wait that another one would take memory that answers need. */
export class TooManyWaitingError extends Error {
  constructor() {
    super(
      'Too many requests wait for a publication at the moment. Ask without "wait", or try again shortly.',
    );
  }
}

/** Why a request waits no longer: another version is live, its time is over, its client has left, or the process stops. */
export type WaitEnd = 'published' | 'over' | 'left' | 'stopped';

/** What is waited for. */
export interface Wait {
  /** Of the version that is waited past. */
  readonly source: Collection;
  /** Number of the version that the client has. */
  readonly since: number;
  /** For how long, in ms. */
  readonly ms: number;
  /** Is given what ends the wait of a client that has left. */
  readonly onWaiting: (leave: () => void) => void;
}

/** Lets requests wait until another version is live than the one that they know. */
export class PublicationWaits {
  readonly #live: LiveVersions;
  readonly #max: number;
  /** In the order in which they came, by the collection that is published. */
  readonly #waiting = new Map<string, Set<(why: WaitEnd) => void>>();
  #count = 0;
  /** Whether more are to be answered after a publication, and who was answered and is read from after them. */
  #isEnding = false;
  readonly #paused: Socket[] = [];
  #isOver = false;

  constructor(live: LiveVersions, max = usuallyMaxWaiting) {
    this.#live = live;
    this.#max = max;
    live.onMove((source) => this.#moved(source));
  }

  /** How many requests wait now. */
  get count(): number {
    return this.#count;
  }

  /** Waits. @returns why it is over. @throws TooManyWaitingError at once */
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

  /** Ends all waits, those that are yet to come too. */
  stop(): void {
    this.#isOver = true;
    for (const ofSource of this.#waiting.values()) for (const end of ofSource) end('stopped');
  }

  #moved(source: Collection): void {
    this.#endSome([...(this.#waiting.get(source.name) ?? [])]);
  }

  /** Reads nothing more of a client that was answered until all are: to read what it asks next takes as long as a response. */
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

  /** Reads the next requests of clients that were answered: some in each turn, as libuv would read all of them in one. */
  #readSome(): void {
    for (const socket of this.#paused.splice(0, inOneTurn)) socket.resume();
    if (this.#paused.length > 0) setImmediate(() => this.#readSome());
  }
}
