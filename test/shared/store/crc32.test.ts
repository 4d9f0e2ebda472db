import { crc32 } from 'node:zlib';
import { expect } from 'chai';
import fc from 'fast-check';
import { combineCrc32, crcShift } from '../../../shared/store/block.ts';

const bytes = (maxLength: number) =>
  fc.uint8Array({ maxLength, size: 'max' }).map((found) => Buffer.from(found));

describe('the CRC-32 of texts one after the other', () => {
  it('is made of the CRC-32 of each, whatever they hold', () => {
    fc.assert(
      fc.property(bytes(300), bytes(300), (first, second) => {
        const combined = combineCrc32(crc32(first), crc32(second), crcShift(second.length));
        expect(combined).to.equal(crc32(Buffer.concat([first, second])));
      }),
    );
  });

  it('is made of any number of them', () => {
    fc.assert(
      fc.property(fc.array(bytes(40), { maxLength: 12 }), (texts) => {
        const combined = texts.reduce(
          (crc, text) => combineCrc32(crc, crc32(text), crcShift(text.length)),
          0,
        );
        expect(combined).to.equal(crc32(Buffer.concat(texts)));
      }),
    );
  });

  it('is made of an empty one, and of long ones', () => {
    expect(combineCrc32(7, 0, crcShift(0))).to.equal(7);
    const [first, second] = [Buffer.alloc(70_001, 'ab'), Buffer.alloc(1_048_577, 'xyz')];
    expect(combineCrc32(crc32(first), crc32(second), crcShift(second.length))).to.equal(
      crc32(Buffer.concat([first, second])),
    );
  });
});
