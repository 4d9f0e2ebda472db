// The order of a list: the ids of its records, packed into one string, so that a page of them is one range of bytes.

import { LRUCache } from 'lru-cache';
import type { Redis } from './redis.ts';

/** How many bytes an id takes: an unsigned integer, the highest byte first. */
export const idBytes = 8;

/** Packs ids as they are stored. */
export function packIds(ids: readonly number[]): Buffer {
  const packed = Buffer.allocUnsafe(ids.length * idBytes);
  for (const [n, id] of ids.entries()) packed.writeBigUInt64BE(BigInt(id), n * idBytes);
  return packed;
}

/** Ids by their places in a list, from 0, as decimal digits; fewer than asked for where the order is not whole. */
export async function readIds(
  redis: Redis,
  order: string,
  { from, count }: { readonly from: number; readonly count: number },
): Promise<string[]> {
  const packed = await redis.getrangeBuffer(order, from * idBytes, (from + count) * idBytes - 1);
  return Array.from({ length: Math.floor(packed.length / idBytes) }, (_, n) => unpackId(packed, n * idBytes));
}

/** How many ids are read at once, and how many bytes of them are remembered. */
const rangeIds = 1_024;
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
  readonly #redis: Redis;
  readonly #ranges: LRUCache<string, Buffer, { order: ListOrder; from: number }>;

  /** @param redis is borrowed */
  constructor(redis: Redis) {
    this.#redis = redis;
    this.#ranges = new LRUCache({
      maxSize: maxRemembered,
      sizeCalculation: ({ length }) => length,
      fetchMethod: async (_name, _stale, { context: { order, from } }) => {
        const count = Math.min(rangeIds, order.count - from);
        const packed = await redis.getrangeBuffer(order.key, from * idBytes, (from + count) * idBytes - 1);
        if (packed.length !== count * idBytes) throw new NotWholeError();
        return Buffer.from(packed); // As it came, it would hold on to all that came with it.
      },
    });
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
      const packed = await this.#range(order, range);
      // A range that is not whole is not remembered; these ids may be there all the same.
      if (!packed) return readIds(this.#redis, order.key, { from, count });
      const until = Math.min(from + count, (range + 1) * rangeIds);
      for (; at < until; at += 1) ids.push(unpackId(packed, (at % rangeIds) * idBytes));
    }
    return ids;
  }

  async #range(order: ListOrder, range: number): Promise<Buffer | null> {
    const name = `${order.name} ${range}`;
    const known = this.#ranges.get(name);
    if (known) return known;
    const context = { order, from: range * rangeIds };
    try {
      return (await this.#ranges.fetch(name, { context, ignoreFetchAbort: true })) ?? null;
    } catch (error) {
      if (error instanceof NotWholeError) return null;
      throw error;
    }
  }
}

/** What is thrown is not remembered. */
class NotWholeError extends Error {}

/** An id as decimal digits; ids have at most 53 bits. */
function unpackId(packed: Buffer, at: number): string {
  return String(packed.readUInt32BE(at) * 2 ** 32 + packed.readUInt32BE(at + 4));
}
