import { expect } from 'chai';
import fc from 'fast-check';
import { partsOf } from '../../../importer/writing/parts.ts';

const lengthOf = (text: string) => text.length;

describe('parts of what is sent', () => {
  it('are all of it in its order, each within its bounds, and as few as that takes', () => {
    const texts = fc.array(fc.string({ maxLength: 12 }), { maxLength: 40 });
    const bound = fc.integer({ min: 1, max: 20 });
    fc.assert(
      fc.property(texts, bound, bound, (items, count, length) => {
        const parts = [...partsOf(items, { count, length, lengthOf })];
        expect(parts.flat()).to.deep.equal(items);
        for (const [n, part] of parts.entries()) {
          const its = part.join('').length;
          expect(part.length).to.be.within(1, count);
          if (part.length > 1) expect(its).to.be.at.most(length);
          const next = parts[n + 1]?.[0];
          const isFull = next === undefined || part.length === count || its + next.length > length;
          expect(isFull).to.equal(true);
        }
      }),
    );
  });
});
