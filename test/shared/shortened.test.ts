import { expect } from 'chai';
import { shortened } from '../../shared/shortened.ts';

describe('a text that is shortened', () => {
  it('stays as it is up to the length, and is cut there and marked beyond', () => {
    expect(shortened('abc', 3)).to.equal('abc');
    expect(shortened('abcd', 3)).to.equal('abc…');
  });

  it('keeps what it has, also half of a pair of surrogates', () => {
    expect(shortened('\ud83d\ude00x', 1)).to.equal('\ud83d…');
  });
});
