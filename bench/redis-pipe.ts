// In: records. Out: a file of Redis commands that write them: 500 a command into a hash, and their order into a sorted set.

import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Product } from '../shared/collections/products.ts';

const batch = 500;

/** Writes the file, for `redis-cli --pipe`. */
export async function writeCommands(path: string, products: Iterable<Product>): Promise<void> {
  await pipeline(Readable.from(commands(products)), createWriteStream(path));
}

function* commands(products: Iterable<Product>): Generator<string, void, undefined> {
  let [records, order]: [string[], string[]] = [[], []];
  let position = 0;
  for (const product of products) {
    const id = String(product.product.id);
    records.push(id, JSON.stringify(product));
    order.push(String(position++), id);
    if (position % batch !== 0) continue;
    yield command('HSET', 'pipe:records', records) + command('ZADD', 'pipe:order', order);
    [records, order] = [[], []];
  }
  if (records.length > 0)
    yield command('HSET', 'pipe:records', records) + command('ZADD', 'pipe:order', order);
}

function command(name: string, key: string, members: readonly string[]): string {
  const words = [name, key, ...members].map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return `*${words.length}\r\n${words.join('')}`;
}
