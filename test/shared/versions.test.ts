import { expect } from 'chai';
import { DamagedKeyError } from '../../shared/redis/failures.ts';
import { contentOf, documentOf, parseVersion, type Version } from '../../shared/store/versions.ts';

describe("a version's document", () => {
  const version: Version = {
    version: 20_261_122_140_005,
    content: '20261122140005.1',
    format: 4,
    publishedAt: '2026-11-22T14:00:07.000Z',
    forced: false,
    profile: { filled: {}, elements: {} },
    totalCount: 3,
    checksum: 'c',
    setDigest: 's',
    linesLength: 9,
    blocks: 1,
    searches: { barcode: 3 },
    derived: {},
  };

  it('parses to the version that it was made from', () => {
    expect(parseVersion('key', documentOf(version))).to.deep.equal(version);
    expect(contentOf(version)).to.equal(20_261_122_140_005);
  });

  it('is refused if it describes no version', () => {
    for (const text of ['', 'x', '[]', '{}', '{"version":"7"}', documentOf(version).slice(1)])
      expect(() => parseVersion('key', text), text).to.throw(DamagedKeyError);
  });
});
