import { expect } from 'chai';
import fc from 'fast-check';
import { isIntact } from '../../../shared/formats/checked-bytes.ts';
import { packIds, unpackId, unpackIds } from '../../../shared/store/packed-ids.ts';

describe('packed ids', () => {
  it('come back as decimal digits, from 1 to 2^53−1', () => {
    const anyIds = fc.array(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), { maxLength: 300 });
    fc.assert(
      fc.property(anyIds, (ids) => {
        const packed = packIds(ids, 7);
        expect(unpackIds(packed)).to.deep.equal(ids.map(String));
        for (const [index, id] of ids.entries()) expect(unpackId(packed, index)).to.equal(String(id));
      }),
    );
  });

  it('take 8 bytes each, the highest first, which compare.lua reads too', () => {
    const packed = packIds([1, Number.MAX_SAFE_INTEGER], 7);
    expect(packed.subarray(0, -4).toString('hex')).to.equal('0000000000000001001fffffffffffff');
    expect(isIntact(packed, 7)).to.equal(true);
  });

  it('are those that are whole, where the bytes end within one', () => {
    expect(unpackIds(packIds([7, 8], 0).subarray(0, 15))).to.deep.equal(['7']);
  });
});
