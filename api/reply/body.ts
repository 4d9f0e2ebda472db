// The body of a list as text and as gzip. Compressed blocks of the importer are joined without compressing again.

import { promisify } from 'node:util';
import { crc32, gzip, type ZlibOptions } from 'node:zlib';
import { type Block, blockText, combineCrc32, quarterRecords, quartersOf } from '../../shared/store/block.ts';
import type { ListRange } from '../read/read-model.ts';

/** A body. */
export interface Body {
  /** Length of the text, in bytes. */
  readonly length: number;
  text(): Buffer;
  gzip(): Buffer | Promise<Buffer>;
  /** The text in pieces, if that avoids a copy. */
  texts?(): readonly Buffer[];
}

/** For bodies compressed per response: level 6 takes four times as long and makes a page of a search only a seventh smaller. */
export const onTheFly = { level: 2 } as const;

const compress: (text: Buffer, options: ZlibOptions) => Promise<Buffer> = promisify(gzip);

const commaByte = ','.charCodeAt(0);

/** A body that is compressed when it is sent. */
export function plainBody(text: Buffer): Body {
  return { length: text.length, text: () => text, gzip: () => compress(text, onTheFly) };
}

/** A body for several responses: each encoding is made once. */
export function sharedBody(body: Body): Body {
  let text: Buffer | undefined;
  let gzip: Buffer | Promise<Buffer> | undefined;
  return {
    length: body.length,
    text: () => (text ??= body.text()),
    gzip: () => (gzip ??= body.gzip()),
  };
}

/** A body around records of a list. */
export function listBody(start: Buffer, part: ListRange['part'], end: Buffer): Body {
  if ('blocks' in part) {
    const parts = slices(part.blocks, part.span);
    const texts = parts.filter((it) => Buffer.isBuffer(it));
    return texts.length < parts.length
      ? splicedBody({ start, parts, end })
      : uncompressedBody(joined(start, texts, end));
  }
  const text = joined(start, part.records, end);
  // Compressing so little would take longer than the rest of the response.
  return part.records.length < quarterRecords ? uncompressedBody(text) : plainBody(text);
}

/** Returns whole blocks and quarters as stored, and the wanted records of the first and last quarter as text. */
function slices(blocks: readonly Block[], { from, count }: { from: number; count: number }): ListPart[] {
  const parts: ListPart[] = [];
  let skip = from;
  let left = count;
  for (const block of blocks) {
    const taken = Math.min(left, block.count - skip);
    if (taken === block.count) parts.push(block);
    else if (taken < quarterRecords) parts.push(blockText(block, skip, taken));
    else if (block.count > quarterRecords)
      parts.push(...slices(quartersWith(block, skip, taken), { from: skip % quarterRecords, count: taken }));
    else parts.push(blockText(block, skip, taken));
    left -= taken;
    skip = 0;
  }
  return parts;
}

/** Returns the quarters that contain some records of a block. */
function quartersWith(block: Block, skip: number, taken: number): readonly Block[] {
  const first = Math.floor(skip / quarterRecords);
  return quartersOf(block).slice(first, Math.ceil((skip + taken) / quarterRecords));
}

/** A body that is not compressed: its gzip form only wraps the text. */
function uncompressedBody(text: Buffer): Body {
  const { length } = text;
  return { length, text: () => text, gzip: () => gzipMember({ start: text, parts: [], end: nothing }) };
}

const nothing = Buffer.alloc(0);

/** A body with compressed parts; nothing is compressed again. */
function splicedBody(text: ListText): Body {
  return {
    length: textLength(text),
    text: () => Buffer.concat(textsOf(text)),
    gzip: () => gzipMember(text),
    texts: () => textsOf(text),
  };
}

function textsOf({ start, parts, end }: ListText): Buffer[] {
  const pieces = [start];
  for (const part of parts) {
    if (pieces.length > 1) pieces.push(comma);
    pieces.push(Buffer.isBuffer(part) ? part : blockText(part));
  }
  pieces.push(end);
  return pieces;
}

function joined(start: Buffer, records: readonly Buffer[], end: Buffer): Buffer {
  let length = start.length + Math.max(0, records.length - 1) + end.length;
  for (const record of records) length += record.length;
  const text = Buffer.allocUnsafe(length);
  text.set(start);
  let at = start.length;
  for (const record of records) {
    if (at > start.length) at = text.writeUInt8(commaByte, at);
    text.set(record, at);
    at += record.length;
  }
  text.set(end, at);
  return text;
}

/** A part of a list's text: records joined by commas, or a stored block of such text. */
export type ListPart = Buffer | Block;

/** A text whose middle is a list of parts, separated by commas. */
export interface ListText {
  readonly start: Buffer;
  readonly parts: readonly ListPart[];
  readonly end: Buffer;
}

/** Deflate, no name, no time, system unknown (RFC 1952, section 2.3). */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
const trailerLength = 8;

/** The longest stored block of deflate, and the length of its header, in bytes (RFC 1951, section 3.2.4). */
const maxStored = 65_535;
const storedStart = 5;

const comma = Buffer.from(',');

/** Returns the length of a list's text, in bytes. */
export function textLength({ start, parts, end }: ListText): number {
  let length = start.length + end.length + Math.max(0, parts.length - 1);
  for (const part of parts) length += Buffer.isBuffer(part) ? part.length : part.textLength;
  return length;
}

/** Returns a list's text as one gzip member. */
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

/** Node 20 returns 0 for some empty buffers, whatever the previous value. */
function crcAfter(crc: number, text: Buffer): number {
  return text.length === 0 ? crc : crc32(text, crc);
}

function storedLength({ length }: Buffer): number {
  return length + Math.max(1, Math.ceil(length / maxStored)) * storedStart;
}

/** Writes text as stored blocks of deflate. @returns the offset after them */
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
