// A block: 50 records in list order, compressed at import so that answers can be put together from whole blocks.
// Its deflated text (RFC 1951) ends at a byte and is not final: one deflate stream may go on with another block.

import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, inflateRawSync } from 'node:zlib';
import { combineCrc32, crcShift } from './crc32.ts';

/** How many records a block has; only the last one of a list has fewer. */
export const blockRecords = 50;

/** A block of records that are larger than this is not made, in characters: it is then read by its records. */
export const maxBlockLength = 1_000_000;

const deflate = promisify(deflateRaw);

/** What comes before the lengths of the records, in bytes: five numbers of 32 bits, then two of 16. */
const fixedLength = 24;

/** A stored block ends with the CRC-32 of all before it; the CRC-32 of bytes that end with theirs is always this. */
const checkLength = 4;
const residue = 0x2144df1c;

const comma = Buffer.from(',');
const newLine = 0x0a;

/** A block as it was stored, checked. */
export interface Block {
  readonly stored: Buffer;
  /** Where in it the records lie, joined by commas and deflated, and how long that is. */
  readonly deflatedFrom: number;
  readonly deflatedLength: number;
  /** CRC-32 of their text, and what moves a CRC past it, see crc32.ts. */
  readonly crc: number;
  readonly shift: number;
  /** The same of the text with a comma before it. */
  readonly crcAfterComma: number;
  readonly shiftAfterComma: number;
  /** In bytes. */
  readonly textLength: number;
  /** How many records there are. */
  readonly count: number;
}

/** Compresses records, each as JSON text, into a block as it is stored. */
export async function packBlock(records: readonly string[]): Promise<Buffer> {
  const text = Buffer.from(records.join(','));
  const lengths: number[] = [];
  for (const record of records) pushVarint(lengths, Buffer.byteLength(record));
  const header = Buffer.alloc(fixedLength + lengths.length);
  const crc = crc32(text);
  header.writeUInt32LE(crc, 0);
  header.writeInt32LE(crcShift(text.length), 4);
  header.writeUInt32LE(text.length, 8);
  header.writeUInt32LE(combineCrc32(crc32(comma), crc, crcShift(text.length)), 12);
  header.writeInt32LE(crcShift(comma.length + text.length), 16);
  header.writeUInt16LE(records.length, 20);
  header.writeUInt16LE(header.length, 22);
  header.set(lengths, fixedLength);
  const deflated = await deflate(text, { finishFlush: constants.Z_FULL_FLUSH });
  const stored = Buffer.concat([header, deflated], header.length + deflated.length + checkLength);
  const unchecked = stored.length - checkLength;
  stored.writeUInt32LE(crc32(stored.subarray(0, unchecked)), unchecked);
  return stored;
}

/** Opens a stored block; `null` when a bit of it is not as it was stored. */
export function openBlock(stored: Buffer): Block | null {
  if (stored.length < fixedLength + checkLength || crc32(stored) !== residue) return null;
  const deflatedFrom = stored.readUInt16LE(22);
  return {
    stored,
    deflatedFrom,
    deflatedLength: stored.length - checkLength - deflatedFrom,
    crc: stored.readUInt32LE(0),
    shift: stored.readInt32LE(4),
    textLength: stored.readUInt32LE(8),
    crcAfterComma: stored.readUInt32LE(12),
    shiftAfterComma: stored.readInt32LE(16),
    count: stored.readUInt16LE(20),
  };
}

/** Where each record begins in the text of a block, and, last, where one more would begin. */
export function recordStarts({ stored, count }: Block): number[] {
  const starts = [0];
  let start = 0;
  for (let n = 0, at = fixedLength; n < count; n += 1) {
    let length = 0;
    for (let shift = 1, byte = 0x80; byte & 0x80; shift *= 0x80, at += 1) {
      byte = stored[at] as number;
      length += (byte & 0x7f) * shift;
    }
    start += length + 1; // The comma.
    starts.push(start);
  }
  return starts;
}

/** The text of a block. */
export function blockText({ stored, deflatedFrom, deflatedLength }: Block): Buffer {
  const deflated = stored.subarray(deflatedFrom, deflatedFrom + deflatedLength);
  return inflateRawSync(deflated, { finishFlush: constants.Z_SYNC_FLUSH });
}

/** The records of a block, a line each. */
export function blockLines(block: Block): Buffer {
  const lines = Buffer.concat([blockText(block), comma]);
  for (const start of recordStarts(block).slice(1)) lines[start - comma.length] = newLine;
  return lines;
}

/** A number in seven bits a byte, the lowest first. */
function pushVarint(bytes: number[], value: number): void {
  let left = value;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) + 0x80);
  bytes.push(left);
}
