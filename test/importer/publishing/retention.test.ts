import { expect } from 'chai';
import { leavingVersions, namedVersions } from '../../../importer/publishing/retention.ts';
import type { Version } from '../../../shared/versions.ts';

/** Versions from 1 on, by the contents they hold. */
const versionsOf = (contents: readonly number[]) =>
  contents.map((content, i) => ({ version: i + 1, content }) as Version);

describe('what leaves as a version is published', () => {
  it('is the content that was not live for the longest time, with all of its versions', () => {
    const kept = versionsOf([1, 2, 3, 2, 1]);
    expect(leavingVersions(kept, 3, 6)).to.deep.equal({ versions: [3], contents: [3] });
    expect(leavingVersions(kept, 2, 6)).to.deep.equal({ versions: [2, 3, 4], contents: [2, 3] });
    expect(leavingVersions(kept, 4, 6)).to.deep.equal({ versions: [], contents: [] });
  });

  it('is nothing where the new version holds a content that is kept', () => {
    expect(leavingVersions(versionsOf([1, 2, 3]), 3, 1)).to.deep.equal({ versions: [], contents: [] });
  });

  it('is no content for rollbacks to and fro, which name a bounded number of versions all the same', () => {
    let kept = versionsOf([1, 2, 3]);
    for (let number = 4; number < 3 * namedVersions; number += 1) {
      const content = 2 + (number % 2);
      const leaving = leavingVersions(kept, 3, content);
      expect(leaving.contents).to.deep.equal([]);
      kept = kept.filter(({ version }) => !leaving.versions.includes(version));
      kept.push({ version: number, content } as Version);
    }
    expect(kept).to.have.length(namedVersions + 1);
    expect(kept[0], 'the last one of a content stays with it').to.deep.equal({ version: 1, content: 1 });
    expect(kept.slice(1).map(({ version }) => version)).to.deep.equal(
      Array.from({ length: namedVersions }, (_, i) => 2 * namedVersions + i),
    );
  });
});
