import { expect } from 'chai';
import fc from 'fast-check';
import {
  type Block,
  blockRecords,
  blockText,
  openBlock,
  packBlock,
  quartersOf,
  recordStarts,
} from '../../../shared/store/block.ts';
import { product } from '../../support/records.ts';

const records = fc.array(fc.json({ maxDepth: 2 }), { minLength: 1, maxLength: blockRecords, size: 'max' });

async function packed(texts: readonly string[]): Promise<Block> {
  return openBlock(await packBlock(texts, 7), 7) as Block;
}

describe('a block', () => {
  /** What a block, or a quarter of one, must be for these records. */
  function expectRecords(block: Block, texts: readonly string[]): void {
    const text = blockText(block);
    expect(text.toString()).to.equal(texts.join(','));
    expect([block.count, block.textLength]).to.deep.equal([texts.length, text.length]);
    const starts = recordStarts(block);
    expect(starts).to.have.length(texts.length + 1);
    const slices = texts.map((_, n) => text.subarray(starts[n], (starts[n + 1] as number) - 1).toString());
    expect(slices).to.deep.equal(texts);
  }

  it('gives back the records that were put into it, all of them and each by its place', async () => {
    await fc.assert(fc.asyncProperty(records, async (texts) => expectRecords(await packed(texts), texts)));
  });

  it('gives them back by quarters', async () => {
    for (const count of [1, 49, 50, 51, 100, 149, 150, 151, 199, 200]) {
      const texts = Array.from({ length: count }, (_, n) => JSON.stringify({ n, text: 'ğ'.repeat(n % 70) }));
      const quarters = quartersOf(await packed(texts));
      expect(quarters).to.have.length(Math.ceil(count / 50));
      for (const [n, quarter] of quarters.entries())
        expectRecords(quarter, texts.slice(n * 50, (n + 1) * 50));
    }
  });

  it('takes records of every length that needs one byte more to be told', async () => {
    const texts = [1, 127, 128, 129, 16_383, 16_384, 16_385].map((length) => 'x'.repeat(length));
    const starts = recordStarts(await packed(texts));
    expect(starts.map((start, n) => (starts[n + 1] ?? start + 1) - start - 1).slice(0, -1)).to.deep.equal(
      texts.map(({ length }) => length),
    );
  });

  it('is noticed to be corrupted at whatever byte, and when it is cut off or longer', async () => {
    const stored = await packBlock(
      [product(1), product(2)].map((it) => JSON.stringify(it)),
      7,
    );
    for (let at = 0; at < stored.length; at++) {
      for (const flip of [0x01, 0x80, 0xff]) {
        const corrupted = Buffer.from(stored);
        corrupted[at] = (corrupted[at] as number) ^ flip;
        expect(openBlock(corrupted, 7), `byte ${at}`).to.equal(null);
      }
      expect(openBlock(stored.subarray(0, at), 7), `the first ${at} bytes`).to.equal(null);
    }
    expect(openBlock(Buffer.concat([stored, Buffer.alloc(1)]), 7)).to.equal(null);
    expect(openBlock(stored, 7)).not.to.equal(null);
    for (const place of [0, 6, 8]) expect(openBlock(stored, place), `as block ${place}`).to.equal(null);
  });
});
