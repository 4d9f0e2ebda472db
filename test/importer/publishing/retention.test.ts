import { expect } from 'chai';
import { leavingVersions, namedVersions } from '../../../importer/publishing/retention.ts';
import type { Version } from '../../../shared/store/versions.ts';

/** A version with a content that is stored under its number. */
const versionOf = (version: number, content: number) => ({ version, content, stored: content }) as Version;
/** Versions from 1 on, by the contents they hold. */
const versionsOf = (contents: readonly number[]) => contents.map((content, i) => versionOf(i + 1, content));

describe('what leaves as a version is published', () => {
  it('is the content that was not live for the longest time, with all of its versions', () => {
    const kept = versionsOf([1, 2, 3, 2, 1]);
    expect(leavingVersions(kept, 3, 6)).to.deep.equal({ versions: [3], contents: [3] });
    expect(leavingVersions(kept, 2, 6)).to.deep.equal({ versions: [2, 3, 4], contents: [2, 3] });
    expect(leavingVersions(kept, 4, 6)).to.deep.equal({ versions: [], contents: [] });
  });

  it('is what a content is stored under, where it was made anew', () => {
    const again = { ...versionOf(2, 1), stored: '1.1' };
    expect(leavingVersions([versionOf(1, 1), again], 1, 3)).to.deep.equal({
      versions: [1, 2],
      contents: ['1.1'],
    });
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
      kept.push(versionOf(number, content));
    }
    expect(kept).to.have.length(namedVersions + 1);
    expect(kept[0], 'the last one of a content stays with it').to.deep.equal(versionOf(1, 1));
    expect(kept.slice(1).map(({ version }) => version)).to.deep.equal(
      Array.from({ length: namedVersions }, (_, i) => 2 * namedVersions + i),
    );
  });
});
