import { expect } from 'chai';
import fc from 'fast-check';
import { fold } from '../../../shared/store/search-index.ts';
import { codePoint } from '../../support/code-points.ts';

describe('folding', () => {
  const same: Record<string, readonly string[]> = {
    s: ['s', 'S', 'ş', 'Ş', 's\u0327'],
    g: ['g', 'G', 'ğ', 'Ğ', 'g\u0306'],
    c: ['c', 'C', 'ç', 'Ç', 'c\u0327'],
    o: ['o', 'O', 'ö', 'Ö', 'o\u0308'],
    u: ['u', 'U', 'ü', 'Ü', 'u\u0308'],
    e: ['e', 'E', 'é', 'É', 'e\u0301', 'ê', 'ế'],
    i: ['I', 'ı', 'İ', 'i', 'I\u0307', 'i\u0307', 'î', 'Î'],
    μ: ['µ', 'μ', 'Μ'],
    σ: ['σ', 'ς', 'Σ'],
    'aspirin plus': ['aspirin plus', 'ASPİRİN PLUS', 'Aspırın Plus', ' \t aspirin\r\n plus\u00a0'],
  };
  for (const [folded, texts] of Object.entries(same)) {
    it(`maps all variants to ${folded}`, () => {
      for (const text of texts) expect(fold(text), JSON.stringify(text)).to.equal(folded);
    });
  }

  it('only lowers letters that do not decompose', () => {
    expect(fold('ß æ ø ł ™')).to.equal('ß æ ø ł ™');
    expect(fold('ẞ Æ Ø Ł ½ ﬁ ①')).to.equal('ß æ ø ł ½ ﬁ ①');
  });

  it('replaces each run of white space with one space, and trims', () => {
    for (const space of [
      ' ',
      '\n',
      '\r\n',
      '\t',
      '\v',
      '\f',
      '\u00a0',
      '\u0085',
      '\u2003',
      '\u202f',
      '\u2028',
      '\u3000',
    ]) {
      const shown = JSON.stringify(space);
      expect(fold(`${space}a${space}${space}b${space}`), shown).to.equal('a b');
      expect(fold(`a ${space} b`), shown).to.equal('a b');
      expect(fold(space), shown).to.equal('');
    }
    expect(fold('a \u0301 b'), 'a mark between spaces').to.equal('a b');
  });

  const letters = fc.constantFrom(
    ...'aıiİIşŞçÇğüéßÆøŁ™µΜςΣ1%)( \n\u00a0',
    'e\u0301',
    'ﷺ',
    '한',
    '𝛀',
    '\u0001',
  );
  const text = fc.oneof(
    fc.array(letters, { maxLength: 20 }).map((found) => found.join('')),
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    fc.string({ unit: codePoint, maxLength: 20 }),
  );

  it('keeps prefixes: the fold of a prefix is a prefix of the fold', () => {
    fc.assert(
      fc.property(text, fc.nat(20), (whole, cut) => {
        const beginning = [...whole].slice(0, cut).join('');
        expect(fold(whole).startsWith(fold(beginning))).to.equal(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it('is idempotent and independent of Unicode composition', () => {
    fc.assert(
      fc.property(text, (it) => {
        expect(fold(fold(it))).to.equal(fold(it));
        expect(fold(it.normalize('NFC'))).to.equal(fold(it));
        expect(fold(it.normalize('NFD'))).to.equal(fold(it));
      }),
      { numRuns: 2_000 },
    );
  });
});
