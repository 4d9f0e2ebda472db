// The plain way to import a list: parses the whole file at once, validates with joi, writes by HSET in pipelines, and renames.
// Arguments: the URL of a Redis, and the file. Prints the number of records and the time as JSON.

import { readFileSync } from 'node:fs';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { validProduct } from './plain-rules.ts';

const [redisUrl = '', file = ''] = process.argv.slice(2);
const batch = 500;

const startedAt = performance.now();
const redis = await connectForWriting(redisUrl);
const order = new Map<number, string>();
for (const value of JSON.parse(readFileSync(file, 'utf8')) as unknown[]) {
  const record = validProduct(value);
  if (record && !order.has(record.product.id)) order.set(record.product.id, JSON.stringify(record));
}
const fresh = { records: 'plain:records:fresh', order: 'plain:order:fresh' };
await redis.del(fresh.records, fresh.order);
const all = [...order];
for (let from = 0; from < all.length; from += batch) {
  const part = all.slice(from, from + batch);
  const writes = redis.pipeline();
  for (const [id, text] of part) writes.hset(fresh.records, id, text);
  writes.rpush(fresh.order, ...part.map(([id]) => id));
  for (const [error] of (await writes.exec()) ?? []) if (error) throw error;
}
await redis.multi().rename(fresh.records, 'plain:records').rename(fresh.order, 'plain:order').exec();
redis.disconnect();
const durationMs = performance.now() - startedAt;
process.stdout.write(`${JSON.stringify({ records: order.size, durationMs })}\n`);
