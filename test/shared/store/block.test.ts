import { expect } from 'chai';
import fc from 'fast-check';
import {
  type Block,
  blockRecords,
  blockText,
  openBlock,
  packBlock,
  quartersOf,
} from '../../../shared/store/block.ts';

const records = fc.array(fc.json({ maxDepth: 2 }), { minLength: 1, maxLength: blockRecords, size: 'max' });

async function packed(texts: readonly string[]): Promise<Block> {
  return openBlock(await packBlock(texts)) as Block;
}

describe('a block', () => {
  /** Expects that a block, or a quarter of one, is correct for these records. */
  function expectRecords(block: Block, texts: readonly string[]): void {
    const text = blockText(block);
    expect(text.toString()).to.equal(texts.join(','));
    expect([block.count, block.textLength]).to.deep.equal([texts.length, text.length]);
    const slices = texts.map((_, n) => blockText(block, n, 1).toString());
    expect(slices).to.deep.equal(texts);
  }

  it('returns its records, all and one by one', async () => {
    await fc.assert(fc.asyncProperty(records, async (texts) => expectRecords(await packed(texts), texts)));
  });

  it('returns them by quarters', async () => {
    for (const count of [1, 49, 50, 51, 100, 149, 150, 151, 199, 200]) {
      const texts = Array.from({ length: count }, (_, n) => JSON.stringify({ n, text: 'ğ'.repeat(n % 70) }));
      const quarters = quartersOf(await packed(texts));
      expect(quarters).to.have.length(Math.ceil(count / 50));
      for (const [n, quarter] of quarters.entries())
        expectRecords(quarter, texts.slice(n * 50, (n + 1) * 50));
    }
  });

  it('stores records at every length that needs one more byte', async () => {
    const texts = [1, 127, 128, 129, 16_383, 16_384, 16_385].map((length) => 'x'.repeat(length));
    expectRecords(await packed(texts), texts);
  });
});
