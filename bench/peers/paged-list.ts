// In: a page of records and how many there are in all. Out: the service's list envelope, as a plain object.

import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import type { Product } from '../../shared/collections/products.ts';

/** Which part of a list is asked for. */
export interface Paging {
  readonly page: number;
  readonly perPage: number;
}

/** The records of a list's file. */
export function readProducts(file: string): Product[] {
  return (JSON.parse(gunzipSync(readFileSync(file)).toString()) as { data: Product[] }).data;
}

/** Reads `page` and `per-page`. */
export function pagingOf(query: Readonly<Record<string, unknown>>): Paging {
  return { page: Number(query['page'] ?? 1), perPage: Math.min(Number(query['per-page'] ?? 200), 200) };
}

/** The envelope with its links and counts. */
export function pagedList(
  request: IncomingMessage,
  { page, perPage }: Paging,
  { data, totalCount }: { data: readonly unknown[]; totalCount: number },
) {
  const pageCount = Math.ceil(totalCount / perPage);
  const link = (to: number) => ({
    href: `http://${request.headers.host}/products?page=${to}&per-page=${perPage}`,
  });
  return {
    data,
    _links: {
      self: link(page),
      first: link(1),
      last: link(pageCount),
      ...(page < pageCount ? { next: link(page + 1) } : {}),
      ...(page > 1 ? { prev: link(page - 1) } : {}),
    },
    _meta: { totalCount, pageCount, currentPage: page, perPage },
    success: true,
  };
}
