// In: a collection's name as an operator typed it. Out: the collection.

import type { Collection } from '../../shared/collections/collection.ts';
import { collections } from '../../shared/collections/collections.ts';
import { UsageError } from '../exit-codes.ts';

/** The collection of a name. @throws UsageError when there is none */
export function collectionNamed(name: string): Collection {
  const found = collections.find((collection) => collection.name === name);
  if (found) return found;
  throw new UsageError(
    `There is no collection ${JSON.stringify(name)}; there are ${collections.map((it) => it.name).join(', ')}.`,
  );
}
