// The order of a list: the ids of its records, packed into one string, so that a page of them is one range of bytes.

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
  return Array.from({ length: Math.floor(packed.length / idBytes) }, (_, n) =>
    String(packed.readBigUInt64BE(n * idBytes)),
  );
}
