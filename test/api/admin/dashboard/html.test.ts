// Text from outside as text of a page: what nobody sees is made visible, what is long is cut.

import { expect } from 'chai';
import fc from 'fast-check';
import { markedDifference } from '../../../../api/dashboard/marked-difference.ts';
import { foldedText, shownText } from '../../../../api/dashboard/shown-text.ts';
import { codePoint } from '../../../support/code-points.ts';

const shown = (text: string, most?: number) => String(shownText(text, most));
/** What a reader sees. */
const read = (page: unknown) => String(page).replace(/<[^>]*>/g, '');

describe('text from outside', () => {
  it('is escaped whatever it is, and holds nothing that steers a line or is not seen', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint, maxLength: 300 }), (text) => {
        const page = shown(text);
        expect(page.replace(/<\/?(bdi|span|small)( class="(text|unseen)")?>/g, '')).not.to.match(
          /[<>"']|&(?!\w+;|#39;)/,
        );
        expect(page).not.to.match(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u);
      }),
    );
  });

  it('is shown whole where it is short, and else by its beginning, with its length', () => {
    expect(shown('NÖGEMRÜN %0,05 KREM')).to.equal('<bdi class="text">NÖGEMRÜN %0,05 KREM</bdi>');
    expect(shown('abc', 3)).not.to.include('…');
    expect(read(shown('abcd', 3))).to.equal('abc… (4 characters)');
    expect(read(shown(`ab😀d`, 3)), 'half a character').to.equal('ab… (5 characters)');
    expect(shown('x'.repeat(100_000)).length).to.be.below(400);
  });

  it('names each character that nobody sees by its number', () => {
    expect(read(shown('a\u0000\u001b\u202e\u200b\u00ad\ud800b'))).to.equal(
      'aU+0000U+001BU+202EU+200BU+00ADU+D800b',
    );
  });

  it('has few marks upon one letter', () => {
    expect(read(shown(`Z${'\u0301'.repeat(150)}`))).to.equal(`Z${'\u0301'.repeat(4)}\ufffd`);
  });

  it('can be unfolded where a page is about it, up to the longest name', () => {
    expect(String(foldedText('short'))).not.to.include('<details>');
    const page = String(foldedText(`${'x'.repeat(10_000)}y`));
    expect(page.match(/x+/g)?.map(({ length }) => length)).to.include.members([200, 10_000]);
    expect(page).to.include('<summary>').and.not.include('y</bdi>');
  });
});

describe('a value before and after', () => {
  const marked = (before: unknown, after: unknown) => {
    const it = markedDifference(before, after);
    return [it.before, it.after].map((side) => String(side).replace(/<\/?bdi[^>]*>/g, ''));
  };

  it('has what differs marked, between the beginning and the end that both have', () => {
    expect(marked('10 MG TABLET', '20 MG TABLET')).to.deep.equal([
      '<del>1</del>0 MG TABLET',
      '<ins>2</ins>0 MG TABLET',
    ]);
    expect(marked('aa', 'aaa')).to.deep.equal(['aa', 'aa<ins>a</ins>']);
    expect(marked('a😀b', 'a😁b')).to.deep.equal(['a<del>😀</del>b', 'a<ins>😁</ins>b']);
    expect(marked('<b>', '<i>')).to.deep.equal(['&lt;<del>b</del>&gt;', '&lt;<ins>i</ins>&gt;']);
  });

  it('is shown as JSON where it is no text, and as a dash where there is none', () => {
    expect(marked(true, [1])).to.deep.equal(['<del>true</del>', '<ins>[1]</ins>']);
    expect(marked(null, 'x')).to.deep.equal(['<span class="none">–</span>', 'x']);
  });

  it('has its beginnings shown, unmarked, where it is long', () => {
    const [before = '', after = ''] = marked('x'.repeat(601), 'y');
    expect(before).to.match(/^x{300}… <small>\(601 characters\)/);
    expect(after).to.equal('y');
  });
});
