// Tests HTML of text from outside, differences of two values, and the position of a fault in a rejected record.

import { expect } from 'chai';
import fc from 'fast-check';
import { shownText } from '../../../../api/admin/dashboard/html.ts';
import { placeOf } from '../../../../api/admin/dashboard/rejects.ts';
import { markedDifference } from '../../../../api/admin/dashboard/versions.ts';
import { codePoint } from '../../../support/code-points.ts';

const shown = (text: string, most?: number) => String(shownText(text, most));
/** Returns the text that a reader sees. */
const read = (page: unknown) => String(page).replace(/<[^>]*>/g, '');

describe('text from outside', () => {
  it('is escaped, and shows control and invisible characters', () => {
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

  it('is complete if short, and otherwise cut, with its length', () => {
    expect(shown('NÖGEMRÜN %0,05 KREM')).to.equal('<bdi class="text">NÖGEMRÜN %0,05 KREM</bdi>');
    expect(shown('abc', 3)).not.to.include('…');
    expect(read(shown('abcd', 3))).to.equal('abc… (4 characters)');
    expect(read(shown(`ab😀d`, 3)), 'half a character').to.equal('ab… (5 characters)');
    expect(shown('x'.repeat(100_000)).length).to.be.below(400);
  });

  it('shows each invisible character by its number', () => {
    expect(read(shown('a\u0000\u001b\u202e\u200b\u00ad\ud800b'))).to.equal(
      'aU+0000U+001BU+202EU+200BU+00ADU+D800b',
    );
  });

  it('limits the combining marks on a letter', () => {
    expect(read(shown(`Z${'\u0301'.repeat(150)}`))).to.equal(`Z${'\u0301'.repeat(4)}\ufffd`);
  });
});

describe('a value before and after', () => {
  const marked = (before: unknown, after: unknown) => {
    const it = markedDifference(before, after);
    return [it.before, it.after].map((side) => String(side).replace(/<\/?bdi[^>]*>/g, ''));
  };

  it('marks the difference between the common start and end', () => {
    expect(marked('10 MG TABLET', '20 MG TABLET')).to.deep.equal([
      '<del>1</del>0 MG TABLET',
      '<ins>2</ins>0 MG TABLET',
    ]);
    expect(marked('aa', 'aaa')).to.deep.equal(['aa', 'aa<ins>a</ins>']);
    expect(marked('a😀b', 'a😁b')).to.deep.equal(['a<del>😀</del>b', 'a<ins>😁</ins>b']);
    expect(marked('<b>', '<i>')).to.deep.equal(['&lt;<del>b</del>&gt;', '&lt;<ins>i</ins>&gt;']);
  });

  it('is JSON unless it is text, and a dash if absent', () => {
    expect(marked(true, [1])).to.deep.equal(['<del>true</del>', '<ins>[1]</ins>']);
    expect(marked(null, 'x')).to.deep.equal(['<span class="none">–</span>', 'x']);
  });

  it('is cut and unmarked if long', () => {
    const [before = '', after = ''] = marked('x'.repeat(601), 'y');
    expect(before).to.match(/^x{300}… <small>\(601 characters\)/);
    expect(after).to.equal('y');
  });
});

describe('the place of a fault', () => {
  const at = (raw: string, path: string) => {
    const place = placeOf(raw, path);
    return place && raw.slice(place.from, place.until);
  };
  const raw = '{"a": {"b c": [1, {"d": "x \\"y\\""}]}, "e": null, "a.b": 2}';

  it('is found by members, elements and quoted names', () => {
    expect(at(raw, '$.e')).to.equal('null');
    expect(at(raw, '$.a["b c"][0]')).to.equal('1');
    expect(at(raw, '$.a["b c"][1].d')).to.equal('"x \\"y\\""');
    expect(at(raw, '$["a.b"]')).to.equal('2');
  });

  it('is found in truncated text, and in text with garbage after it', () => {
    expect(at('{"a": 1, "b": {"c": tru', '$.a')).to.equal('1');
    expect(at('[{"a": "x"}, oops', '$[0].a')).to.equal('"x"');
  });

  it('is absent if the path leads nowhere, is the root, or was cut', () => {
    for (const path of ['$', '$.x', '$.e.x', '$.a["b c"][7]', '$.a["b c…', '', 'e'])
      expect(at(raw, path), path).to.equal(null);
    for (const text of ['', 'x', '\u0000', '['.repeat(4_096)]) expect(placeOf(text, '$.a')).to.equal(null);
  });
});
