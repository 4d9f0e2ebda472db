// Where in a rejected record the fault is, by its JSON path.

import { expect } from 'chai';
import { placeOf } from '../../../api/dashboard/reject-place.ts';

describe('the place of what was wrong', () => {
  const at = (raw: string, path: string) => {
    const place = placeOf(raw, path);
    return place && raw.slice(place.from, place.until);
  };
  const raw = '{"a": {"b c": [1, {"d": "x \\"y\\""}]}, "e": null, "a.b": 2}';

  it('is found by members, by elements, by names in quotes', () => {
    expect(at(raw, '$.e')).to.equal('null');
    expect(at(raw, '$.a["b c"][0]')).to.equal('1');
    expect(at(raw, '$.a["b c"][1].d')).to.equal('"x \\"y\\""');
    expect(at(raw, '$["a.b"]')).to.equal('2');
  });

  it('is found in text that was cut off, and in text that is no JSON behind it', () => {
    expect(at('{"a": 1, "b": {"c": tru', '$.a')).to.equal('1');
    expect(at('[{"a": "x"}, oops', '$[0].a')).to.equal('"x"');
  });

  it('is nowhere where the path leads to nothing, says all, or was cut off', () => {
    for (const path of ['$', '$.x', '$.e.x', '$.a["b c"][7]', '$.a["b c…', '', 'e'])
      expect(at(raw, path), path).to.equal(null);
    for (const text of ['', 'x', '\u0000', '['.repeat(4_096)]) expect(placeOf(text, '$.a')).to.equal(null);
  });
});
