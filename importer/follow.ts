// In: an upstream that is a medref, and what imports from it. Out: an import each time that upstream publishes. It is asked to
// wait for that; an import that fails is the schedule's to try again.

import { setTimeout as sleep } from 'node:timers/promises';
import type { SeenVersion } from './report.ts';
import type { RunEnd } from './schedule.ts';
import { type PublicationWatch, type Watched, watchPublications } from './upstream/watch.ts';

/** What the history of imports tells. */
export interface FollowedHistory {
  /** The version of upstream that was read last; `null` where none was. */
  seen(): Promise<SeenVersion | null>;
  /** Whether an import that began at this time or later has come to an end. */
  isImportedSince(time: Date): Promise<boolean>;
}

/** How long is waited where something goes wrong, in ms: twice as long each time. */
export interface Pauses {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** The pauses that hold outside of tests. */
export const usualPauses: Pauses = Object.freeze({ firstMs: 1_000, longestMs: 300_000 });

/** What comes sooner than this is followed by a pause, in ms: a wait that is none, or another publication. */
const shortMs = 10_000;

/** Whom one collection is followed with. */
export interface FollowOptions {
  readonly upstream: { readonly url: URL; readonly token: string | undefined };
  readonly history: FollowedHistory;
  /** Begins an import, unless one is under way. */
  readonly importNow: () => void;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Told that an import begins because upstream has published. */
  readonly onPublished: (version: string | null) => void;
  /** Told why upstream cannot be followed, once until it can. */
  readonly onTrouble: (reason: string, isLeftToSchedule: boolean) => void;
  readonly pauses?: Pauses | undefined;
}

/** What was imported because of, and when. */
interface Announced {
  /** `null`: upstream did not know the version that was followed from. */
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
  /** How often in a row it went wrong. */
  #troubles = 0;
  #told: string | null = null;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.#watch = watchPublications({ ...options.upstream, signal: options.signal });
    this.#pauses = options.pauses ?? usualPauses;
    options.signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  /** Is told that an import begins, whoever wanted it. */
  importBegins(): void {
    this.#isAtRest = false;
  }

  /** Is told how an import has ended: one that is tried again has not. */
  importEnds(end: RunEnd): void {
    this.#isAtRest = end === 'ended';
    this.#wake();
  }

  /** Follows until the signal. Never rejects. */
  async run(): Promise<void> {
    const { signal, onTrouble } = this.#options;
    while (!signal.aborted) {
      try {
        await this.#step();
      } catch (error) {
        if (signal.aborted) break;
        this.#tell((error as Error).message, onTrouble);
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
      // It was skipped, or it was another process' and began before.
      await this.#pause();
      return this.#import(this.#announced.version);
    }
    // Upstream is no medref, or no import has read from it yet. The next import of this process or of another one may change that.
    if (since === null) return this.#nextEnd(Math.min(shortMs, this.#pauses.longestMs));
    await this.#take(await this.#watch.next(since));
  }

  /** The version to go on from. An import that was held has read nothing; the next publication is waited for even so. */
  #since(seen: SeenVersion | null): string | null {
    const announced = this.#announced;
    const hasRead =
      announced === null || (seen !== null && Date.parse(seen.startedAt) >= announced.at.getTime());
    return hasRead ? (seen?.version ?? null) : announced.version;
  }

  async #take(watched: Watched): Promise<void> {
    const { onTrouble, signal } = this.#options;
    switch (watched.kind) {
      case 'nothing':
        this.#told = null;
        if (watched.waitedMs < shortMs) await this.#pause();
        else this.#troubles = 0;
        return;
      case 'published': {
        this.#told = null;
        // So soon after another one, its answers may be of two services by turns.
        if (this.#announced && Date.now() - this.#announced.at.getTime() < shortMs) await this.#pause();
        else this.#troubles = 0;
        return signal.aborted ? undefined : this.#import(watched.version);
      }
      case 'lost':
        if (this.#troubles > 0) await this.#pause();
        this.#troubles += 1;
        return signal.aborted ? undefined : this.#import(null);
      case 'unable':
        this.#tell(watched.reason, (reason) => onTrouble(reason, true));
        return this.#nextEnd();
      case 'failed':
        this.#tell(watched.reason, (reason) => onTrouble(reason, false));
        return this.#pause(watched.retryAfterMs);
    }
  }

  #import(version: string | null): void {
    const { onPublished, importNow } = this.#options;
    this.#announced = { version, at: new Date() };
    onPublished(version);
    importNow();
  }

  #tell(reason: string, tell: (reason: string, isLeftToSchedule: boolean) => void): void {
    if (this.#told !== reason) tell(reason, false);
    this.#told = reason;
  }

  /** Twice as long each time, less a random part: many may follow one upstream. */
  async #pause(atLeastMs = 0): Promise<void> {
    const { firstMs, longestMs } = this.#pauses;
    const ms = Math.min(firstMs * 2 ** this.#troubles, longestMs) * (0.5 + Math.random() / 2);
    this.#troubles += 1;
    const { signal } = this.#options;
    await sleep(Math.max(ms, Math.min(atLeastMs, longestMs)), null, { signal }).catch(() => undefined);
  }

  /** Waits until an import of this process has ended, or the signal, or the time in ms is over. */
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
