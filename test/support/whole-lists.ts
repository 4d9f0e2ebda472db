// The real lists, where they lie beside the project; they are read from there and never copied.

import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

const folder = new URL('../../../shared/data/', import.meta.url);

/** Whether the real lists are there. */
export const realListsAreThere = existsSync(new URL('products.json.gz', folder));

/** The URL of a real list's file. */
export function realListUrl(name: 'products' | 'companies' | 'dirty'): URL {
  return new URL(`${name}.json.gz`, folder);
}

/** The records of a real list. */
export function readRealList<Item = unknown>(name: 'products' | 'companies' | 'dirty'): Item[] {
  return (JSON.parse(gunzipSync(readFileSync(realListUrl(name))).toString()) as { data: Item[] }).data;
}

/** `describe`, for suites that need the real lists; where they are absent the suite says so and is left out. */
export function describeWithRealLists(title: string, suite: (this: Mocha.Suite) => void): void {
  if (realListsAreThere) describe(title, suite);
  else describe.skip(`${title} (left out: the real lists are not there)`, suite);
}
