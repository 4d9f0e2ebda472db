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

/** What comes before the lengths of the records, in bytes: six numbers of 32 bits, then two of 16. */
const fixedLength = 28;

const comma = Buffer.from(',');
const newLine = 0x0a;

/** A block as it was stored, checked. */
export interface Block {
  /** The records, joined by commas, deflated. */
  readonly deflated: Buffer;
  /** CRC-32 of that text, and what moves a CRC past it, see crc32.ts. */
  readonly crc: number;
  readonly shift: number;
  /** The same of the text with a comma before it. */
  readonly crcAfterComma: number;
  readonly shiftAfterComma: number;
  /** In bytes. */
  readonly textLength: number;
  /** How many records there are. */
  readonly count: number;
  /** All before the deflated text. */
  readonly header: Buffer;
}

/** Compresses records, each as JSON text, into a block as it is stored. */
export async function packBlock(records: readonly string[]): Promise<Buffer> {
  const text = Buffer.from(records.join(','));
  const lengths: number[] = [];
  for (const record of records) pushVarint(lengths, Buffer.byteLength(record));
  const header = Buffer.alloc(fixedLength + lengths.length);
  const crc = crc32(text);
  header.writeUInt32LE(crc, 4);
  header.writeInt32LE(crcShift(text.length), 8);
  header.writeUInt32LE(text.length, 12);
  header.writeUInt32LE(combineCrc32(crc32(comma), crc, crcShift(text.length)), 16);
  header.writeInt32LE(crcShift(comma.length + text.length), 20);
  header.writeUInt16LE(records.length, 24);
  header.writeUInt16LE(header.length, 26);
  header.set(lengths, fixedLength);
  const deflated = await deflate(text, { finishFlush: constants.Z_FULL_FLUSH });
  const stored = Buffer.concat([header, deflated]);
  stored.writeUInt32LE(crc32(stored.subarray(4)), 0);
  return stored;
}

/** Opens a stored block; `null` when a bit of it is not as it was stored. */
export function openBlock(stored: Buffer): Block | null {
  if (stored.length < fixedLength || crc32(stored.subarray(4)) !== stored.readUInt32LE(0)) return null;
  const headerLength = stored.readUInt16LE(26);
  return {
    deflated: stored.subarray(headerLength),
    crc: stored.readUInt32LE(4),
    shift: stored.readInt32LE(8),
    textLength: stored.readUInt32LE(12),
    crcAfterComma: stored.readUInt32LE(16),
    shiftAfterComma: stored.readInt32LE(20),
    count: stored.readUInt16LE(24),
    header: stored.subarray(0, headerLength),
  };
}

/** Where each record begins in the text of a block, and, last, where one more would begin. */
export function recordStarts({ header, count }: Block): number[] {
  const starts = [0];
  let start = 0;
  for (let n = 0, at = fixedLength; n < count; n += 1) {
    let length = 0;
    for (let shift = 1, byte = 0x80; byte & 0x80; shift *= 0x80, at += 1) {
      byte = header[at] as number;
      length += (byte & 0x7f) * shift;
    }
    start += length + 1; // The comma.
    starts.push(start);
  }
  return starts;
}

/** The text of a block. */
export function blockText({ deflated }: Block): Buffer {
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
