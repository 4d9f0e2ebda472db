// The check behind what is stored: the CRC-32 of its bytes and of the place that they belong to, such as a record's id.

import { crc32 } from 'node:zlib';

/** How many bytes a check has. */
export const checkLength = 4;

/** The CRC-32 of bytes that end with theirs, whatever they begin with. */
const residue = 0x2144df1c;

/** Writes the check of a place's bytes into the last four of them. */
export function writeCheck(stored: Buffer, place: number): void {
  const unchecked = stored.length - checkLength;
  stored.writeUInt32LE(crc32(stored.subarray(0, unchecked), beginningAt(place)), unchecked);
}

/** Bytes with their check behind them. @param place a whole number that they belong to, from 0 */
export function withCheck(bytes: Buffer, place: number): Buffer {
  const stored = Buffer.allocUnsafe(bytes.length + checkLength);
  bytes.copy(stored);
  writeCheck(stored, place);
  return stored;
}

/** Whether bytes with a check are as they were stored, and where. */
export function isIntact(stored: Buffer, place: number): boolean {
  return stored.length >= checkLength && crc32(stored, beginningAt(place)) === residue;
}

/** What a CRC begins with at a place; at 0 it is the usual one. */
export function beginningAt(place: number): number {
  return ((place % 2 ** 32) ^ Math.floor(place / 2 ** 32)) >>> 0;
}
