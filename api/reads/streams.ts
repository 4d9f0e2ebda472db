// How many streams of one key are under way in this process: each holds a connection, and memory, for as long as it is read.

/** A key has as many streams under way as it may have. */
export class TooManyStreamsError extends Error {
  /** When to come again, in seconds. */
  readonly retryAfter = 1;

  constructor(most: number) {
    super(
      `This key has ${most} streams under way, and may not have more at once. Read one of them to its end first.`,
    );
  }
}

/** Counts streams by the ids of keys. */
export class Streams {
  readonly #most: number;
  readonly #underWay = new Map<string, number>();

  /** @param most of one key, at once */
  constructor(most: number) {
    this.#most = most;
  }

  /** Begins a stream. @returns what ends it. @throws TooManyStreamsError */
  begin(id: string): () => void {
    const count = this.#underWay.get(id) ?? 0;
    if (count >= this.#most) throw new TooManyStreamsError(this.#most);
    this.#underWay.set(id, count + 1);
    return () => {
      const left = (this.#underWay.get(id) ?? 1) - 1;
      if (left === 0) this.#underWay.delete(id);
      else this.#underWay.set(id, left);
    };
  }
}
