// In: the records of a list. Out: the requests that rotate over it: all pages, all ids, prefixes of names, barcodes, drugs.

import type { Product } from '../shared/collections/products.ts';
import type { LoadRequest } from './load.ts';

/** Header fields of every request; the path is each one's own. */
export type Fields = Readonly<Record<string, string>>;

const mostPrefixes = 1_000;

/** The fields of a client that sends a key, and accepts gzip or does not. */
export function fieldsOf(key: string, encoding: 'gzip' | 'identity'): Fields {
  return { Authorization: `Bearer ${key}`, ...(encoding === 'gzip' ? { 'Accept-Encoding': 'gzip' } : {}) };
}

/** Requests for paths, with the same fields. */
export function requestsFor(paths: readonly string[], headers: Fields): LoadRequest[] {
  return paths.map((path) => ({ path, headers }));
}

/** The query of every page that is full; of a default page, as most clients write it. */
export function fullPages(count: number, perPage: number): string[] {
  const pages = Math.max(1, Math.floor(count / perPage));
  const size = perPage === 200 ? '' : `&per-page=${perPage}`;
  return Array.from({ length: pages }, (_, i) => `page=${i + 1}${size}`);
}

/** The first and the last of some things, a few of each: at most so many, and never more than a third. */
export function edges<Item>(items: readonly Item[], most = 20): { first: Item[]; last: Item[] } {
  const count = Math.max(1, Math.min(most, Math.floor(items.length / 3)));
  return { first: items.slice(0, count), last: items.slice(-count) };
}

/** Different beginnings of names, three letters or digits each, spread over the list. */
export function namePrefixes(products: readonly Product[]): string[] {
  const all = new Set(products.map(({ product }) => [...product.name].slice(0, 3).join('')));
  const usable = [...all].filter((it) => /^[\p{L}\p{N}]{3}$/u.test(it));
  const step = Math.max(1, Math.ceil(usable.length / mostPrefixes));
  return usable.filter((_, i) => i % step === 0);
}

/** Ids, so many together, each from another part of the list; every record is in one of them. */
export function idLists(products: readonly Product[], size: number): string[] {
  const step = Math.max(1, Math.floor(products.length / size));
  return Array.from({ length: step }, (_, n) =>
    Array.from(
      { length: Math.min(size, products.length) },
      (_, i) => products[n + i * step]?.product.id,
    ).join(),
  );
}
