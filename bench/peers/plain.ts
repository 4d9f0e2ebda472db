// A program, the plain way to serve lists from Redis: ids of a page, their records, parsed, put into an object that hapi
// stringifies and compresses for each answer. In: Redis with the keys, and the list. Out: its address, and answers.

import { connectForServing, connectForWriting } from '../../shared/redis/connections.ts';
import { keyedServer, readPeerArguments, tellAddress } from './keyed-server.ts';
import { pagedList, pagingOf, readProducts } from './paged-list.ts';

const { redisUrl, keyPrefix, file } = readPeerArguments();
const keys = { order: 'plain:order', records: 'plain:records' };
const batch = 500;

await store();
const redis = connectForServing(redisUrl);
await new Promise((resolve) => redis.once('ready', resolve));
const server = await keyedServer({ redisUrl, keyPrefix, compression: true });
server.route({
  method: 'GET',
  path: '/products',
  handler: async (request) => {
    const paging = pagingOf(request.query);
    const from = (paging.page - 1) * paging.perPage;
    const [ids, totalCount] = await Promise.all([
      redis.zrange(keys.order, from, `${from + paging.perPage - 1}`),
      redis.zcard(keys.order),
    ]);
    const texts = ids.length === 0 ? [] : await redis.hmget(keys.records, ...ids);
    const data = texts.map((text) => JSON.parse(text ?? 'null'));
    return pagedList(request.raw.req, paging, { data, totalCount });
  },
});
await server.start();
tellAddress(server);

async function store(): Promise<void> {
  const writing = await connectForWriting(redisUrl);
  const products = readProducts(file);
  for (let from = 0; from < products.length; from += batch) {
    const part = products.slice(from, from + batch);
    await writing.hset(keys.records, ...part.flatMap((it) => [it.product.id, JSON.stringify(it)]));
    await writing.zadd(keys.order, ...part.flatMap((it, i) => [from + i, it.product.id]));
  }
  writing.disconnect();
}
