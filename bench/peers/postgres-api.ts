// A program, the usual database behind the same framework: PostgreSQL with LIMIT, OFFSET and count(*).
// In: PostgreSQL's socket, Redis with the keys, and the list. Out: its address in a line of JSON, and answers.

import pg from 'pg';
import { keyedServer, readPeerArguments, tellAddress } from './keyed-server.ts';
import { pagedList, pagingOf, readProducts } from './paged-list.ts';

const { redisUrl, keyPrefix, file, socketFolder } = readPeerArguments();
const pool = new pg.Pool({ host: socketFolder, database: 'postgres', user: 'bench', max: 10 });
const batch = 1_000;

await store();
const server = await keyedServer({ redisUrl, keyPrefix, compression: true });
server.route({
  method: 'GET',
  path: '/products',
  handler: async (request) => {
    const paging = pagingOf(request.query);
    const [page, count] = await Promise.all([
      pool.query<{ record: unknown }>({
        name: 'page',
        text: 'SELECT record FROM products ORDER BY position LIMIT $1 OFFSET $2',
        values: [paging.perPage, (paging.page - 1) * paging.perPage],
      }),
      pool.query<{ count: string }>({ name: 'count', text: 'SELECT count(*) FROM products' }),
    ]);
    const data = page.rows.map(({ record }) => record);
    return pagedList(request.raw.req, paging, { data, totalCount: Number(count.rows[0]?.count) });
  },
});
await server.start();
tellAddress(server);

async function store(): Promise<void> {
  await pool.query(
    'CREATE TABLE products (position integer PRIMARY KEY, id bigint UNIQUE NOT NULL, record json NOT NULL)',
  );
  const products = readProducts(file);
  for (let from = 0; from < products.length; from += batch) {
    const part = products.slice(from, from + batch);
    await pool.query('INSERT INTO products SELECT * FROM unnest($1::integer[], $2::bigint[], $3::json[])', [
      part.map((_, i) => from + i),
      part.map((it) => it.product.id),
      part.map((it) => JSON.stringify(it)),
    ]);
  }
  await pool.query('VACUUM ANALYZE products');
}
