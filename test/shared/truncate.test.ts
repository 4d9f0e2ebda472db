import { expect } from 'chai';
import { truncate } from '../../shared/text.ts';

describe('a text that is shortened', () => {
  it('stays as it is up to the length, and is cut there and marked beyond', () => {
    expect(truncate('abc', 3)).to.equal('abc');
    expect(truncate('abcd', 3)).to.equal('abc…');
  });

  it('keeps what it has, also half of a pair of surrogates', () => {
    expect(truncate('\ud83d\ude00x', 1)).to.equal('\ud83d…');
  });
});
