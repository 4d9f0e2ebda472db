// The arithmetic of pages, at its edges.

import { expect } from 'chai';
import { pageLinks, pageMeta } from '../../../api/reply/envelope.ts';

const max = Number.MAX_SAFE_INTEGER;

describe('what a page says of itself and of its neighbours', () => {
  const linksOf = (totalCount: number, page: number, perPage: number) =>
    Object.entries<{ href: string }>(
      JSON.parse(pageLinks('http://a/x', pageMeta(totalCount, { page, perPage }))),
    ).map(([name, { href }]) => `${name} ${href.slice('http://a/x?'.length)}`);

  it('counts pages, the last one ragged or full, and none of nothing', () => {
    const pages = (totalCount: number, perPage: number) =>
      pageMeta(totalCount, { page: 1, perPage }).pageCount;
    expect([pages(0, 200), pages(1, 200), pages(200, 200), pages(201, 200)]).to.deep.equal([0, 1, 1, 2]);
    expect([pages(7, 1), pages(7, 7), pages(7, 6)]).to.deep.equal([7, 1, 2]);
  });

  it('says page 1 first and last when there is nothing, and nothing before or after it', () => {
    expect(pageMeta(0, { page: 1, perPage: 5 })).to.deep.equal({
      totalCount: 0,
      pageCount: 0,
      currentPage: 1,
      perPage: 5,
    });
    expect(linksOf(0, 1, 5)).to.deep.equal([
      'self page=1&per-page=5',
      'first page=1&per-page=5',
      'last page=1&per-page=5',
    ]);
  });

  it('leads back to page 1 from beyond the end of nothing', () => {
    expect(linksOf(0, 4, 5)).to.deep.equal([
      'self page=4&per-page=5',
      'first page=1&per-page=5',
      'last page=1&per-page=5',
      'prev page=1&per-page=5',
    ]);
  });

  it('links next before the last page, and prev after the first', () => {
    const named = (page: number) => linksOf(10, page, 4).map((it) => it.replace('&per-page=4', ''));
    expect(named(1)).to.deep.equal(['self page=1', 'first page=1', 'last page=3', 'next page=2']);
    expect(named(2)).to.deep.equal([
      'self page=2',
      'first page=1',
      'last page=3',
      'next page=3',
      'prev page=1',
    ]);
    expect(named(3)).to.deep.equal(['self page=3', 'first page=1', 'last page=3', 'prev page=2']);
    expect(named(4)).to.deep.equal(['self page=4', 'first page=1', 'last page=3', 'prev page=3']);
    expect(named(max)).to.deep.equal([`self page=${max}`, 'first page=1', 'last page=3', 'prev page=3']);
  });
});
