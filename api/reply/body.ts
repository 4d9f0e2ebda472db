// The body of an answer in both of its encodings, each made only when it is asked for.

import { promisify } from 'node:util';
import { gzip, type ZlibOptions } from 'node:zlib';
import { type Block, blockText, quarterRecords, quartersOf } from '../../shared/store/block.ts';
import type { ListRange } from '../read/read-model.ts';
import { gzipMember, type ListPart, type ListText, textLength } from './gzip-member.ts';

/** A body. */
export interface Body {
  /** Of the text, in bytes. */
  readonly length: number;
  text(): Buffer;
  gzip(): Buffer | Promise<Buffer>;
  /** The text in pieces, where that spares a copy of what is remembered. */
  texts?(): readonly Buffer[];
}

/** What is compressed for one answer: level 6 takes four times as long, and makes a page of a search a seventh smaller. */
export const onTheFly = { level: 2 } as const;

const compress: (text: Buffer, options: ZlibOptions) => Promise<Buffer> = promisify(gzip);

const commaText = Buffer.from(',');
const comma = ','.charCodeAt(0);

/** A body that is compressed when it is sent. */
export function plainBody(text: Buffer): Body {
  return { length: text.length, text: () => text, gzip: () => compress(text, onTheFly) };
}

/** The same body, for several answers: each encoding is made once. */
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
  // To compress so little takes longer than all the rest of an answer.
  return part.records.length < quarterRecords ? uncompressedBody(text) : plainBody(text);
}

/** Whole blocks and quarters as they are, and of the first and the last quarter the text of those records that are wanted. */
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

/** The quarters in which some records of a block lie. */
function quartersWith(block: Block, skip: number, taken: number): readonly Block[] {
  const first = Math.floor(skip / quarterRecords);
  return quartersOf(block).slice(first, Math.ceil((skip + taken) / quarterRecords));
}

/** A body that is sent as it is, also as gzip. */
function uncompressedBody(text: Buffer): Body {
  const { length } = text;
  return { length, text: () => text, gzip: () => gzipMember({ start: text, parts: [], end: nothing }) };
}

const nothing = Buffer.alloc(0);

/** A body of which some parts are compressed already: none of them is compressed again. */
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
    if (pieces.length > 1) pieces.push(commaText);
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
    if (at > start.length) at = text.writeUInt8(comma, at);
    text.set(record, at);
    at += record.length;
  }
  text.set(end, at);
  return text;
}
