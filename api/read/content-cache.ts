// Remembers what was read of contents: a content never changes under its id, so nothing here is ever stale.

import { LRUCache } from 'lru-cache';

/** How many bytes are remembered in one process. */
const defaultBytes = 64_000_000;

/** A value with the memory that it takes. */
interface Sized<Value> {
  readonly value: Value;
  /** In bytes; a value of 0 is not remembered. */
  readonly size: number;
}

/** A cache of blocks, orders of lists and lists of changes, by names that begin with a content's. */
export class ContentCache {
  readonly #known: LRUCache<string, Sized<unknown>>;
  readonly #reading = new Map<string, Promise<Sized<unknown>>>();

  constructor(bytes = defaultBytes) {
    this.#known = new LRUCache({ maxSize: bytes, sizeCalculation: ({ size }) => size });
  }

  /** Returns the value of a name, which always has the same type. Reads it once for all who ask at the same time. */
  async get<Value>(name: string, read: () => Promise<Sized<Value>>): Promise<Value> {
    const known = this.#known.get(name) ?? (await (this.#reading.get(name) ?? this.#read(name, read)));
    return known.value as Value;
  }

  async #read<Value>(name: string, read: () => Promise<Sized<Value>>): Promise<Sized<Value>> {
    const reading = read();
    this.#reading.set(name, reading);
    try {
      const found = await reading;
      if (found.size > 0) this.#known.set(name, found);
      return found;
    } finally {
      this.#reading.delete(name);
    }
  }
}
