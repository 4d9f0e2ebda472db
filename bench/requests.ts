// The requests that the bench sends: they rotate over all pages, ids, names, barcodes and drugs of the real list.

import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Product } from '../shared/collections/products.ts';
import type { LoadRequest } from './load.ts';

/** The kinds of requests, in the order of the tables. */
export const kinds = [
  'page',
  'identity',
  'page50',
  'page10',
  'record',
  '304',
  'search',
  'words',
  'barcode',
  'drug',
  'ids',
  'rated',
] as const;
export type Kind = (typeof kinds)[number];

/** The names of the kinds in the tables. */
export const kindNames: Readonly<Record<Kind, string>> = {
  page: 'page of 200, gzip',
  identity: 'page of 200, identity',
  page50: 'page of 50',
  page10: 'page of 10',
  record: 'one record',
  '304': '304 for a page of 200',
  search: 'search by 3 letters, 10 a page',
  words: 'search by two words, 10 a page',
  barcode: 'search by barcode',
  drug: 'search by drug',
  ids: '20 records by their ids',
  rated: 'page of 200, key with a rate',
};

/** Reads the products of a list file. */
export function readProducts(file: string): Product[] {
  return (JSON.parse(gunzipSync(readFileSync(file)).toString()) as { data: Product[] }).data;
}

/** Returns the requests of each kind. @param etags of the pages, for conditional requests */
export function requestsOf(
  products: readonly Product[],
  { key, ratedKey }: { readonly key: string; readonly ratedKey: string },
  etags: ReadonlyMap<string, string>,
): Record<Kind, LoadRequest[]> {
  const gzip = { Authorization: `Bearer ${key}`, 'Accept-Encoding': 'gzip' };
  const requests = (paths: readonly string[], headers: Readonly<Record<string, string>> = gzip) =>
    paths.map((path) => ({ path, headers }));
  const pages = pagePaths(products.length, 200);
  const names = new Set(products.map(({ product }) => [...product.name].slice(0, 3).join('')));
  const prefixes = [...names].filter((name) => /^[\p{L}\p{N}]{3}$/u.test(name));
  return {
    page: requests(pages),
    identity: requests(pages, { Authorization: gzip.Authorization }),
    page50: requests(pagePaths(products.length, 50)),
    page10: requests(pagePaths(products.length, 10)),
    record: requests(products.map(({ product }) => `/products/${product.id}`)),
    '304': pages.map((path) => ({ path, headers: { ...gzip, 'If-None-Match': etags.get(path) ?? '*' } })),
    search: requests(prefixes.map((name) => `/products?name=${encodeURIComponent(name)}&per-page=10`)),
    words: requests(wordPaths(products)),
    barcode: requests(
      products.flatMap(({ barcodes }) => barcodes.map(({ barcode }) => `/products?barcode=${barcode}`)),
    ),
    drug: requests([...new Set(products.map(({ drug }) => `/products?drug=${drug.id}`))]),
    ids: requests(idPaths(products, 20)),
    rated: requests(pages, { ...gzip, Authorization: `Bearer ${ratedKey}` }),
  };
}

/** Returns searches by the beginnings of two words of a name. */
function wordPaths(products: readonly Product[]): string[] {
  const pairs = products.flatMap(({ product }) => {
    const [first, , third] = product.name.match(/\p{L}{4,}/gu) ?? [];
    return first && third ? [`${third.slice(0, 4)} ${first.slice(0, 3)}`] : [];
  });
  return [...new Set(pairs)].map((words) => `/products?words=${encodeURIComponent(words)}&per-page=10`);
}

/** Returns paths for some records each, which lie far apart in the list. */
function idPaths(products: readonly Product[], count: number): string[] {
  const step = Math.floor(products.length / count);
  return Array.from({ length: step }, (_, n) => {
    const ids = Array.from({ length: count }, (_, at) => products[n + at * step]?.product.id);
    return `/products?ids=${ids.join(',')}`;
  });
}

/** Returns the path of every full page. */
export function pagePaths(count: number, perPage: number): string[] {
  const size = perPage === 200 ? '' : `&per-page=${perPage}`;
  return Array.from({ length: Math.floor(count / perPage) }, (_, n) => `/products?page=${n + 1}${size}`);
}
