// In: a search and a span of its results. Out: how many there are in all, and the ids in the span; work for a page only.

import type { ContentFormat } from '../../shared/formats/content-format.ts';
import {
  type EntryRange,
  frequentOver,
  idOf,
  isListed,
  keyOf,
  listedRange,
  namesRange,
  olderRange,
  type Ranks,
  rankedRange,
  rankOf,
  type Search,
} from '../../shared/formats/search-entries.ts';
import { pageEntries } from '../../shared/formats/search-page.ts';
import type { EntryPages, PageList } from './entry-pages.ts';
import { countBelow, type FenceList, type Fences } from './fences.ts';

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
  readonly pages: PageList;
  readonly fences: FenceList;
  readonly format: ContentFormat;
}

/** What searches are made by. */
interface IndexReads {
  readonly pages: EntryPages;
  readonly fences: Fences;
}

/**
 * Searches an index. A name, a barcode or a drug alone is a range of it. So are several of them where the barcode, or else
 * the drug, is a frequent one; of others all entries are read.
 * @returns `null` when a part of the index is not there, or not as it was stored
 */
export async function searchEntries(
  reads: IndexReads,
  { index, search, span }: SearchRequest,
): Promise<Found | null> {
  const { name, barcode, drug } = search;
  const inRange = async (range: EntryRange) => asFound(await readRange(reads, index, { range, span }));
  if (!index.format.hasRanks) return inRange(olderRange(search));
  const key = keyOf(search);
  if (key === null) return inRange(namesRange(name as string));
  // Drugs have more records than barcodes have.
  const first = barcode === undefined ? key : (keyOf({ barcode }) as string);
  if (name === undefined && key === first) return inRange(listedRange(key));
  const [listed, names] = await Promise.all([
    readRange(reads, index, { range: listedRange(first), span: { from: 0, count: frequentOver } }),
    name === undefined ? undefined : readRange(reads, index, { range: namesRange(name), span: none }),
  ]);
  if (listed === null || names === null) return null;
  if (listed.count > frequentOver) return inRange(names ? rankedRange(key, names) : listedRange(key));
  const chosen = listed.entries.filter((entry) => isListed(entry, { drug, ranks: names }));
  if (names) chosen.sort((a, b) => (rankOf(a) < rankOf(b) ? -1 : 1));
  const entries = chosen.slice(span.from, span.from + span.count);
  return { totalCount: chosen.length, ids: entries.map(idOf) };
}

const none = { from: 0, count: 0 };

/** What a range of an index has. */
interface FoundRange extends Ranks {
  readonly count: number;
  /** The entries in the span. */
  readonly entries: readonly string[];
}

function asFound(range: FoundRange | null): Found | null {
  return range && { totalCount: range.count, ids: range.entries.map(idOf) };
}

/**
 * Reads a span of a range: the fences tell the pages in which the range begins and ends, and so how many entries lie
 * between.
 */
async function readRange(
  { pages: read, fences }: IndexReads,
  index: SearchIndex,
  { range: { least, beyond }, span }: { range: EntryRange; span: SearchRequest['span'] },
): Promise<FoundRange | null> {
  const counts = await fences.countsBelow(index.fences, [least, beyond]);
  if (!counts) return null;
  const [pagesBefore, pagesUpTo] = counts as [number, number];
  // Of fences that were not read one may be another one: the pages tell, and those behind them.
  const areProven = fences.areRead(index.fences);
  if (pagesUpTo === 0 && areProven) return nothing;
  const firstPage = Math.max(0, pagesBefore - 1);
  const lastPage = Math.max(0, pagesUpTo - 1);
  // The results begin in the first page or right behind it, so all pages that the span can lie in are known before
  // that one is read.
  const wanted = pagesOf({
    first: firstPage * pageEntries + span.from,
    last: (firstPage + 1) * pageEntries + span.from + span.count - 1,
  }).filter((it) => it <= lastPage);
  const behind = areProven ? [] : [firstPage + 1, lastPage + 1].filter((it) => it < index.fences.count);
  const pages = await read.get(index.pages, [...new Set([firstPage, lastPage, ...wanted, ...behind])]);
  if (!pages) return null;
  const page = (number: number) => pages.get(number) as readonly string[];
  if (!areProven && !(liesIn(pages, firstPage, least) && liesIn(pages, lastPage, beyond))) return null;
  const from = firstPage * pageEntries + countBelow(page(firstPage), least);
  const until = lastPage * pageEntries + countBelow(page(lastPage), beyond);
  const entries: string[] = [];
  for (let rank = from + span.from; rank < Math.min(until, from + span.from + span.count); rank += 1) {
    const entry = page(Math.floor(rank / pageEntries))[rank % pageEntries];
    if (entry === undefined) return null;
    entries.push(entry);
  }
  return { from, until, count: until - from, entries };
}

/** Whether a bound lies in a page, as told by what that page and the one behind it begin with. */
function liesIn(pages: ReadonlyMap<number, readonly string[]>, number: number, bound: string): boolean {
  const begins = (at: number) => pages.get(at)?.[0];
  const behind = begins(number + 1);
  return (number === 0 || (begins(number) as string) < bound) && (behind === undefined || behind >= bound);
}

const nothing: FoundRange = { from: 0, until: 0, count: 0, entries: [] };

function pagesOf({ first, last }: { first: number; last: number }): number[] {
  const from = Math.floor(first / pageEntries);
  return Array.from({ length: Math.floor(last / pageEntries) - from + 1 }, (_, n) => from + n);
}
