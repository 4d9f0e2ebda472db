// The Redis keys of the collections, and what tests read from the contents behind them.

import { companies as companyCollection } from '../../shared/collections/company.ts';
import { products as productCollection } from '../../shared/collections/product.ts';
import { type CollectionKeys, type ContentName, collectionKeys } from '../../shared/keys.ts';
import { readIds } from '../../shared/list-order.ts';
import type { Redis } from '../../shared/redis.ts';

export const productKeys = collectionKeys('medref', productCollection);
export const companyKeys = collectionKeys('medref', companyCollection);

/** Every key of the contents of a version, those of derived collections too. */
export function contentKeys(keys: CollectionKeys, name: ContentName): string[] {
  return keys.parts.flatMap((part) => Object.values<string>(part.content(name)));
}

/** Every key that is there only while a version is staged. */
export function workspaceKeys(keys: CollectionKeys, name: ContentName): string[] {
  return keys.parts.flatMap((part) => Object.values<string>(part.workspace(name)));
}

/** The ids in the order of a content, as decimal digits. */
export async function readOrder(redis: Redis, key: string): Promise<string[]> {
  return readIds(redis, key, { from: 0, count: 1_000_000 });
}
