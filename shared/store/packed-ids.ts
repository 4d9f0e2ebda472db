// The ids of a list, packed: an unsigned integer of 64 bits each, the highest byte first, in ranges of as many as a
// block has records; behind each range stands its check.

import { checkLength, writeCheck } from '../formats/checked-bytes.ts';
import { blockRecords } from './block.ts';

/** How many ids a range has; only the last one of a list has fewer. */
export const rangeIds = blockRecords;

/** How many bytes an id takes. */
export const idBytes = 8;

/** Packs ids as they are stored. @param place the number of the range, from 0 */
export function packIds(ids: readonly number[], place: number): Buffer {
  const packed = Buffer.allocUnsafe(ids.length * idBytes + checkLength);
  for (const [n, id] of ids.entries()) packed.writeBigUInt64BE(BigInt(id), n * idBytes);
  writeCheck(packed, place);
  return packed;
}

/** The id at an index of a range, from 0, as decimal digits; ids have at most 53 bits. */
export function unpackId(packed: Buffer, index: number): string {
  const at = index * idBytes;
  return String(packed.readUInt32BE(at) * 2 ** 32 + packed.readUInt32BE(at + 4));
}

/** All ids of a range, as decimal digits. */
export function unpackIds(packed: Buffer): string[] {
  return Array.from({ length: Math.floor(packed.length / idBytes) }, (_, index) => unpackId(packed, index));
}
