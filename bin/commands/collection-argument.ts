// In: a collection's name as an operator typed it. Out: the collection, and the one with whose versions it lives.

import { closestMatch } from 'leven';
import { servedCollections } from '../../shared/collections/collections.ts';
import type { Collection, ServedCollection } from '../../shared/collections/define.ts';
import { UsageError } from '../exit-codes.ts';

/** By how many letters a name may differ from the one that is meant. */
const maxTypingErrors = 3;

/** The collection of a name. @throws UsageError when there is none */
export function collectionNamed(name: string): ServedCollection {
  const found = servedCollections.find(({ collection }) => collection.name === name);
  if (found) return found;
  const names = servedCollections.map(({ collection }) => collection.name);
  const meant = closestMatch(name, names, { maxDistance: maxTypingErrors });
  const question = meant === undefined ? '' : ` Did you mean ${meant}?`;
  throw new UsageError(
    `There is no collection ${JSON.stringify(name)}; there are ${names.join(', ')}.${question}`,
  );
}

/**
 * The collection of a name, which has imports of its own.
 * @param command what is to be done with it, such as `import`
 * @throws UsageError when there is none, or it is derived from another one
 */
export function importedCollectionNamed(name: string, command: string): Collection {
  const { collection, source } = collectionNamed(name);
  if (collection === source) return collection;
  throw new UsageError(
    `${name} are derived from ${source.name} and follow them; use "medref ${command} ${source.name}".`,
  );
}
