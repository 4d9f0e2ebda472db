// Tests GET /{collection}?words=…: which records match, their order, their pages, and refused requests.

import { expect } from 'chai';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { type Product, products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { fold } from '../../../shared/store/search-index.ts';
import { useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { productKeys } from '../../support/keys.ts';
import { company, product } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { readList, whichLists } from '../../support/whole-lists.ts';

interface List {
  data: Product[];
  _links: Record<string, { href: string }>;
  _meta: { totalCount: number; pageCount: number };
}

const named = (id: number, name: string, changes: Partial<Product> = {}) =>
  product(id, { product: { id, name }, ...changes });
const idsOf = ({ data }: List) => data.map((it) => it.product.id);

const split = (text: string) =>
  fold(text)
    .split(/[^\p{L}\p{Nd}]+/u)
    .filter(Boolean);

/** Returns a function that finds products by words one by one, as the contract says. */
function oracle(list: readonly Product[]): (asked: string) => Product[] {
  const names = list
    .map((it) => ({ it, words: split(it.product.name), bytes: Buffer.from(fold(it.product.name)) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes) || a.it.product.id - b.it.product.id);
  return (asked) => {
    const wanted = split(asked);
    return names
      .filter(({ words }) => wanted.every((word) => words.some((its) => its.startsWith(word))))
      .map(({ it }) => it);
  };
}

describe('GET /{collection}?words=…', () => {
  const server = useRedis();
  const api = useApi(server, { cacheBytes: 1 });
  let redis: Redis;
  const listed = [
    named(900, 'Aspirin 500 mg Tablet', { barcodes: [{ barcode: '8690000000001', skrsStatus: null }] }),
    named(20, 'TABLET (ASPİRİN) 100MG', { published: false }),
    named(7, 'Şurup-Forte\u00a0ASPIRIN'),
    named(8, 'Forte-şurup aspirin', { drug: { id: 900, name: 'A' } }),
    named(9, 'ß-Karoten µg 10.5%'),
    named(10, 'Zinc\u0001Plus aspirin aspirin'),
    named(11, '–'),
    named(12, 'Aspirinli şurup', { drug: { id: 900, name: 'A' } }),
  ];
  before(async () => {
    redis = await connectForWriting(server().url);
    await importRecords(listed, productCollection, { redisUrl: server().url });
    const firms = [company(2, { name: 'Şifa İlaç' }), company(1, { name: 'İLAÇ ŞİFA AŞ' })];
    await importRecords(firms, companyCollection, { redisUrl: server().url });
  });
  after(() => redis.disconnect());

  const get = async (path: string) => {
    const response = await api().get(path);
    expect(response.status, `${path}: ${response.text}`).to.equal(200);
    return response.json<List>();
  };
  const search = (words: string, others = '') =>
    get(`/products?words=${encodeURIComponent(words)}&per-page=200${others}`);

  const expected = oracle(listed);

  it('finds the beginnings of words in any order and place, sorted by name', async () => {
    for (const words of [
      ...['aspirin', 'ASPİRİN şur', 'şurup fort', 'forte surup aspirin', 'tab 10', '100mg', 'mg', 'mg tab'],
      ...[
        'plus',
        'zinc plus',
        'karoten µg',
        '10%',
        'asp aspirin aspirinl',
        'spirin',
        'nothing',
        'ASPIRIN\n500',
      ],
    ]) {
      const found = await search(words);
      expect(found.data, words).to.deep.equal(expected(words));
      expect(found._meta.totalCount, words).to.equal(found.data.length);
    }
    expect(idsOf(await search('aspirin'))).to.deep.equal([900, 12, 8, 7, 20, 10]);
  });

  it('searches the names of drugs and companies', async () => {
    expect((await get('/companies?words=ilac+sifa'))._meta.totalCount).to.equal(2);
    expect(
      (await get('/companies?words=as+ilaç')).data.map((it) => (it as unknown as { id: number }).id),
    ).to.deep.equal([1]);
    expect((await get('/drugs?words=drug'))._meta.totalCount).to.be.above(0);
  });

  it('combines with a barcode and a drug', async () => {
    expect(idsOf(await search('aspirin', '&barcode=8690000000001'))).to.deep.equal([900]);
    expect(idsOf(await search('surup', '&drug=900'))).to.deep.equal([12, 8]);
    expect(idsOf(await search('surup', '&drug=900&barcode=8690000000001'))).to.deep.equal([]);
  });

  it('has links that keep the words, and pages past the end', async () => {
    const { _links, _meta } = await get('/products?words=aspirin+s&per-page=1&page=9'.replace('+s', '+su'));
    expect(_meta).to.include({ totalCount: 3, pageCount: 3 });
    expect(_links['prev']?.href).to.match(/\/products\?words=aspirin%20su&page=3&per-page=1$/);
  });

  for (const [what, text] of [
    ['one character', 'a'],
    ['one character among words', 'aspirin 5'],
    ['nine words', 'aa bb cc dd ee ff gg hh ii'],
    ['nothing', ''],
    ['no word', '-- %'],
    ['a control character', 'aspirin\u0001'],
    ['half of a pair', '%ED%A0%80'],
  ] as const) {
    it(`rejects ${what}`, async () => {
      const value = text.startsWith('%ED') ? text : encodeURIComponent(text);
      const response = await api().get(`/products?words=${value}`);
      expect(response.status).to.equal(400);
      const { message } = response.json<{ data: { message: string } }>().data;
      expect(message).to.match(
        /^The parameter words .*; it accepts 1 to 8 words of at least 2 letters or digits each; not combined with name\.$/,
      );
    });
  }

  it('rejects words together with name, and with ids', async () => {
    expect((await api().get('/products?words=aspirin&name=a')).text).to.include(
      'The parameter words cannot be combined with name; it accepts',
    );
    expect((await api().get('/products?words=aspirin&ids=7')).text).to.include(
      'The parameter ids cannot be combined with words; it accepts',
    );
  });

  it('is 503, never a shorter list, if part of the index is missing', async () => {
    const { version } = (await get('/products/versions')).data[0] as unknown as { version: number };
    const key = productKeys.content(version).words;
    const fields = await redis.hgetallBuffer(key);
    for (const field of ['first', 'n0', 'w0']) {
      const value = fields[field] as Buffer;
      await redis.hdel(key, field);
      expect((await api().get('/products?words=aspirin')).status, field).to.equal(503);
      await redis.hset(key, field, value);
    }
    expect((await search('aspirin')).data).to.have.length(6);
  });
});

describe(`a search by words in ${whichLists}`, function () {
  this.timeout(60_000);
  const server = useRedis();
  const api = useApi(server);
  const list = readList<Product>('products');
  before(() => importRecords(list, productCollection, { redisUrl: server().url }));

  it('finds the same as a filter of the list, on every page', async () => {
    const expected = oracle(list);
    const wordOf = (n: number) => {
      const words =
        fold((list[(n * 7_919) % list.length] as Product).product.name).match(/[\p{L}\p{Nd}]{2,}/gu) ?? [];
      return words[n % words.length] ?? 'tablet';
    };
    const searches = Array.from({ length: 30 }, (_, n) =>
      [wordOf(n), ...(n % 3 > 0 ? [wordOf(n + 1).slice(0, 2)] : []), ...(n % 3 > 1 ? ['tab'] : [])].join(' '),
    );
    for (const words of [...searches, 'tablet', 'ta', 'mg tablet', '10', '50']) {
      const all = expected(words);
      for (const page of new Set([1, 2, Math.ceil(all.length / 100), Math.ceil(all.length / 200)])) {
        if (page === 0) continue;
        const response = await api().get(
          `/products?words=${encodeURIComponent(words)}&per-page=100&page=${page}`,
        );
        const { data, _meta } = response.json<List>();
        expect(_meta.totalCount, words).to.equal(all.length);
        expect(data, `${words}, page ${page}`).to.deep.equal(all.slice(100 * (page - 1), 100 * page));
      }
    }
  });
});
