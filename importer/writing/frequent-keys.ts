// In: the entries of a search index, in their order. Out: the further entries of keys that many records have, so that what
// finds a part of these reads no more than it gives.

import { frequentEntriesOf, frequentOver, keyIn } from '../../shared/formats/search-entries.ts';

/** Finds the frequent keys among sorted entries. */
export class FrequentKeys {
  #key: string | null = null;
  /** The entries of the key so far; `null` once there are so many of them that it is a frequent one. */
  #first: string[] | null = [];

  /** Takes the next entry. @returns the further entries that it calls for */
  take(entry: string): readonly string[] {
    const key = keyIn(entry);
    if (key === null) return none;
    if (key !== this.#key) {
      this.#key = key;
      this.#first = [];
    }
    if (this.#first === null) return frequentEntriesOf(entry);
    this.#first.push(entry);
    if (this.#first.length <= frequentOver) return none;
    const found = this.#first.flatMap(frequentEntriesOf);
    this.#first = null;
    return found;
  }
}

const none: readonly string[] = [];
