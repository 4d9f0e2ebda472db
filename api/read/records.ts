// Reads the records of a content as they are stored: in blocks, by their places in the list, or by their ids.

import { type Block, blockLines, blockRecords, openBlock } from '../../shared/store/block.ts';
import { idBytes, unpackIds } from '../../shared/store/packed-ids.ts';
import type { ContentCache } from './content-cache.ts';
import type { HmgetBatcher } from './hmget-batcher.ts';
import { MissingPartError, type ReadTarget } from './versions.ts';

/** Which part of a list is wanted: from an index, from 0, and how many elements at most. */
export interface Span {
  readonly from: number;
  readonly count: number;
}

/** Reads records. Methods throw MissingPartError, or what the connection throws. */
export class Records {
  readonly #hashes: HmgetBatcher;
  readonly #cache: ContentCache;

  constructor(hashes: HmgetBatcher, cache: ContentCache) {
    this.#hashes = hashes;
    this.#cache = cache;
  }

  /** Returns the blocks that a span lies in; `null` if one is not stored, as blocks of very large records are. */
  async blocks(target: ReadTarget, span: Span): Promise<Block[] | null> {
    const blocks = await Promise.all(blockNumbers(span).map((number) => this.#block(target, number)));
    return blocks.every((block) => block !== null) ? blocks : null;
  }

  async #block({ content, contentName }: ReadTarget, number: number): Promise<Block | null> {
    return this.#cache.get(`${contentName} block ${number}`, async () => {
      const [bytes] = await this.#hashes.get(content.blocks, [String(number)]);
      const block = bytes && openBlock(ownCopy(bytes));
      if (!block) return { value: null, size: 0 };
      return { value: block, size: block.stored.length + block.textLength };
    });
  }

  /** Returns the records at a span, which lies within the list. */
  async at(target: ReadTarget, span: Span): Promise<Buffer[]> {
    const { content, contentName, version } = target;
    const numbers = blockNumbers(span);
    const orders = await Promise.all(
      numbers.map((number) =>
        this.#cache.get(`${contentName} order ${number}`, async () => {
          const [packed] = await this.#hashes.get(content.order, [String(number)]);
          const count = Math.min(blockRecords, version.totalCount - number * blockRecords);
          if (packed?.length !== count * idBytes) throw new MissingPartError(content.order);
          return { value: ownCopy(packed), size: packed.length };
        }),
      ),
    );
    const from = span.from % blockRecords;
    return this.byIds(target, orders.flatMap(unpackIds).slice(from, from + span.count));
  }

  /** Returns the records of whole blocks, a line each, in some pieces. They are not remembered. */
  async lines(target: ReadTarget, span: Span): Promise<Buffer[]> {
    const stored = await this.#hashes.get(target.content.blocks, blockNumbers(span).map(String));
    const blocks = stored.map((bytes) => bytes && openBlock(bytes));
    if (blocks.every((block) => block !== null)) return blocks.map(blockLines);
    const records = await this.at(target, span);
    return [Buffer.concat(records.flatMap((record) => [record, newLine]))];
  }

  /** Returns the records with these ids; the content has all of them. */
  async byIds(target: ReadTarget, ids: readonly string[]): Promise<Buffer[]> {
    const { records: key } = target.content;
    const records = await this.#hashes.get(key, ids);
    if (!records.every((record) => record !== null)) throw new MissingPartError(key);
    return records;
  }

  /** Returns the record of each id, `null` if the content has none. */
  find({ content }: ReadTarget, ids: readonly string[]): Promise<(Buffer | null)[]> {
    return this.#hashes.get(content.records, ids);
  }
}

function blockNumbers({ from, count }: Span): number[] {
  const first = Math.floor(from / blockRecords);
  const last = Math.floor((from + count - 1) / blockRecords);
  return Array.from({ length: last - first + 1 }, (_, n) => first + n);
}

/** Copies what is remembered: a reply of Redis is a part of a larger buffer, which would stay in memory with it. */
function ownCopy(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

const newLine = Buffer.from('\n');
