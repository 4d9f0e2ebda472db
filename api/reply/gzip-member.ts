// Puts texts and blocks that were deflated at import together into one gzip member (RFC 1952), without compressing.

import { crc32 } from 'node:zlib';
import type { Block } from '../../shared/store/block.ts';
import { combineCrc32 } from '../../shared/store/crc32.ts';

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

/** The length of a list's text, in bytes. */
export function textLength({ start, parts, end }: ListText): number {
  let length = start.length + end.length + Math.max(0, parts.length - 1);
  for (const part of parts) length += Buffer.isBuffer(part) ? part.length : part.textLength;
  return length;
}

/** A list's text as one gzip member. */
export function gzipMember(text: ListText): Buffer {
  const until = header.length + deflatedLength(text);
  const member = Buffer.allocUnsafe(until + trailerLength);
  member.set(header);
  putDeflated(member, header.length, text);
  member.writeUInt32LE(crcOf(text), until);
  member.writeUInt32LE(textLength(text) % 2 ** 32, until + 4);
  return member;
}

function deflatedLength({ start, parts, end }: ListText): number {
  let length = storedLength(start) + storedLength(end);
  length += Math.max(0, parts.length - 1) * storedLength(comma);
  for (const part of parts) length += Buffer.isBuffer(part) ? storedLength(part) : part.deflatedLength;
  return length;
}

function putDeflated(target: Buffer, from: number, { start, parts, end }: ListText): void {
  let at = putStored(target, from, start, false);
  let isFirst = true;
  for (const part of parts) {
    if (!isFirst) at = putStored(target, at, comma, false);
    isFirst = false;
    if (Buffer.isBuffer(part)) at = putStored(target, at, part, false);
    else {
      const { stored, deflatedFrom, deflatedLength } = part;
      at += stored.copy(target, at, deflatedFrom, deflatedFrom + deflatedLength);
    }
  }
  putStored(target, at, end, true);
}

function crcOf({ start, parts, end }: ListText): number {
  let crc = crcAfter(0, start);
  let isFirst = true;
  for (const part of parts) {
    if (Buffer.isBuffer(part)) crc = crcAfter(isFirst ? crc : crcAfter(crc, comma), part);
    else if (isFirst) crc = combineCrc32(crc, part.crc, part.shift);
    else crc = combineCrc32(crc, part.crcAfterComma, part.shiftAfterComma);
    isFirst = false;
  }
  return crcAfter(crc, end);
}

/** Node 20 gives 0 for some buffers without a byte, whatever came before. */
function crcAfter(crc: number, text: Buffer): number {
  return text.length === 0 ? crc : crc32(text, crc);
}

function storedLength({ length }: Buffer): number {
  return length + Math.max(1, Math.ceil(length / maxStored)) * storedStart;
}

/** Text in blocks that are not compressed. @returns where they end */
function putStored(target: Buffer, from: number, text: Buffer, isLast: boolean): number {
  let at = from;
  for (let read = 0; read === 0 || read < text.length; read += maxStored) {
    const length = Math.min(maxStored, text.length - read);
    target[at] = isLast && read + length === text.length ? 1 : 0;
    target.writeUInt16LE(length, at + 1);
    target.writeUInt16LE(~length & 0xffff, at + 3);
    at += storedStart;
    target.set(length === text.length ? text : text.subarray(read, read + length), at);
    at += length;
  }
  return at;
}
