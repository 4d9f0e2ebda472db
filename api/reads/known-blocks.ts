// Blocks of the lists that are not large, remembered as they were read, for one process that serves: Redis is asked
// only whether they are still there.

import { LRUCache } from 'lru-cache';
import type { Block } from '../../shared/store/block.ts';
import type { Version } from '../../shared/store/versions.ts';

/** How many bytes of blocks are remembered, each as it was stored and as its text. */
const maxRemembered = 32_000_000;

/** Lists whose text is longer, in bytes, are not: of one that does not fit, each block would be let go before it is read again. */
const longestRemembered = 16_000_000;

/** Remembers blocks by the name of what holds them, see stored-records.ts, and their numbers. */
export class KnownBlocks {
  readonly #longest: number;
  readonly #blocks = new LRUCache<string, Block>({
    maxSize: maxRemembered,
    sizeCalculation: ({ stored, textLength }) => stored.length + textLength,
  });

  constructor(longest = longestRemembered) {
    this.#longest = longest;
  }

  /** Whether the blocks of a list are remembered. */
  remembers({ linesLength }: Version): boolean {
    return linesLength !== undefined && linesLength <= this.#longest;
  }

  get(name: string, number: number): Block | undefined {
    return this.#blocks.get(`${name} ${number}`);
  }

  /** Remembers a block that is whole. @returns it, of which nothing is made twice */
  keep(name: string, number: number, block: Block): Block {
    // As it came, it would hold on to all that came with it.
    const stored = Buffer.allocUnsafeSlow(block.stored.length);
    block.stored.copy(stored);
    const kept = { ...block, stored, made: {} };
    this.#blocks.set(`${name} ${number}`, kept);
    return kept;
  }
}
