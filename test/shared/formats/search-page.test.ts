import { expect } from 'chai';
import fc from 'fast-check';
import { openEntries, packEntries } from '../../../shared/formats/search-page.ts';

describe('a page of the search index', () => {
  const entries = fc
    .array(fc.uint8Array({ maxLength: 300 }), { maxLength: 32 })
    .map((found) => found.map((bytes) => Buffer.from(bytes).toString('latin1')).sort());

  it('gives back the entries that were put into it', () => {
    fc.assert(
      fc.property(entries, (its) => {
        expect(openEntries(packEntries(its, 7), 7)).to.deep.equal(its);
      }),
    );
    const long = ['a'.repeat(200), 'a'.repeat(20_000), `${'a'.repeat(20_000)}b`];
    expect(openEntries(packEntries(long, 7), 7)).to.deep.equal(long);
  });

  it('is noticed to be corrupted at whatever byte, and when it is cut off or longer', () => {
    const stored = packEntries(['naspirin\x001A', 'naspirin plus\x001B', 'nbeta\x001C'], 7);
    for (let at = 0; at < stored.length; at++) {
      for (const flip of [0x01, 0x80, 0xff]) {
        const corrupted = Buffer.from(stored);
        corrupted[at] = (corrupted[at] as number) ^ flip;
        expect(openEntries(corrupted, 7), `byte ${at}`).to.equal(null);
      }
      expect(openEntries(stored.subarray(0, at), 7), `the first ${at} bytes`).to.equal(null);
    }
    expect(openEntries(Buffer.concat([stored, Buffer.alloc(1)]), 7)).to.equal(null);
    for (const place of [0, 6, 8]) expect(openEntries(stored, place), `as page ${place}`).to.equal(null);
  });
});
