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

/** `_links` of a list, in the order in which they are served. */
export type PageLinks = Readonly<Record<string, { readonly href: string }>>;

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
 * Links of a page. `prev` is there after the first page (beyond the end it is the last), `next` before the last;
 * `first` and `last` are always there.
 * @param address absolute URL of the collection
 * @param others the request's other parameters, which each link carries first
 */
export function pageLinks(
  address: string,
  { pageCount, currentPage, perPage }: PageMeta,
  others: Readonly<Record<string, string | number | undefined>> = {},
): PageLinks {
  const to = (page: number) => ({ href: `${address}?${query({ ...others, page, 'per-page': perPage })}` });
  const last = Math.max(1, pageCount);
  return {
    self: to(currentPage),
    first: to(1),
    last: to(last),
    ...(currentPage < pageCount && { next: to(currentPage + 1) }),
    ...(currentPage > 1 && { prev: to(Math.min(currentPage - 1, last)) }),
  };
}

function query(parameters: Readonly<Record<string, string | number | undefined>>): string {
  return Object.entries(parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(value as string | number)}`)
    .join('&');
}
