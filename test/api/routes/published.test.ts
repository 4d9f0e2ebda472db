// Tests GET /products?published=…: alone and with each other search, against a filter of the list.

import { expect } from 'chai';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { type Product, products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { fold } from '../../../shared/store/search-index.ts';
import { useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { productKeys } from '../../support/keys.ts';
import { companies } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { readList, whichLists } from '../../support/whole-lists.ts';

interface List {
  data: Product[];
  _links: Record<string, { href: string }>;
  _meta: { totalCount: number };
}

describe(`GET /products?published=… in ${whichLists}`, function () {
  this.timeout(60_000);
  const server = useRedis();
  const api = useApi(server);
  const list = readList<Product>('products');
  const byName = list
    .map((it) => ({ it, bytes: Buffer.from(fold(it.product.name)) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes) || a.it.product.id - b.it.product.id)
    .map(({ it }) => it);
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
    await importRecords(list, productCollection, { redisUrl: server().url });
    await importRecords(companies(2), companyCollection, { redisUrl: server().url });
  });
  after(() => redis.disconnect());

  const starts = (text: string) => (it: Product) => fold(it.product.name).startsWith(text);
  const hasWord = (word: string) => (it: Product) =>
    (fold(it.product.name).match(/[\p{L}\p{Nd}]+/gu) ?? []).some((its) => its.startsWith(word));
  const [sample] = list as [Product];
  const searches: [query: string, source: readonly Product[], matches: (it: Product) => boolean][] = [
    ['', list, () => true],
    ['&name=a', byName, starts('a')],
    ['&name=par', byName, starts('par')],
    ['&name=nothing', byName, () => false],
    ['&words=tablet', byName, hasWord('tablet')],
    ['&words=tablet+10', byName, (it) => hasWord('tablet')(it) && hasWord('10')(it)],
    [`&drug=${sample.drug.id}`, list, (it) => it.drug.id === sample.drug.id],
    [
      `&barcode=${sample.barcodes[0]?.barcode}`,
      list,
      (it) => it.barcodes.some(({ barcode }) => barcode === sample.barcodes[0]?.barcode),
    ],
    [
      `&drug=${sample.drug.id}&words=${fold(sample.drug.name).slice(0, 4)}`,
      byName,
      (it) => it.drug.id === sample.drug.id,
    ],
  ];

  for (const [query, source, matches] of searches)
    it(`returns the records that a filter of the list returns${query && `, with ${query.slice(1)}`}`, async () => {
      for (const published of [true, false]) {
        const all = source.filter((it) => it.published === published && matches(it));
        for (const page of new Set([1, 2, Math.max(1, Math.ceil(all.length / 100))])) {
          const response = await api().get(
            `/products?published=${published}${query}&per-page=100&page=${page}`,
          );
          expect(response.status, response.text).to.equal(200);
          const { data, _meta } = response.json<List>();
          expect(_meta.totalCount).to.equal(all.length);
          expect(data).to.deep.equal(all.slice(100 * (page - 1), 100 * page));
        }
      }
    });

  it('keeps the flag in links', async () => {
    const { _links } = (await api().get('/products?published=false&per-page=1')).json<List>();
    expect(_links['next']?.href).to.match(/\/products\?published=false&page=2&per-page=1$/);
  });

  for (const [path, message] of [
    ['/products?published=yes', 'The parameter published is "yes"; it accepts true or false.'],
    ['/products?published=TRUE', 'The parameter published is "TRUE"; it accepts true or false.'],
    ['/products?published=', 'The parameter published is empty; it accepts true or false.'],
    ['/products?published=true&ids=1', 'The parameter ids cannot be combined with published; it accepts'],
    ['/companies?published=true', 'The parameter "published" is unknown; this route accepts'],
  ] as const)
    it(`rejects ${path}`, async () => {
      const response = await api().get(path);
      expect(response.status).to.equal(400);
      expect(response.text).to.include(message.replaceAll('"', '\\"'));
    });

  describe('without memory', () => {
    const forgetful = useApi(server, { cacheBytes: 1 });

    it('is 503, never a wrong list, if the flags are missing', async () => {
      const { data } = (await forgetful().get('/products/versions')).json<{ data: { version: number }[] }>();
      const key = productKeys.content(data[0]?.version as number).words;
      expect((await forgetful().get('/products?published=true')).status).to.equal(200);
      expect(await redis.hdel(key, 'position published', 'rank published')).to.equal(2);
      for (const path of ['/products?published=true', '/products?published=false&name=b'])
        expect((await forgetful().get(path)).status, path).to.equal(503);
    });
  });
});
