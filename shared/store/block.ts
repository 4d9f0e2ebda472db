// A block: 200 records in list order, which the import compresses by quarters. Responses join whole quarters. Deflate data
// (RFC 1951) that ends at a byte and is not final can be followed by another quarter or block in one stream.

import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, inflateRawSync } from 'node:zlib';

/** The number of records of a block, and of a quarter; only the last ones of a list have fewer. */
export const blockRecords = 200;
export const quarterRecords = 50;

/** Longer blocks, in characters, are not stored; their records are read one by one. */
export const maxBlockLength = 1_000_000;

const deflate = promisify(deflateRaw);

/** A window and tables of the size of a quarter: with zlib's defaults, most of the time is spent on clearing them. */
const deflateOptions = { finishFlush: constants.Z_FULL_FLUSH, windowBits: 14, memLevel: 7, chunkSize: 4_096 };

/** A stored block begins with the number of its records and the offset of its deflate data, 16 bits each. */
const countsLength = 4;

/** Next come the facts of the block and of each quarter: six numbers of 32 bits, see {@link factsOf}. */
const factsLength = 24;

/** Next comes the length of each record, in bytes, 32 bits. */
const lengthSize = 4;

const comma = Buffer.from(',');
const newLine = 0x0a;

/** A comma between two quarters, as an uncompressed block of deflate (RFC 1951, section 3.2.4). */
const storedComma = Buffer.from([0, 1, 0, 0xfe, 0xff, ...comma]);

/** A stored block, or a quarter of it. */
export interface Block {
  readonly stored: Buffer;
  /** The offset and length of its deflate data, whose text is the records joined by commas. */
  readonly deflatedFrom: number;
  readonly deflatedLength: number;
  /** CRC-32 of the text, and the factor that shifts a CRC past it, see {@link crcShift}. */
  readonly crc: number;
  readonly shift: number;
  /** The same for the text with a comma before it. */
  readonly crcAfterComma: number;
  readonly shiftAfterComma: number;
  /** In bytes. */
  readonly textLength: number;
  /** The number of records, and the index of the first one in the block. */
  readonly count: number;
  readonly first: number;
  /** The text of the whole block. */
  readonly whole: BlockText;
}

/** A stored block with its text and its quarters, computed when first needed. */
class BlockText {
  readonly stored: Buffer;
  /** Empty until first needed. */
  readonly quarters: Block[] = [];
  #text: Buffer | undefined;
  #starts: readonly number[] | undefined;

  constructor(stored: Buffer) {
    this.stored = stored;
  }

  get text(): Buffer {
    this.#text ??= inflate(
      this.stored.subarray(this.stored.readUInt16LE(2)),
      this.stored.readUInt32LE(countsLength + 16),
    );
    return this.#text;
  }

  /** The offsets of the records and, last, of the end. */
  get starts(): readonly number[] {
    this.#starts ??= this.#findStarts();
    return this.#starts;
  }

  #findStarts(): number[] {
    const count = this.stored.readUInt16LE(0);
    const lengths = countsLength + (quarterCount(count) + 1) * factsLength;
    const starts = [0];
    let start = 0;
    for (let n = 0; n < count; n += 1) {
      start += this.stored.readUInt32LE(lengths + n * lengthSize) + comma.length;
      starts.push(start);
    }
    return starts;
  }
}

function inflate(deflated: Buffer, textLength: number): Buffer {
  return inflateRawSync(deflated, {
    finishFlush: constants.Z_SYNC_FLUSH,
    // zlib needs at least 64 bytes, and doubles the buffer if it becomes full.
    chunkSize: Math.max(64, textLength + 1),
  });
}

function quarterCount(count: number): number {
  return Math.ceil(count / quarterRecords);
}

/** Compresses records, each as JSON text, into a block in stored form. */
export async function packBlock(records: readonly string[]): Promise<Buffer> {
  const whole = Buffer.from(records.join(','));
  const lengths = Buffer.alloc(records.length * lengthSize);
  const quarters: Buffer[] = [];
  let [from, to] = [0, 0];
  for (const [n, record] of records.entries()) {
    const length = Buffer.byteLength(record);
    lengths.writeUInt32LE(length, n * lengthSize);
    to += length;
    if ((n + 1) % quarterRecords === 0 || n + 1 === records.length) {
      quarters.push(whole.subarray(from, to));
      from = to + comma.length;
    }
    to += comma.length;
  }
  const deflated = await Promise.all(quarters.map((text) => deflate(text, deflateOptions)));
  const joined = Buffer.concat(deflated.flatMap((it, n) => (n === 0 ? [it] : [storedComma, it])));
  const facts = [
    factsOf(whole, joined.length),
    ...quarters.map((text, n) => factsOf(text, (deflated[n] as Buffer).length)),
  ];
  const counts = Buffer.alloc(countsLength);
  counts.writeUInt16LE(records.length, 0);
  counts.writeUInt16LE(countsLength + facts.length * factsLength + lengths.length, 2);
  return Buffer.concat([counts, ...facts, lengths, joined]);
}

function factsOf(text: Buffer, deflatedLength: number): Buffer {
  const facts = Buffer.alloc(factsLength);
  const crc = crc32(text);
  facts.writeUInt32LE(crc, 0);
  facts.writeInt32LE(crcShift(text.length), 4);
  facts.writeUInt32LE(combineCrc32(crc32(comma), crc, crcShift(text.length)), 8);
  facts.writeInt32LE(crcShift(comma.length + text.length), 12);
  facts.writeUInt32LE(text.length, 16);
  facts.writeUInt32LE(deflatedLength, 20);
  return facts;
}

/** Opens a stored block; `null` if it is too short. */
export function openBlock(stored: Buffer): Block | null {
  if (stored.length < countsLength + factsLength) return null;
  return pieceOf(new BlockText(stored), countsLength, {
    deflatedFrom: stored.readUInt16LE(2),
    first: 0,
    count: stored.readUInt16LE(0),
  });
}

/** Returns the quarters of a block. */
export function quartersOf({ whole, deflatedFrom, count }: Block): readonly Block[] {
  if (whole.quarters.length > 0) return whole.quarters;
  let from = deflatedFrom;
  for (let first = 0; first < count; first += quarterRecords) {
    const facts = countsLength + factsLength * (1 + first / quarterRecords);
    const its = { deflatedFrom: from, first, count: Math.min(quarterRecords, count - first) };
    const quarter = pieceOf(whole, facts, its);
    whole.quarters.push(quarter);
    from += quarter.deflatedLength + storedComma.length;
  }
  return whole.quarters;
}

/** Reads the facts of a block or a quarter, see {@link factsOf}. */
function pieceOf(
  whole: BlockText,
  at: number,
  { deflatedFrom, first, count }: Pick<Block, 'deflatedFrom' | 'first' | 'count'>,
): Block {
  const { stored } = whole;
  return {
    stored,
    deflatedFrom,
    deflatedLength: stored.readUInt32LE(at + 20),
    crc: stored.readUInt32LE(at),
    shift: stored.readInt32LE(at + 4),
    crcAfterComma: stored.readUInt32LE(at + 8),
    shiftAfterComma: stored.readInt32LE(at + 12),
    textLength: stored.readUInt32LE(at + 16),
    count,
    first,
    whole,
  };
}

/** Returns the text of a block or a quarter, or of some of its records. */
export function blockText(block: Block, from = 0, count = block.count): Buffer {
  const { text, starts } = block.whole;
  const first = block.first + from;
  return text.subarray(starts[first], (starts[first + count] as number) - comma.length);
}

/** Returns the records of a block, one per line. */
export function blockLines(block: Block): Buffer {
  const lines = Buffer.concat([block.whole.text, comma]);
  for (const start of block.whole.starts.slice(1)) lines[start - comma.length] = newLine;
  return lines;
}

/** Returns whether a stored block is exactly one of these records: its text, and everything precomputed from it. */
export function isBlockOf(stored: Buffer, records: readonly Buffer[]): boolean {
  try {
    const block = openBlock(stored);
    if (!block || block.count !== records.length) return false;
    const { starts } = block.whole;
    return (
      records.every(({ length }, n) => (starts[n] as number) + length + comma.length === starts[n + 1]) &&
      [block, ...quartersOf(block)].every((piece) => isPieceOf(piece, records))
    );
  } catch {
    return false; // The bytes are not deflate data.
  }
}

function isPieceOf(piece: Block, records: readonly Buffer[]): boolean {
  const { stored, deflatedFrom, deflatedLength, textLength, first, count } = piece;
  const its = records.slice(first, first + count);
  const text = Buffer.concat(its.flatMap((record, n) => (n === 0 ? [record] : [comma, record])));
  const deflated = stored.subarray(deflatedFrom, deflatedFrom + deflatedLength);
  return inflate(deflated, textLength).equals(text) && factsIn(piece).equals(factsOf(text, deflatedLength));
}

/** Writes the facts of a block or quarter in stored form, see {@link factsOf}. */
function factsIn(piece: Block): Buffer {
  const facts = Buffer.alloc(factsLength);
  facts.writeUInt32LE(piece.crc, 0);
  facts.writeInt32LE(piece.shift, 4);
  facts.writeUInt32LE(piece.crcAfterComma, 8);
  facts.writeInt32LE(piece.shiftAfterComma, 12);
  facts.writeUInt32LE(piece.textLength, 16);
  facts.writeUInt32LE(piece.deflatedLength, 20);
  return facts;
}

/** The number of ids in a range; only the last range of a list has fewer. */
export const rangeIds = blockRecords;

/** The size of an id, in bytes. */
export const idBytes = 8;

/** Packs ids in stored form. */
export function packIds(ids: readonly number[]): Buffer {
  const packed = Buffer.allocUnsafe(ids.length * idBytes);
  for (const [n, id] of ids.entries()) packed.writeBigUInt64BE(BigInt(id), n * idBytes);
  return packed;
}

/** Returns the id at an index of a range, in decimal digits; ids have at most 53 bits. */
export function unpackId(packed: Buffer, index: number): string {
  const at = index * idBytes;
  return String(packed.readUInt32BE(at) * 2 ** 32 + packed.readUInt32BE(at + 4));
}

/** Returns all ids of a range, in decimal digits. */
export function unpackIds(packed: Buffer): string[] {
  return Array.from({ length: Math.floor(packed.length / idBytes) }, (_, index) => unpackId(packed, index));
}

const polynomial = 0xedb88320 | 0;

/** x^0. All arithmetic is on signed 32-bit integers, the fastest numbers in JavaScript. */
const one = 0x80000000 | 0;

/** Returns a · b. */
function multiply(a: number, b: number): number {
  let product = 0;
  let power = b;
  for (let n = 0; n < 32; n += 1) {
    product ^= power & ((a << n) >> 31);
    power = (power >>> 1) ^ (polynomial & -(power & 1));
  }
  return product;
}

/** x^(8·2^n), by n. */
const powers: number[] = [multiply(0x08000000, 0x08000000)];
for (let n = 1; n < 32; n += 1) powers.push(multiply(powers[n - 1] as number, powers[n - 1] as number));

/** Returns the factor that shifts a CRC past a text of this many bytes: x^(8·length). */
export function crcShift(length: number): number {
  let factor = one;
  for (let n = 0, left = length; left > 0; n += 1, left = Math.floor(left / 2)) {
    if (left % 2 === 1) factor = multiply(factor, powers[n] as number);
  }
  return factor;
}

/**
 * Returns the CRC-32 of two concatenated texts.
 * @param shift {@link crcShift} of the second text's length
 */
export function combineCrc32(first: number, second: number, shift: number): number {
  return (multiply(first, shift) ^ second) >>> 0;
}
