// Pages of a list: which one was asked for, what it says of itself, and where its neighbours are.

import { countTakes, type Parameters, readCount } from './parameters.ts';

const maxPerPage = 200;

/** The page a request asks for. */
export interface PageRequest {
  /** From 1; may lie beyond the last. */
  readonly page: number;
  /** From 1 to 200. */
  readonly perPage: number;
}

/** `_meta` of a list. */
export interface PageMeta {
  readonly totalCount: number;
  readonly pageCount: number;
  readonly currentPage: number;
  readonly perPage: number;
}

/** The parameters of paging and what they take. */
export const pagingParameters = { page: countTakes, 'per-page': countTakes } as const;

/** The page that the parameters ask for; `per-page` is reduced to 200. @throws Boom 400 */
export function readPageRequest(parameters: Parameters): PageRequest {
  return {
    page: readCount(parameters, 'page', 1),
    perPage: Math.min(maxPerPage, readCount(parameters, 'per-page', maxPerPage)),
  };
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
