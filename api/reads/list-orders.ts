// In: places in a list. Out: the ids of the records there. The ranges of ids that were asked for last are remembered,
// for one process that serves.

import { LRUCache } from 'lru-cache';
import { idBytes, rangeIds, unpackId } from '../../shared/store/packed-ids.ts';
import type { HashReads } from './hash-reads.ts';

/** How many bytes of ids are remembered. */
const maxRemembered = 16_000_000;

/** An order that never changes under its name. */
export interface ListOrder {
  readonly key: string;
  /** Differs from that of every other list that the key ever held. */
  readonly name: string;
  /** How many ids it has. */
  readonly count: number;
}

/** Reads orders of lists. */
export class ListOrders {
  readonly #hashes: HashReads;
  readonly #ranges = new LRUCache<string, Buffer>({
    maxSize: maxRemembered,
    sizeCalculation: ({ length }) => length,
  });

  constructor(hashes: HashReads) {
    this.#hashes = hashes;
  }

  /**
   * Ids by their places in a list, as decimal digits; fewer than asked for where the order is not whole. Throws what the
   * connection throws.
   * @param from from 0
   * @param count no more than the list has from there on
   */
  async ids(order: ListOrder, { from, count }: { from: number; count: number }): Promise<string[]> {
    const ids: string[] = [];
    for (let at = from; at < from + count; ) {
      const range = Math.floor(at / rangeIds);
      const packed = this.#ranges.get(rangeName(order, range)) ?? (await this.#read(order, range));
      const until = Math.min(from + count, (range + 1) * rangeIds);
      const there = Math.min(until, range * rangeIds + Math.floor(packed.length / idBytes));
      for (; at < there; at += 1) ids.push(unpackId(packed, at % rangeIds));
      if (there < until) break;
    }
    return ids;
  }

  /** A range; it is remembered where it is whole. */
  async #read(order: ListOrder, range: number): Promise<Buffer> {
    const [stored = null] = await this.#hashes.get(order.key, [String(range)]);
    const packed = stored;
    if (!packed) return nothing;
    if (packed.length !== Math.min(rangeIds, order.count - range * rangeIds) * idBytes) return packed;
    // As it came, it would hold on to all that came with it.
    const own = Buffer.allocUnsafeSlow(packed.length);
    packed.copy(own);
    this.#ranges.set(rangeName(order, range), own);
    return own;
  }
}

const nothing = Buffer.alloc(0);

function rangeName({ name }: ListOrder, range: number): string {
  return `${name} ${range}`;
}
