// In: a search and a span of its results. Out: how many there are in all, and the ids in the span; work for a page only.

import type { ContentFormat } from '../../shared/formats/content-format.ts';
import { beyond, bytes, idOf, prefixOf, type Search } from '../../shared/formats/search-entries.ts';
import { pageEntries } from '../../shared/formats/search-page.ts';
import { countBelow, type FenceList, type Fences } from './fences.ts';
import type { HashReads } from './hash-reads.ts';

/** What a search found. */
export interface Found {
  readonly totalCount: number;
  /** Decimal digits, in the order of the results. */
  readonly ids: readonly string[];
}

/** A search in the index of one content. */
export interface SearchRequest {
  readonly index: SearchIndex;
  readonly search: Search;
  readonly span: { readonly from: number; readonly count: number };
}

/** Where an index lies. */
export interface SearchIndex {
  /** Key of its pages. */
  readonly pages: string;
  readonly fences: FenceList;
  readonly format: ContentFormat;
}

/**
 * Searches an index: its fences tell the pages in which the results begin and end, and so how many lie between.
 * @returns `null` when a part of the index is not there, or not as it was stored
 */
export async function searchEntries(
  { hashes, fences }: { hashes: HashReads; fences: Fences },
  { index, search, span }: SearchRequest,
): Promise<Found | null> {
  const prefix = prefixOf(search);
  const [least, most] = [bytes(prefix), bytes(beyond(prefix))];
  const sorted = await fences.get(index.fences);
  if (!sorted) return null;
  const pagesUpTo = countBelow(sorted, most);
  if (pagesUpTo === 0) return nothing;
  const firstPage = Math.max(0, countBelow(sorted, least) - 1);
  const lastPage = pagesUpTo - 1;
  // The results begin in the first page or right behind it, so all pages that the span can lie in are known before
  // that one is read.
  const wanted = pagesOf({
    first: firstPage * pageEntries + span.from,
    last: (firstPage + 1) * pageEntries + span.from + span.count - 1,
  });
  const numbers = [...new Set([firstPage, lastPage, ...wanted.filter((it) => it <= lastPage)])];
  const pages = await readPages(hashes, index, numbers);
  if (!pages) return null;
  const page = (number: number) => pages.get(number) as readonly string[];
  const first = firstPage * pageEntries + countBelow(page(firstPage), least);
  const last = lastPage * pageEntries + countBelow(page(lastPage), most);
  const ids: string[] = [];
  const until = Math.min(last, first + span.from + span.count);
  for (let rank = first + span.from; rank < until; rank += 1) {
    const entry = page(Math.floor(rank / pageEntries))[rank % pageEntries];
    if (entry === undefined) return null;
    ids.push(idOf(entry));
  }
  return { totalCount: last - first, ids };
}

const nothing: Found = { totalCount: 0, ids: [] };

function pagesOf({ first, last }: { first: number; last: number }): number[] {
  const from = Math.floor(first / pageEntries);
  return Array.from({ length: Math.floor(last / pageEntries) - from + 1 }, (_, n) => from + n);
}

async function readPages(
  hashes: HashReads,
  { pages: key, format }: SearchIndex,
  numbers: readonly number[],
): Promise<ReadonlyMap<number, readonly string[]> | null> {
  const stored = await hashes.get(key, numbers.map(String));
  const pages = new Map<number, readonly string[]>();
  for (const [n, number] of numbers.entries()) {
    const bytes = stored[n];
    const entries = bytes ? format.openPage(bytes, number) : null;
    if (!entries) return null;
    pages.set(number, entries);
  }
  return pages;
}
