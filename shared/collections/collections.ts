// The list of collections: settings, commands and routes are derived from it.

import { companies } from './companies.ts';
import type { Collection, ServedCollection } from './define.ts';
import { products } from './products.ts';

/** The collections with an upstream. */
export const importedCollections: readonly Collection[] = [products, companies];

/** All served collections, each derived one after its source. */
export const servedCollections: readonly ServedCollection[] = importedCollections.flatMap(withDerived);

/** Returns a collection and the collections derived from it. */
export function withDerived(source: Collection): ServedCollection[] {
  const derived = source.derived ?? [];
  return [source, ...derived.map((it) => it.collection)].map((collection) => ({ collection, source }));
}
