// A program, the plain way to serve lists from Redis: the ids of a page, their records, parsed, and an object that hapi
// stringifies and compresses for each response. Prints its address as JSON.

import type { AddressInfo } from 'node:net';
import { server as hapiServer } from '@hapi/hapi';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { readProducts } from '../requests.ts';

const [redisUrl = '', file = ''] = process.argv.slice(2);
const batch = 500;
const redis = await connectForWriting(redisUrl);
const products = readProducts(file);
for (let from = 0; from < products.length; from += batch) {
  const part = products.slice(from, from + batch);
  await redis.hset('plain:records', ...part.flatMap((it) => [it.product.id, JSON.stringify(it)]));
  await redis.zadd('plain:order', ...part.flatMap((it, n) => [from + n, it.product.id]));
}
const server = hapiServer({ host: '127.0.0.1', port: 0, debug: false });
server.route({
  method: 'GET',
  path: '/products',
  handler: async ({ query, info }) => {
    const [page, perPage] = [Number(query['page'] ?? 1), Number(query['per-page'] ?? 200)];
    const from = (page - 1) * perPage;
    const [ids, totalCount] = await Promise.all([
      redis.zrange('plain:order', from, String(from + perPage - 1)),
      redis.zcard('plain:order'),
    ]);
    const data = (await redis.hmget('plain:records', ...ids)).map((text) => JSON.parse(text ?? 'null'));
    const pageCount = Math.ceil(totalCount / perPage);
    const link = (to: number) => ({ href: `http://${info.host}/products?page=${to}&per-page=${perPage}` });
    const _links = { self: link(page), first: link(1), last: link(pageCount), next: link(page + 1) };
    return { data, _links, _meta: { totalCount, pageCount, currentPage: page, perPage }, success: true };
  },
});
await server.start();
const { port } = server.listener.address() as AddressInfo;
process.stdout.write(`${JSON.stringify({ address: `http://127.0.0.1:${port}` })}\n`);
