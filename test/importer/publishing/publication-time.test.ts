import { expect } from 'chai';
import { publicationTime } from '../../../importer/publishing/publication-time.ts';
import { isDatedAhead } from '../../../shared/dated-ahead.ts';

const dated = (publishedAt: string) => ({ publishedAt });
const now = new Date('2026-11-21T10:00:00.500Z');
const dateAfter = (...dates: string[]) => {
  const kept = dates.map(dated);
  return publicationTime(now, kept.at(-1) ?? null, kept).toISOString();
};

describe('the date of a version', () => {
  it('is now, where no kept version has this second', () => {
    expect(dateAfter()).to.equal('2026-11-21T10:00:00.500Z');
    expect(dateAfter('2026-11-20T10:00:00.000Z', '2026-11-21T09:59:59.999Z')).to.equal(
      '2026-11-21T10:00:00.500Z',
    );
  });

  it('is the next second after the live one, where that has this one or is a little ahead', () => {
    expect(dateAfter('2026-11-21T10:00:00.100Z')).to.equal('2026-11-21T10:00:01.000Z');
    expect(dateAfter('2026-11-21T10:00:07.900Z')).to.equal('2026-11-21T10:00:08.000Z');
  });

  it('comes back to now where the live one is dated far ahead, into a second that no kept version has', () => {
    expect(isDatedAhead(dated('2030-01-01T00:00:00.000Z'), now)).to.equal(true);
    expect(isDatedAhead(dated('2026-11-21T10:05:00.000Z'), now)).to.equal(false);
    expect(dateAfter('2030-01-01T00:00:00.000Z')).to.equal('2026-11-21T10:00:00.500Z');
    const kept = ['2026-11-21T10:00:00.100Z', '2026-11-21T10:00:01.000Z', '2030-01-01T00:00:00.000Z'];
    expect(dateAfter(...kept)).to.equal('2026-11-21T10:00:02.000Z');
  });

  it('grows again from there, though a kept version is dated ahead', () => {
    expect(dateAfter('2030-01-01T00:00:00.000Z', '2026-11-21T10:00:00.100Z')).to.equal(
      '2026-11-21T10:00:01.000Z',
    );
  });
});
