// How many requests a process works on, and whether it takes another one.

/** How often it is looked at how late the event loop is, in ms. */
const lookEveryMs = 50;

/** What a late process still takes: this part of its bound. */
const lateShare = 10;

/** How late an event loop is seen to be, and where that begins. */
export interface Lateness {
  /** An event loop that is later than this, in ms, has more to do than it gets done soon; 100 unless it is given. */
  readonly lateMs?: number | undefined;
  /** The time in ms since whenever; the process' own clock unless it is given. */
  readonly now?: () => number;
}

/** Counts for one process. */
export class RequestsUnderWay {
  #count = 0;
  readonly #most: number;
  #bound: number;
  readonly #lateMs: number;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;

  /** @param most that are taken at once; a tenth of them while the event loop is late */
  constructor(most: number, { lateMs = 100, now = () => performance.now() }: Lateness = {}) {
    this.#most = most;
    this.#bound = most;
    this.#lateMs = lateMs;
    this.#now = now;
  }

  /** Whether another one would be taken now. */
  get isFull(): boolean {
    return this.#count >= this.#bound;
  }

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
  }

  /** Begins to look at the event loop. */
  watch(): void {
    let due = this.#now() + lookEveryMs;
    this.#timer = setInterval(() => {
      const now = this.#now();
      this.#bound = now - due > this.#lateMs ? Math.ceil(this.#most / lateShare) : this.#most;
      due = now + lookEveryMs;
    }, lookEveryMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
