// Follows an upstream medref by long polls: starts an import at each publication. The schedule retries failed imports.

import { setTimeout as sleep } from 'node:timers/promises';
import type { SeenVersion } from './report.ts';
import type { RunEnd } from './schedule.ts';
import { type PublicationWatch, type Watched, watchPublications } from './upstream/watch.ts';

/** The parts of the import history that a follower reads. */
export interface FollowedHistory {
  /** Returns the last version of upstream that an import read; `null` if there is none. */
  seen(): Promise<SeenVersion | null>;
  /** Returns whether an import that began at this time or later has ended. */
  isImportedSince(time: Date): Promise<boolean>;
}

/** Pauses after failures, in ms; each is twice as long as the one before. */
export interface Pauses {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** The pauses in production. */
export const usualPauses: Pauses = Object.freeze({ firstMs: 1_000, longestMs: 300_000 });

/** A reply or publication that comes sooner than this is followed by a pause, in ms. */
const shortMs = 10_000;

/** The options of a follower. */
export interface FollowOptions {
  readonly upstream: { readonly url: URL; readonly token: string | undefined };
  readonly history: FollowedHistory;
  /** Starts an import, unless one is running. */
  readonly importNow: () => void;
  /** Ends the follower. */
  readonly signal: AbortSignal;
  /** Called when an import starts because upstream has published. */
  readonly onPublished: (version: string | null) => void;
  /** Called with the reason when upstream cannot be followed, once until it works again. */
  readonly onServiceError: (reason: string, isLeftToSchedule: boolean) => void;
  readonly pauses?: Pauses | undefined;
}

/** The last publication that started an import. */
interface Announced {
  /** `null`: upstream did not know the version that the follower sent. */
  readonly version: string | null;
  readonly at: Date;
}

/** Follows one collection of an upstream. */
export class Follower {
  readonly #options: FollowOptions;
  readonly #watch: PublicationWatch;
  readonly #pauses: Pauses;
  #isAtRest = true;
  readonly #onEnd = new Set<() => void>();
  #announced: Announced | null = null;
  /** Failures in a row. */
  #troubles = 0;
  #reported: string | null = null;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.#watch = watchPublications({ ...options.upstream, signal: options.signal });
    this.#pauses = options.pauses ?? usualPauses;
    options.signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  /** To be called when any import starts. */
  importBegins(): void {
    this.#isAtRest = false;
  }

  /** To be called when an import has ended; an import that is retried has not. */
  importEnds(end: RunEnd): void {
    this.#isAtRest = end === 'ended';
    this.#wake();
  }

  /** Follows until the signal is aborted. Never rejects. */
  async run(): Promise<void> {
    const { signal, onServiceError } = this.#options;
    while (!signal.aborted) {
      try {
        await this.#step();
      } catch (error) {
        if (signal.aborted) break;
        this.#report((error as Error).message, onServiceError);
        await this.#pause();
      }
    }
    await this.#watch.close();
  }

  async #step(): Promise<void> {
    const { signal, history } = this.#options;
    while (!this.#isAtRest && !signal.aborted) await this.#nextEnd();
    const since = this.#since(await history.seen());
    if (signal.aborted) return;
    if (this.#announced && !(await history.isImportedSince(this.#announced.at))) {
      // The import was skipped, or another process had started it before.
      await this.#pause();
      return this.#import(this.#announced.version);
    }
    // Upstream is no medref, or no import has read it yet. The next import may change that.
    if (since === null) return this.#nextEnd(Math.min(shortMs, this.#pauses.longestMs));
    await this.#take(await this.#watch.next(since));
  }

  /** Returns the version to follow from. A paused import reads nothing; the follower then waits for the next publication. */
  #since(seen: SeenVersion | null): string | null {
    const announced = this.#announced;
    const hasRead =
      announced === null || (seen !== null && Date.parse(seen.startedAt) >= announced.at.getTime());
    return hasRead ? (seen?.version ?? null) : announced.version;
  }

  async #take(watched: Watched): Promise<void> {
    const { onServiceError, signal } = this.#options;
    switch (watched.kind) {
      case 'nothing':
        this.#reported = null;
        if (watched.waitedMs < shortMs) await this.#pause();
        else this.#troubles = 0;
        return;
      case 'published': {
        this.#reported = null;
        // Two publications within a short time: two services behind one address may respond in turn.
        if (this.#announced && Date.now() - this.#announced.at.getTime() < shortMs) await this.#pause();
        else this.#troubles = 0;
        return signal.aborted ? undefined : this.#import(watched.version);
      }
      case 'lost':
        if (this.#troubles > 0) await this.#pause();
        this.#troubles += 1;
        return signal.aborted ? undefined : this.#import(null);
      case 'unable':
        this.#report(watched.reason, (reason) => onServiceError(reason, true));
        return this.#nextEnd();
      case 'failed':
        this.#report(watched.reason, (reason) => onServiceError(reason, false));
        return this.#pause(watched.retryAfterMs);
    }
  }

  #import(version: string | null): void {
    const { onPublished, importNow } = this.#options;
    this.#announced = { version, at: new Date() };
    onPublished(version);
    importNow();
  }

  #report(reason: string, report: (reason: string, isLeftToSchedule: boolean) => void): void {
    if (this.#reported !== reason) report(reason, false);
    this.#reported = reason;
  }

  /** Waits twice as long each time, minus a random part: many clients may follow one upstream. */
  async #pause(atLeastMs = 0): Promise<void> {
    const { firstMs, longestMs } = this.#pauses;
    const ms = Math.min(firstMs * 2 ** this.#troubles, longestMs) * (0.5 + Math.random() / 2);
    this.#troubles += 1;
    const { signal } = this.#options;
    await sleep(Math.max(ms, Math.min(atLeastMs, longestMs)), null, { signal }).catch(() => undefined);
  }

  /** Waits until an import of this process has ended, the signal is aborted, or the time in ms is over. */
  async #nextEnd(atMostMs?: number): Promise<void> {
    if (this.#options.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#onEnd.delete(end);
        resolve();
      };
      const timer = atMostMs === undefined ? undefined : setTimeout(end, atMostMs);
      this.#onEnd.add(end);
    });
  }

  #wake(): void {
    for (const end of [...this.#onEnd]) end();
  }
}
