import { expect } from 'chai';
import fc from 'fast-check';
import { VarintReader, varint } from '../../../shared/store/varint.ts';

describe('whole numbers in seven bits a byte', () => {
  it('come back one after the other, and take as few bytes as they can', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(Number.MAX_SAFE_INTEGER)), fc.nat(3), (numbers, from) => {
        const bytes = Buffer.from('x'.repeat(from) + numbers.map(varint).join(''), 'latin1');
        const reader = new VarintReader(bytes, from);
        expect(numbers.map(() => reader.next())).to.deep.equal(numbers);
        expect(reader.at).to.equal(bytes.length);
      }),
    );
    const lengths = [0, 127, 128, 16_383, 16_384, Number.MAX_SAFE_INTEGER].map((it) => varint(it).length);
    expect(lengths).to.deep.equal([1, 1, 2, 2, 3, 8]);
  });

  it('end where the bytes end', () => {
    expect(new VarintReader(Buffer.from([0x81]), 0).next()).to.equal(1);
  });
});
