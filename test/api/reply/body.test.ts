// Tests list pages over HTTP that are assembled from blocks: every size at every position, and with damaged blocks.

import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { type Company, companies as companyCollection } from '../../../shared/collections/companies.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { companyKeys, productKeys } from '../../support/keys.ts';
import { company, product } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { type Asked, send } from '../../support/wire.ts';

/** The last block has 23 records. The records differ in length, and their characters too. */
const listed = Array.from({ length: 423 }, (_, i) =>
  product(1_000 - i, { drugform: { id: 1, name: `ŞURUP ${'ğ€𝛀x'.repeat((i * 7) % 40)}` } }),
);
const texts = listed.map((it) => JSON.stringify(it));

/** Returns the text of a page, built from the records alone. */
function pageOf(origin: string, page: number, perPage: number): string {
  const pageCount = Math.ceil(texts.length / perPage);
  const link = (to: number) => ({ href: `${origin}/products?page=${to}&per-page=${perPage}` });
  const links = {
    ...{ self: link(page), first: link(1), last: link(pageCount) },
    ...(page < pageCount && { next: link(page + 1) }),
    ...(page > 1 && { prev: link(Math.min(page - 1, pageCount)) }),
  };
  const meta = { totalCount: texts.length, pageCount, currentPage: page, perPage };
  const data = texts.slice((page - 1) * perPage, page * perPage).join(',');
  return `{"data":[${data}],"_links":${JSON.stringify(links)},"_meta":${JSON.stringify(meta)},"success":true}`;
}

const gzip = { 'accept-encoding': 'gzip' };

describe('pages made from blocks', () => {
  const server = useRedis();
  const api = useApi(server, { cacheBytes: 1 });
  const remembering = useApi(server);
  let redis: Redis;
  let version: number;
  let blocks: string;
  before(async () => {
    redis = await connectForWriting(server().url);
    const report = await importRecords(listed, productCollection, { redisUrl: server().url });
    version = report.version as number;
    blocks = productKeys.content(version).blocks;
    await api().get('/products');
  });
  after(() => redis.disconnect());

  async function expectPage(asked: Asked, page: number, perPage: number): Promise<void> {
    const path = `/products?page=${page}&per-page=${perPage}`;
    const expected = pageOf(asked.origin, page, perPage);
    const [plain, compressed, head, compressedHead] = await Promise.all([
      send(asked, path),
      send(asked, path, { headers: gzip }),
      send(asked, path, { method: 'HEAD' }),
      send(asked, path, { method: 'HEAD', headers: gzip }),
    ]);
    expect(plain.status, path).to.equal(200);
    expect(plain.body.toString() === expected, `${path} as it is`).to.equal(true);
    expect(plain.headers['content-length'], path).to.equal(String(plain.body.length));
    const isCompressed = Buffer.byteLength(expected) > 4_096;
    expect(compressed.headers['content-encoding'], path).to.equal(isCompressed ? 'gzip' : undefined);
    const text = isCompressed ? gunzipSync(compressed.body) : compressed.body;
    expect(text.toString() === expected, `${path} compressed`).to.equal(true);
    expect(compressed.headers.etag, path).to.equal(plain.headers.etag);
    for (const [bare, full] of [
      [head, plain],
      [compressedHead, compressed],
    ] as const) {
      const { date: _, connection: __, 'keep-alive': ___, 'x-request-id': ____, ...headers } = full.headers;
      expect([bare.status, bare.body.length], `HEAD ${path}`).to.deep.equal([200, 0]);
      expect(bare.headers, `HEAD ${path}`).to.deep.include(headers);
      expect(bare.headers['content-length'], path).to.equal(String(full.body.length));
    }
  }

  for (const perPage of [1, 30, 49, 50, 51, 75, 100, 101, 150, 199, 200]) {
    it(`equal the list for ${perPage}, plain and compressed, with the length of HEAD`, async () => {
      const last = Math.ceil(listed.length / perPage);
      const pages = last <= 6 ? Array.from({ length: last }, (_, n) => n + 1) : [1, 2, 5, last - 1, last];
      for (const page of [...new Set([...pages.filter((page) => page <= last), last + 1])])
        for (const asked of [api(), remembering()]) await expectPage(asked, page, perPage);
    });
  }

  it('need no records: these may be gone', async () => {
    const { records, order } = productKeys.content(version);
    await redis.rename(records, 'aside:records');
    await redis.rename(order, 'aside:order');
    try {
      for (const [page, perPage] of [
        [1, 200],
        [2, 51],
        [9, 50],
      ] as const)
        await expectPage(api(), page, perPage);
    } finally {
      await redis.rename('aside:records', records);
      await redis.rename('aside:order', order);
    }
  });

  it('come from cached blocks, even if the stored ones are gone', async () => {
    const stored = (await redis.hgetBuffer(blocks, '0')) as Buffer;
    await expectPage(remembering(), 1, 200);
    await redis.hset(blocks, '0', 'x');
    for (const perPage of [200, 150, 10]) await expectPage(remembering(), 1, perPage);
    await redis.rename(blocks, 'aside:blocks');
    await expectPage(remembering(), 1, 200);
    await redis.rename('aside:blocks', blocks);
    await redis.hset(blocks, '0', stored);
  });

  it('come from records if a block, or all blocks, are missing', async () => {
    const stored = await redis.hgetallBuffer(blocks);
    await redis.hdel(blocks, '2');
    for (const [page, perPage] of [
      [3, 200],
      [9, 50],
      [8, 51],
    ] as const)
      await expectPage(api(), page, perPage);
    await redis.del(blocks);
    for (const perPage of [1, 50, 200]) await expectPage(api(), 2, perPage);
    await redis.hset(blocks, ...Object.entries(stored).flat());
  });
});

describe('pages of records that are too large for blocks', () => {
  const server = useRedis();
  const api = useApi(server);

  it('equal the list, with some blocks missing or all', async () => {
    const redis = await connectForWriting(server().url);
    // Four of these records are too large for one block.
    const large = (id: number) => company(id, { address: `${id} ${'x'.repeat(260_000)}` });
    const some: Company[] = Array.from({ length: 450 }, (_, i) =>
      i >= 260 && i < 264 ? large(i + 1) : company(i + 1),
    );
    for (const [list, made] of [
      [some, ['0', '2']],
      [[1, 2, 3, 4].map(large), []],
    ] as const) {
      const options = { redisUrl: server().url, force: true };
      const { outcome, version } = await importRecords(list, companyCollection, options);
      expect(outcome).to.equal('published');
      const stored = await redis.hkeys(companyKeys.content(version as number).blocks);
      expect(stored.sort()).to.deep.equal(made);
      while ((await api().get('/companies/1')).headers.get('medref-version') !== String(version));
      for (const [page, perPage] of [
        [1, 200],
        [2, 150],
        [6, 50],
        [7, 40],
        [5, 61],
        [1, 2],
      ] as const) {
        const path = `/companies?page=${page}&per-page=${perPage}`;
        for (const headers of [{}, gzip]) {
          const response = await send(api(), path, { headers });
          const isCompressed = response.headers['content-encoding'] === 'gzip';
          const body = isCompressed ? gunzipSync(response.body) : response.body;
          const { data } = JSON.parse(body.toString()) as { data: Company[] };
          const expected = list.slice((page - 1) * perPage, page * perPage);
          expect(JSON.stringify(data) === JSON.stringify(expected), path).to.equal(true);
        }
      }
    }
    expect(api().damage, 'a block that was never built is no damage').to.deep.equal([]);
    redis.disconnect();
  });
});
