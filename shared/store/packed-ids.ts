// The order of a list: the ids of each block of records, packed in 8 bytes each, the highest byte first.

import { blockRecords } from './block.ts';

/** How many ids a range has; only the last range of a list has fewer. */
export const rangeIds = blockRecords;

/** How many bytes an id takes. */
export const idBytes = 8;

/** Packs ids as they are stored. */
export function packIds(ids: readonly number[]): Buffer {
  const packed = Buffer.allocUnsafe(ids.length * idBytes);
  for (const [n, id] of ids.entries()) packed.writeBigUInt64BE(BigInt(id), n * idBytes);
  return packed;
}

/** Returns the id at an index of a range, as decimal digits; ids have at most 53 bits. */
export function unpackId(packed: Buffer, index: number): string {
  const at = index * idBytes;
  return String(packed.readUInt32BE(at) * 2 ** 32 + packed.readUInt32BE(at + 4));
}

/** Returns all ids of a range, as decimal digits. */
export function unpackIds(packed: Buffer): string[] {
  return Array.from({ length: Math.floor(packed.length / idBytes) }, (_, index) => unpackId(packed, index));
}
