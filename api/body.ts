// The body of an answer in both of its encodings, each made only when it is asked for.

import { promisify } from 'node:util';
import { gzip, inflateRawSync } from 'node:zlib';
import { type Block, blockRecords, blockText, recordStarts } from '../shared/block.ts';
import type { ListRange } from '../shared/read-model.ts';
import { deflateStream, gzipMember, type ListPart, type ListText, textLength } from './gzip-member.ts';

/** A body. */
export interface Body {
  /** Of the text, in bytes. */
  readonly length: number;
  text(): Buffer;
  gzip(): Buffer | Promise<Buffer>;
}

const compress = promisify(gzip);

const comma = Buffer.from(',');

/** A body that is compressed when it is sent. */
export function plainBody(text: Buffer): Body {
  return { length: text.length, text: () => text, gzip: () => compress(text) };
}

/** A body around records of a list. */
export function listBody(start: Buffer, part: ListRange['part'], end: Buffer): Body {
  if ('blocks' in part) return splicedBody({ start, parts: slices(part.blocks, part.span), end });
  // To compress so little takes longer than all the rest of an answer.
  if (part.records.length < blockRecords) return splicedBody({ start, parts: part.records, end });
  return plainBody(joined({ start, parts: part.records, end }));
}

/** Whole blocks as they are, and of the first and the last the text of those records that are wanted. */
function slices(blocks: readonly Block[], { from, count }: { from: number; count: number }): ListPart[] {
  const parts: ListPart[] = [];
  let skip = from;
  let left = count;
  for (const block of blocks) {
    const taken = Math.min(left, block.count - skip);
    parts.push(taken === block.count ? block : slice(block, skip, taken));
    left -= taken;
    skip = 0;
  }
  return parts;
}

function slice(block: Block, skip: number, taken: number): Buffer {
  const starts = recordStarts(block);
  return blockText(block).subarray(starts[skip], (starts[skip + taken] as number) - comma.length);
}

/** A body of which some parts are compressed already: none of them is compressed again. */
function splicedBody(text: ListText): Body {
  const length = textLength(text);
  return {
    length,
    text: () => {
      const { parts } = text;
      if (parts.every(Buffer.isBuffer)) return joined({ ...text, parts: parts as Buffer[] });
      // One stream for all blocks costs less than one for each.
      return inflateRawSync(deflateStream(text), { chunkSize: Math.max(length, 64) });
    },
    gzip: () => gzipMember(text),
  };
}

function joined({ start, parts, end }: Omit<ListText, 'parts'> & { parts: readonly Buffer[] }): Buffer {
  return Buffer.concat([start, ...parts.flatMap((part, n) => (n === 0 ? [part] : [comma, part])), end]);
}
