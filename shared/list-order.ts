// The order of a list: the ids of its records, packed, by ranges of as many as a block has.

import { LRUCache } from 'lru-cache';
import { blockRecords } from './block.ts';
import { HashReads } from './hash-reads.ts';
import type { Redis } from './redis.ts';

/** How many ids are in one field of the order; only the last one of a list has fewer. */
export const rangeIds = blockRecords;

/** How many bytes an id takes: an unsigned integer, the highest byte first. */
const idBytes = 8;

/** Packs ids as they are stored. */
export function packIds(ids: readonly number[]): Buffer {
  const packed = Buffer.allocUnsafe(ids.length * idBytes);
  for (const [n, id] of ids.entries()) packed.writeBigUInt64BE(BigInt(id), n * idBytes);
  return packed;
}

/** Ids by their places in a list, from 0, as decimal digits; fewer than asked for where the order is not whole. */
export async function readIds(
  redis: Redis,
  key: string,
  { from, count }: { readonly from: number; readonly count: number },
): Promise<string[]> {
  return new ListOrders(new HashReads(redis)).ids({ key, name: key, count: from + count }, { from, count });
}

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

/** Orders of lists, for one process that serves: the ranges that were asked for last are remembered. */
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
      const packed = this.#ranges.get(nameOf(order, range)) ?? (await this.#read(order, range));
      const until = Math.min(from + count, (range + 1) * rangeIds);
      const there = Math.min(until, range * rangeIds + Math.floor(packed.length / idBytes));
      for (; at < there; at += 1) ids.push(unpackId(packed, (at % rangeIds) * idBytes));
      if (there < until) break;
    }
    return ids;
  }

  /** A range; it is remembered where it is whole. */
  async #read(order: ListOrder, range: number): Promise<Buffer> {
    const [packed = null] = await this.#hashes.get(order.key, [String(range)]);
    if (!packed) return nothing;
    if (packed.length !== Math.min(rangeIds, order.count - range * rangeIds) * idBytes) return packed;
    // As it came, it would hold on to all that came with it.
    const own = Buffer.allocUnsafeSlow(packed.length);
    packed.copy(own);
    this.#ranges.set(nameOf(order, range), own);
    return own;
  }
}

const nothing = Buffer.alloc(0);

function nameOf({ name }: ListOrder, range: number): string {
  return `${name} ${range}`;
}

/** An id as decimal digits; ids have at most 53 bits. */
function unpackId(packed: Buffer, at: number): string {
  return String(packed.readUInt32BE(at) * 2 ** 32 + packed.readUInt32BE(at + 4));
}
