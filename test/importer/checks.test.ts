import { expect } from 'chai';
import { exceeds, percentText } from '../../importer/checks.ts';

describe('a percentage in a check', () => {
  it('has one decimal', () => {
    expect(percentText(33.333, 20)).to.equal('33.3 %');
    expect(percentText(21, 20)).to.equal('21.0 %');
  });

  it('has more if one would hide that it exceeds the limit', () => {
    expect(percentText(20.04, 20)).to.equal('20.04 %');
    expect(percentText((1e6 + 1) / 5e4, 20)).to.equal('20.00002 %');
    expect(percentText(20 + 1e-14, 20), 'but with limited digits').to.equal('20.0000000000 %');
  });

  it('is compared exactly, and a value at the limit passes', () => {
    expect(exceeds(20, 100, 20)).to.equal(false);
    expect(exceeds(200_001, 1_000_000, 20)).to.equal(true);
    expect(exceeds(3, 10, 30)).to.equal(false);
    expect(exceeds(0.1 + 0.2, 1, 30)).to.equal(false);
  });
});
