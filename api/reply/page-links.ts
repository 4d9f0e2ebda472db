// What a page of a list says of itself, and where its neighbours are.

import type { PageRequest } from '../requests/paging.ts';

/** `_meta` of a list. */
export interface PageMeta {
  readonly totalCount: number;
  readonly pageCount: number;
  readonly currentPage: number;
  readonly perPage: number;
}

/** What a page says of itself. */
export function pageMeta(totalCount: number, { page, perPage }: PageRequest): PageMeta {
  return { totalCount, pageCount: Math.ceil(totalCount / perPage), currentPage: page, perPage };
}

/**
 * `_links` of a page, as JSON text. `prev` is there after the first page (beyond the end it is the last), `next`
 * before the last; `first` and `last` are always there.
 * @param address absolute URL of the collection
 * @param others the request's other parameters, which each link carries first
 */
export function pageLinks(
  address: string,
  { pageCount, currentPage, perPage }: PageMeta,
  others: Readonly<Record<string, string | number>> = {},
): string {
  // Both ends of a link are the same for all of them, so they are escaped once.
  const start = `{"href":${JSON.stringify(`${address}?${query(others)}page=`).slice(0, -1)}`;
  const end = `&per-page=${perPage}"}`;
  const last = Math.max(1, pageCount);
  let links = `{"self":${start}${currentPage}${end},"first":${start}1${end},"last":${start}${last}${end}`;
  if (currentPage < pageCount) links += `,"next":${start}${currentPage + 1}${end}`;
  if (currentPage > 1) links += `,"prev":${start}${Math.min(currentPage - 1, last)}${end}`;
  return `${links}}`;
}

function query(parameters: Readonly<Record<string, string | number>>): string {
  let text = '';
  for (const name in parameters) text += `${name}=${encodeURIComponent(parameters[name] as string)}&`;
  return text;
}
