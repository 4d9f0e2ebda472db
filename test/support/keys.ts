// The Redis keys of the collections, and what tests read from the contents behind them.

import { companies as companyCollection } from '../../shared/collections/company.ts';
import { products as productCollection } from '../../shared/collections/product.ts';
import { unpackIds } from '../../shared/formats/packed-ids.ts';
import { collectionKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';

export const productKeys = collectionKeys('medref', productCollection);
export const companyKeys = collectionKeys('medref', companyCollection);

/** The ids in the order of a content, as decimal digits. */
export async function readOrder(redis: Redis, key: string): Promise<string[]> {
  const ranges = await redis.hgetallBuffer(key);
  const numbers = Object.keys(ranges).sort((a, b) => Number(a) - Number(b));
  return numbers.flatMap((number) => unpackIds(ranges[number] as Buffer));
}
