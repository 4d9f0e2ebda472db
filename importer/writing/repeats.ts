// In: where pages begin, and duplicates. Out: the records that came again, the very same, on a later page. They look so
// where a list moved while it was walked, and where it holds a record twice.

import { createHash } from 'node:crypto';
import type { RecordBatch } from '../parse/pages.ts';

/** What came again on a later page. */
export interface Repeats {
  readonly count: number;
  /** Positions of the first of them. */
  readonly first: readonly [before: number, again: number];
  /** Over the positions of all of them, so that two walks can be compared. */
  readonly digest: string;
}

/** Finds them, in the memory of a number for each page. */
export class RepeatsFinder {
  readonly #pageStarts: number[] = [];
  readonly #digest = createHash('sha256');
  #count = 0;
  #first: Repeats['first'] = [0, 0];

  /** Learns where pages begin; to be given all batches, in order. */
  takeBatch({ page, records: [record] }: RecordBatch): void {
    if (record && page > this.#pageStarts.length) this.#pageStarts.push(record.position);
  }

  /** Takes a record that is the same as one before it. */
  takeSame(before: number, again: number): void {
    if (this.#pageOf(before) === this.#pageOf(again)) return;
    if (this.#count === 0) this.#first = [before, again];
    this.#count += 1;
    this.#digest.update(`${before} ${again}\n`);
  }

  /** What came again, `null` where nothing did; to be asked once, at the end. */
  found(): Repeats | null {
    if (this.#count === 0) return null;
    return { count: this.#count, first: this.#first, digest: this.#digest.digest('hex') };
  }

  #pageOf(position: number): number {
    let [low, high] = [0, this.#pageStarts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#pageStarts[middle] as number) <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
