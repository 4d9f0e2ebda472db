// In: the real list. Out: three versions of it, each 1 % from the one before, as medref itself stored them in a Redis: the hashes
// of their contents, field by field.

import { rm, writeFile } from 'node:fs/promises';
import type { Product } from '../../shared/collections/product.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { importProducts } from '../medref.ts';
import { readProducts } from '../peers/paged-list.ts';
import { realProducts } from '../project.ts';
import type { Workspace } from '../workspace.ts';

/** How a list changes from one version to the next. */
export interface Course {
  readonly name: string;
  /** The list as it is for the nth time, from 0. */
  versionOf(products: readonly Product[], nth: number): Product[];
}

/** A hash, or a sorted set as fields of no value, as it was stored: what it is of, and what is in it. */
export interface StoredKey {
  /** `records`, `drugs:blocks` and so on. */
  readonly kind: string;
  readonly isSorted: boolean;
  readonly fields: readonly (readonly [field: Buffer, value: Buffer])[];
}

/** The keys of one content. */
export type StoredVersion = readonly StoredKey[];

/** The best that can be, and what lists do: names change too, records come at the end and leave anywhere. */
export const courses: readonly Course[] = [
  {
    name: '1 % changed, nothing added or removed, no name changed',
    versionOf: (products, nth) =>
      products.map((it, i) => {
        const when = i % 100;
        return 0 < when && when <= nth ? changed(it, when) : it;
      }),
  },
  {
    name: '0.8 % changed, a quarter of these in their names, 0.1 % added, 0.1 % removed',
    versionOf: (products, nth) => {
      const added = Math.floor(products.length / 1_000);
      const there = products.slice(0, products.length - added * (2 - nth));
      return there.flatMap((it, i) => {
        if (i % 1_000 < nth) return [];
        const when = (i % 125) / 10;
        if (when !== 1 && when !== 2) return [it];
        if (when > nth) return [it];
        return [i % 500 < 125 ? renamed(it, when) : changed(it, when)];
      });
    },
  },
];

function changed(product: Product, nth: number): Product {
  return { ...product, drugform: { ...product.drugform, name: `${product.drugform.name} ${nth}` } };
}

function renamed(product: Product, nth: number): Product {
  return { ...product, product: { ...product.product, name: `${nth} ${product.product.name}` } };
}

/** Imports three versions of a course, and reads what lies in Redis then, the oldest first. */
export async function storedVersions(workspace: Workspace, course: Course): Promise<StoredVersion[]> {
  const server = await workspace.startRedis();
  const redis = await connectForWriting(server.url);
  try {
    const products = readProducts(realProducts);
    for (const nth of [0, 1, 2]) {
      const path = workspace.path(`version-${nth}.json`);
      await writeFile(path, JSON.stringify(course.versionOf(products, nth)));
      await importProducts(workspace, { redisUrl: server.url, keyPrefix: 'medref' }, path);
      await rm(path);
    }
    return await contentsIn(redis);
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

/** By the numbers and last words of their keys: `medref:{products}:drugs:20261122030000:blocks`. */
async function contentsIn(redis: Redis): Promise<StoredVersion[]> {
  const versions = new Map<string, StoredKey[]>();
  for (const key of (await redis.keys('*')).sort()) {
    const [, part = '', version = '', word = ''] =
      /\}:(drugs:)?(\d{14}):(records|order|blocks|entries|fences)$/.exec(key) ?? [];
    if (version === '') continue;
    const isSorted = word === 'fences';
    const flat = isSorted
      ? (await redis.zrangeBuffer(key, 0, '-1')).flatMap((member) => [member, Buffer.alloc(0)])
      : ((await redis.callBuffer('HGETALL', key)) as Buffer[]);
    const fields = Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]] as const);
    const stored = { kind: part + word, isSorted, fields: fields as StoredKey['fields'] };
    versions.set(version, [...(versions.get(version) ?? []), stored]);
  }
  return [...versions].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, keys]) => keys);
}
