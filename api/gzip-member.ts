// Puts texts and blocks that were deflated at import together into one gzip member (RFC 1952), without compressing.

import { crc32 } from 'node:zlib';
import type { Block } from '../shared/block.ts';
import { combineCrc32 } from '../shared/crc32.ts';

/** A part of a list's text: records as they are, joined by commas, or a block, which stands for such a text. */
export type ListPart = Buffer | Block;

/** A text whose middle is a list of parts, with commas between them. */
export interface ListText {
  readonly start: Buffer;
  readonly parts: readonly ListPart[];
  readonly end: Buffer;
}

/** Deflate, no name, no time, system unknown (RFC 1952, section 2.3). */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
const trailerLength = 8;

/** Most that one stored block of deflate holds, and what it has before its text, in bytes (RFC 1951, section 3.2.4). */
const maxStored = 65_535;
const storedStart = 5;

const comma = Buffer.from(',');
const storedComma = stored(comma, false);

/** The length of a list's text, in bytes. */
export function textLength({ start, parts, end }: ListText): number {
  let length = start.length + end.length + Math.max(0, parts.length - 1);
  for (const part of parts) length += Buffer.isBuffer(part) ? part.length : part.textLength;
  return length;
}

/** A list's text as one gzip member. */
export function gzipMember(text: ListText): Buffer {
  const pieces = [header, ...deflatedPieces(text)];
  const member = joined(pieces, trailerLength);
  member.writeUInt32LE(crcOf(text), member.length - 8);
  member.writeUInt32LE(textLength(text) % 2 ** 32, member.length - 4);
  return member;
}

/** A list's text as one deflate stream. */
export function deflateStream(text: ListText): Buffer {
  return joined(deflatedPieces(text), 0);
}

function deflatedPieces({ start, parts, end }: ListText): Buffer[] {
  const pieces = [stored(start, false)];
  for (const [n, part] of parts.entries()) {
    if (n > 0) pieces.push(storedComma);
    pieces.push(Buffer.isBuffer(part) ? stored(part, false) : part.deflated);
  }
  pieces.push(stored(end, true));
  return pieces;
}

function crcOf({ start, parts, end }: ListText): number {
  let crc = crcAfter(0, start);
  for (const [n, part] of parts.entries()) {
    if (Buffer.isBuffer(part)) crc = crcAfter(n > 0 ? crcAfter(crc, comma) : crc, part);
    else if (n > 0) crc = combineCrc32(crc, part.crcAfterComma, part.shiftAfterComma);
    else crc = combineCrc32(crc, part.crc, part.shift);
  }
  return crcAfter(crc, end);
}

/** Node 20 gives 0 for some buffers without a byte, whatever came before. */
function crcAfter(crc: number, text: Buffer): number {
  return text.length === 0 ? crc : crc32(text, crc);
}

/** Text in blocks that are not compressed. */
function stored(text: Buffer, isLast: boolean): Buffer {
  const count = Math.max(1, Math.ceil(text.length / maxStored));
  const blocks = Buffer.allocUnsafe(text.length + count * storedStart);
  for (let n = 0, at = 0; n < count; n += 1) {
    const piece = text.subarray(n * maxStored, (n + 1) * maxStored);
    blocks[at] = isLast && n === count - 1 ? 1 : 0;
    blocks.writeUInt16LE(piece.length, at + 1);
    blocks.writeUInt16LE(~piece.length & 0xffff, at + 3);
    blocks.set(piece, at + storedStart);
    at += storedStart + piece.length;
  }
  return blocks;
}

/** All pieces in one buffer, with room behind them. */
function joined(pieces: readonly Buffer[], room: number): Buffer {
  let length = room;
  for (const piece of pieces) length += piece.length;
  const whole = Buffer.allocUnsafe(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
