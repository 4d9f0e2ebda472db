// What many wait for at once. Out: a few of them go on in each turn of the event loop, so that nobody else is kept waiting.

/** How many go on in one turn: an answer takes up to a tenth of a millisecond. */
const inOneTurn = 50;

/** Gives turns, in the order in which they are asked for. */
export class Turns {
  #waiting: (() => void)[] = [];

  /** Whether somebody waits for a turn. */
  get isBusy(): boolean {
    return this.#waiting.length > 0;
  }

  /** Waits for a turn. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(this.#give);
    });
  }

  readonly #give = () => {
    for (const goOn of this.#waiting.splice(0, inOneTurn)) goOn();
    if (this.#waiting.length > 0) setImmediate(this.#give);
  };
}
