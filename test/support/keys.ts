// The Redis keys of the collections, and functions that read their contents.

import { companies as companyCollection } from '../../shared/collections/companies.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { unpackIds } from '../../shared/store/block.ts';
import { type ContentKeys, collectionKeys } from '../../shared/store/keys.ts';

export const productKeys = collectionKeys('medref', productCollection);
export const companyKeys = collectionKeys('medref', companyCollection);

/** Reads the ids of a content in its order, as decimal digits. */
export async function readOrder(redis: Redis, key: string): Promise<string[]> {
  const ranges = await redis.hgetallBuffer(key);
  const numbers = Object.keys(ranges).sort((a, b) => Number(a) - Number(b));
  return numbers.flatMap((number) => unpackIds(ranges[number] as Buffer));
}

/** Reads the JSON texts of all records of a content in its order. @throws Error if a record is missing */
export async function readRecords(redis: Redis, { records, order }: ContentKeys): Promise<string[]> {
  const ids = await readOrder(redis, order);
  if (ids.length === 0) return [];
  const found = await redis.hmgetBuffer(records, ...ids);
  return found.map((record, n) => {
    const text = record;
    if (!text) throw new Error(`Record ${ids[n]} of ${records} is damaged.`);
    return text.toString();
  });
}
