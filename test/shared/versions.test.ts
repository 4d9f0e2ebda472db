import { expect } from 'chai';
import { DamagedKeyError } from '../../shared/redis/damage.ts';
import { documentOf, parseVersion, type Version } from '../../shared/store/versions.ts';

describe("a version's document", () => {
  const version: Version = {
    ...{ version: 20_261_122_140_005, content: 20_261_122_140_005, stored: '20261122140005.1', format: 2 },
    ...{ publishedAt: '2026-11-22T14:00:07.000Z', forced: false, profile: { filled: {}, elements: {} } },
    ...{
      totalCount: 3,
      checksum: 'c',
      setDigest: 's',
      linesLength: 9,
      blocks: 1,
      entries: 3,
      fencesCheck: 7,
    },
    derived: { drugs: { totalCount: 1, checksum: 'd', blocks: 1, entries: 1 } },
  };

  it('gives the version back, and is told where any character of it is another one, or is gone', () => {
    const document = documentOf(version);
    expect(parseVersion('key', document)).to.deep.equal(version);
    for (let at = 0; at < document.length; at += 1) {
      const other = document[at] === '1' ? '2' : '1';
      for (const damaged of [
        document.slice(0, at) + other + document.slice(at + 1),
        document.slice(0, at) + document.slice(at + 1),
      ])
        expect(() => parseVersion('key', damaged), `character ${at}`).to.throw(DamagedKeyError);
    }
  });

  it('is that of a release before where it has neither a format nor a check', () => {
    const { format: _format, stored: _stored, ...old } = version;
    const parsed = parseVersion('key', JSON.stringify({ ...old, content: 7 }));
    expect(parsed).to.deep.include({ format: 1, stored: 7, content: 7 });
    for (const damaged of [{ ...old, format: 2 }, { ...old, check: '12345678' }, { version: 1 }])
      expect(() => parseVersion('key', JSON.stringify(damaged))).to.throw(DamagedKeyError);
  });
});
