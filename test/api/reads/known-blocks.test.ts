import { expect } from 'chai';
import { KnownBlocks } from '../../../api/reads/known-blocks.ts';
import { type Block, blockText, openBlock, packBlock, recordStarts } from '../../../shared/store/block.ts';
import type { Version } from '../../../shared/store/versions.ts';

describe('blocks that are remembered', () => {
  const records = Array.from({ length: 120 }, (_, n) => `{"id":${n},"text":"${'x'.repeat(n % 7)}"}`);
  let block: Block;
  before(async () => {
    block = openBlock(await packBlock(records)) as Block;
  });

  it('are had by name and number, in bytes of their own, and nothing of them is made twice', () => {
    const blocks = new KnownBlocks();
    const kept = blocks.keep('list', 3, block);
    expect(blocks.get('list', 3)).to.equal(kept);
    expect([blocks.get('list', 2), blocks.get('other', 3)]).to.deep.equal([undefined, undefined]);
    expect(kept.stored.equals(block.stored)).to.equal(true);
    expect(kept.stored.buffer.byteLength).to.equal(block.stored.length);
    expect(blockText(kept).toString()).to.equal(records.join(','));
    expect(blockText(kept)).to.equal(blockText(kept));
    expect(recordStarts(kept)).to.equal(recordStarts(kept)).and.to.deep.equal(recordStarts(block));
  });

  it('are those of lists that are not large', () => {
    const version = (linesLength: number | undefined) => ({ linesLength }) as Version;
    const remembers = (length: number | undefined) => new KnownBlocks().remembers(version(length));
    expect([undefined, 0, 16_000_000, 16_000_001].map(remembers)).to.deep.equal([false, true, true, false]);
    expect(new KnownBlocks(0).remembers(version(1))).to.equal(false);
  });

  it('are let go of beyond 32 MB with their texts, the one that was not asked for longest first', () => {
    const blocks = new KnownBlocks();
    const large = { ...block, textLength: 10_000_000 };
    for (const number of [1, 2, 3]) blocks.keep('list', number, large);
    blocks.get('list', 1);
    blocks.keep('list', 4, large);
    expect([1, 2, 3, 4].map((number) => blocks.get('list', number) !== undefined)).to.deep.equal([
      true,
      false,
      true,
      true,
    ]);
  });
});
