// In: which pages of a search index are wanted. Out: their entries. Of lists that are not large, the pages that were
// read last are remembered, for one process that serves.

import { LRUCache } from 'lru-cache';
import type { ContentFormat } from '../../shared/formats/content-format.ts';
import type { HashReads } from './hash-reads.ts';

/** How many characters of entries are remembered, and how much each entry takes besides its own. */
const maxRemembered = 32_000_000;
const entryOverhead = 100;

/** The pages of an index that never changes under its name. */
export interface PageList {
  readonly key: string;
  /** Differs from that of every other list of pages that the key ever held. */
  readonly name: string;
  readonly format: ContentFormat;
  /** Whether pages stay known once they were read. */
  readonly isRemembered: boolean;
}

/** Reads pages of search indexes. */
export class EntryPages {
  readonly #hashes: HashReads;
  readonly #pages = new LRUCache<string, readonly string[]>({
    maxSize: maxRemembered,
    sizeCalculation: (entries) => entries.reduce((sum, { length }) => sum + length + entryOverhead, 1),
  });

  constructor(hashes: HashReads) {
    this.#hashes = hashes;
  }

  /** Whether the pages of a key are still there: what is remembered of them may tell nothing of that. */
  areThere(key: string): Promise<boolean> {
    return this.#hashes.has(key);
  }

  /**
   * The entries of some pages, by their numbers; `null` when one of them is not there, or not as it was stored. Throws
   * whatever the connection throws.
   */
  async get(
    list: PageList,
    numbers: readonly number[],
  ): Promise<ReadonlyMap<number, readonly string[]> | null> {
    const pages = new Map<number, readonly string[]>();
    const unknown: number[] = [];
    for (const number of numbers) {
      const known = list.isRemembered ? this.#pages.get(nameOf(list, number)) : undefined;
      if (known) pages.set(number, known);
      else unknown.push(number);
    }
    if (unknown.length === 0) return pages;
    const stored = await this.#hashes.get(list.key, unknown.map(String));
    for (const [n, number] of unknown.entries()) {
      const bytes = stored[n];
      const entries = bytes ? list.format.openPage(bytes, number) : null;
      if (!entries) return null;
      if (list.isRemembered) this.#pages.set(nameOf(list, number), entries);
      pages.set(number, entries);
    }
    return pages;
  }
}

function nameOf({ name }: PageList, number: number): string {
  return `${name} ${number}`;
}
