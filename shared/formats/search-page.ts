// A page of a search index: 32 sorted entries, each stored without the beginning that it has in common with the one
// before it, behind a CRC-32 of all that.

import { crc32 } from 'node:zlib';
import { VarintReader, varint } from '../store/varint.ts';
import { beginningAt } from './checked-bytes.ts';

/** How many entries a page has; only the last one of an index has fewer. */
export const pageEntries = 32;

/** Writes one page of entries, sorted, each as its bytes. @param place the number of the page, from 0 */
export function packEntries(entries: readonly string[], place: number): Buffer {
  let text = '';
  let before = '';
  for (const entry of entries) {
    const shared = sharedLength(before, entry);
    text += varint(shared) + varint(entry.length - shared) + entry.slice(shared);
    before = entry;
  }
  const stored = Buffer.from(`\0\0\0\0${text}`, 'latin1');
  stored.writeUInt32LE(crc32(stored.subarray(4), beginningAt(place)), 0);
  return stored;
}

/** The entries of a stored page, each as its bytes; `null` when a bit of it is not as it was stored. @param place see {@link packEntries} */
export function openEntries(stored: Buffer, place: number): string[] | null {
  if (stored.length < 4 || crc32(stored.subarray(4), beginningAt(place)) !== stored.readUInt32LE(0))
    return null;
  const text = stored.toString('latin1');
  const entries: string[] = [];
  const numbers = new VarintReader(stored, 4);
  let entry = '';
  while (numbers.at < text.length) {
    const shared = numbers.next();
    const length = numbers.next();
    entry = entry.slice(0, shared) + text.slice(numbers.at, numbers.at + length);
    entries.push(entry);
    numbers.at += length;
  }
  return entries;
}

function sharedLength(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let n = 0;
  while (n < most && a.charCodeAt(n) === b.charCodeAt(n)) n += 1;
  return n;
}
