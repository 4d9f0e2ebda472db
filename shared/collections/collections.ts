// The list of collections: settings, commands and routes are derived from it.

import { companies } from './companies.ts';
import type { Collection, ServedCollection } from './define.ts';
import { products } from './products.ts';

/** Those that have an upstream. */
export const importedCollections: readonly Collection[] = [products, companies];

/** All that are served, each derived one after its source. */
export const servedCollections: readonly ServedCollection[] = importedCollections.flatMap(withDerived);

/** A collection and those that are derived from it. */
export function withDerived(source: Collection): ServedCollection[] {
  const derived = source.derived ?? [];
  return [source, ...derived.map((it) => it.collection)].map((collection) => ({ collection, source }));
}
