// Tests GET /{collection}?name=…&barcode=…&drug=…: matches, their order, and refused requests.

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
import { send } from '../../support/wire.ts';

interface List<Item = Product> {
  data: Item[];
  _links: Record<string, { href: string }>;
  _meta: { totalCount: number; pageCount: number; currentPage: number; perPage: number };
}

const named = (id: number, name: string, changes: Partial<Product> = {}) =>
  product(id, { product: { id, name }, ...changes });
const barcodesOf = (...found: string[]) => ({
  barcodes: found.map((barcode) => ({ barcode, skrsStatus: null })),
});
const ofDrug = (id: number) => ({ drug: { id, name: 'One of several products' } });
const query = (parameters: Record<string, string | number>) =>
  Object.entries(parameters)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');
const idsOf = (list: List) => list.data.map((it) => it.product.id);

/** Compares products in the order of names: by the bytes of the folded name, then by id. */
const byName = (a: Product, b: Product) =>
  Buffer.compare(Buffer.from(fold(a.product.name)), Buffer.from(fold(b.product.name))) ||
  a.product.id - b.product.id;

describe('GET /{collection} with a search', () => {
  const server = useRedis();
  const api = useApi(server, { cacheBytes: 1 });
  let redis: Redis;
  let first: number;
  const twelve = '012345678901';
  const thirteen = '0123456789012';
  const listed = [
    named(900, 'Aspirin 500 mg', barcodesOf(thirteen)),
    named(20, 'BETA\u00a0 BLOCKER', { published: false }),
    named(7, 'ASPİRİN 100 MG', { ...barcodesOf(twelve, thirteen, twelve), ...ofDrug(900) }),
    named(1_000_000, 'Aspırın Şurup', barcodesOf('9876543210987')),
    named(10, 'aspirin  100 mg', { ...barcodesOf(thirteen), ...ofDrug(900) }),
    named(9, 'Zinc\u0001Plus'),
    named(11, 'ß-Karoten', barcodesOf('8690000000011')),
    named(12, '%_*[a]\\d+'),
    ...Array.from({ length: 450 }, (_, i) => named(2_000 + ((i * 37) % 450), 'Many of one name')),
  ];

  before(async () => {
    redis = await connectForWriting(server().url);
    const options = { redisUrl: server().url };
    first = (await importRecords(listed, productCollection, options)).version as number;
    const firms = [company(2, { name: 'Şifa İlaç' }), company(1, { name: 'SIFA ILAC' }), company(3)];
    await importRecords(firms, companyCollection, options);
  });
  after(() => redis.disconnect());

  async function list<Item = Product>(path: string): Promise<List<Item>> {
    const response = await api().get(path);
    expect(response.status, `${path}: ${response.text}`).to.equal(200);
    return response.json<List<Item>>();
  }
  const search = (parameters: Record<string, string | number>) => list(`/products?${query(parameters)}`);

  it('ignores dots, accents and case', async () => {
    for (const name of ['aspiri', 'ASPİRİ', 'Aspırı', ' AŞPIRI', 'aspi\u0307ri']) {
      const found = await search({ name });
      expect(idsOf(found), name).to.deep.equal([7, 10, 900, 1_000_000]);
      expect(found.data).to.deep.equal([listed[2], listed[4], listed[0], listed[3]]);
    }
  });

  it('sorts names with the same fold by numeric id', async () => {
    expect(idsOf(await search({ name: 'ASPIRIN 100' }))).to.deep.equal([7, 10]);
    expect((await list<{ id: number }>('/companies?name=şıfa ilaç')).data.map(({ id }) => id)).to.deep.equal([
      1, 2,
    ]);
  });

  it('matches only prefixes of the whole name, and treats no character as a pattern', async () => {
    for (const name of ['spirin', '100', '%', '%_*[a]\\d+', 'beta blocker', 'beta\tb', 'ss', 'ß']) {
      const expected = listed.filter((it) => fold(it.product.name).startsWith(fold(name))).sort(byName);
      expect((await search({ name })).data, name).to.deep.equal(expected);
    }
  });

  it('finds unpublished products like any other', async () => {
    expect(idsOf(await search({ name: 'beta' }))).to.deep.equal([20]);
  });

  it('finds a barcode in list order, each product once, with 12 or 13 digits and leading zeros', async () => {
    expect(idsOf(await search({ barcode: thirteen }))).to.deep.equal([900, 7, 10]);
    expect(idsOf(await search({ barcode: twelve }))).to.deep.equal([7]);
    expect(idsOf(await search({ barcode: '123456789012' }))).to.deep.equal([]);
    expect((await search({ barcode: thirteen, page: 2, 'per-page': 2 }))._meta).to.deep.equal({
      ...{ totalCount: 3, pageCount: 2, currentPage: 2, perPage: 2 },
    });
  });

  it('combines name and barcode with AND, sorted by name', async () => {
    expect(idsOf(await search({ name: 'aspirin', barcode: thirteen }))).to.deep.equal([7, 10, 900]);
    expect(idsOf(await search({ barcode: thirteen, name: 'aspirin 5' }))).to.deep.equal([900]);
    expect(idsOf(await search({ barcode: twelve, name: 'beta' }))).to.deep.equal([]);
  });

  it('finds a barcode by its GTIN-14 that starts with 0; links repeat the request', async () => {
    const { data, _links } = await list(`/products?barcode=0${thirteen}&name=asp`);
    expect(data.map((it) => it.product.id)).to.deep.equal([7, 10, 900]);
    expect(_links['self']?.href).to.include(`/products?name=asp&barcode=0${thirteen}&page=1&`);
    expect(idsOf(await search({ barcode: `00${twelve}` }))).to.deep.equal([]);
  });

  it('finds the products of a drug in list order, also combined with name or barcode', async () => {
    expect(idsOf(await search({ drug: 900 }))).to.deep.equal([900, 7, 10]);
    expect(idsOf(await search({ drug: '0900', 'per-page': 2, page: 2 }))).to.deep.equal([10]);
    expect(idsOf(await search({ drug: 900, name: 'aspirin' }))).to.deep.equal([7, 10, 900]);
    expect(idsOf(await search({ name: 'aspirin 1', drug: 900, 'per-page': 1 }))).to.deep.equal([7]);
    expect(idsOf(await search({ drug: 900, barcode: twelve }))).to.deep.equal([7]);
    expect(idsOf(await search({ drug: 900, barcode: thirteen, name: 'aspirin 5' }))).to.deep.equal([900]);
    expect(idsOf(await search({ drug: 20, barcode: thirteen }))).to.deep.equal([]);
    expect(idsOf(await search({ drug: 9, name: 'aspirin' }))).to.deep.equal([]);
    expect(idsOf(await search({ drug: Number.MAX_SAFE_INTEGER }))).to.deep.equal([]);
  });

  it('pages through more than 200 products of one name by id, to the last page and past it', async () => {
    const ids = Array.from({ length: 450 }, (_, i) => 2_000 + i);
    for (const [page, count] of [200, 200, 50, 0].entries()) {
      const { data, _meta, _links } = await search({ name: 'many', page: page + 1 });
      expect(data.map((it) => it.product.id)).to.deep.equal(ids.slice(page * 200, page * 200 + count));
      expect(_meta).to.deep.equal({ totalCount: 450, pageCount: 3, currentPage: page + 1, perPage: 200 });
      expect('next' in _links, `next on page ${page + 1}`).to.equal(page < 2);
    }
    const far = await search({ name: 'many', page: Number.MAX_SAFE_INTEGER });
    expect([far.data.length, far._meta.totalCount]).to.deep.equal([0, 450]);
    expect(far._links['prev']?.href).to.include('page=3&');
  });

  it('returns 0 records on 0 pages without a match', async () => {
    for (const parameters of [{ name: 'nothing' }, { name: '\u{1d6c0}' }, { barcode: '000000000000' }]) {
      const { data, _meta, _links } = await search(parameters);
      expect(data).to.deep.equal([]);
      expect(_meta).to.deep.equal({ totalCount: 0, pageCount: 0, currentPage: 1, perPage: 200 });
      expect(Object.keys(_links)).to.deep.equal(['self', 'first', 'last']);
    }
  });

  it('has links with the parameters in a fixed order, before those of the page', async () => {
    const asked = `/products?page=2&barcode=${thirteen}&version=${first}&per-page=1&name=ASP%C4%B0R%C4%B0N+`;
    const { _links } = await list(asked);
    const others = `name=ASP%C4%B0R%C4%B0N%20&barcode=${thirteen}&version=${first}`;
    for (const [rel, page] of Object.entries({ self: 2, first: 1, last: 3, next: 3, prev: 1 })) {
      const href = `${api().origin}/products?${others}&page=${page}&per-page=1`;
      expect(_links[rel]?.href, rel).to.equal(href);
    }
    const next = await list((_links['next'] as { href: string }).href.slice(api().origin.length));
    expect(idsOf(next)).to.deep.equal([900]);
  });

  it('changes its ETag whenever the response may differ, and returns 304 for its own', async () => {
    const queries = [
      '',
      '?name=aspirin',
      '?name=aspirin+1',
      '?name=many',
      '?name=many&page=2',
      '?name=many&per-page=7',
      `?barcode=${thirteen}`,
      `?barcode=${twelve}`,
      `?barcode=${thirteen}&name=aspirin`,
      `?name=aspirin&version=${first}`,
      '?drug=900',
      '?drug=20',
      '?drug=900&name=aspirin',
      `?drug=900&barcode=${thirteen}`,
      `?barcode=0${thirteen}`,
      '?ids=7,10',
      '?ids=10,7',
      '?ids=07,10',
      '?ids=7,10&per-page=1',
      `?ids=7,10&version=${first}`,
    ];
    const tags = new Set<string>();
    for (const asked of queries) {
      const { headers } = await send(api(), `/products${asked}`);
      const etag = headers.etag as string;
      expect(etag, asked).to.match(/^W\/"/);
      tags.add(etag);
      const again = await send(api(), `/products${asked}`, { headers: { 'if-none-match': etag } });
      expect([again.status, again.body.length, again.headers.etag], asked).to.deep.equal([304, 0, etag]);
    }
    expect(tags.size).to.equal(queries.length);
  });

  it('accepts a name of 200 characters after trimming', async () => {
    for (const name of ['x'.repeat(200), `  ${'ş'.repeat(200)}\n`, '\u{1d6c0}'.repeat(200), 'a'])
      expect((await api().get(`/products?${query({ name })}`)).status).to.equal(200);
  });

  const malformed: Record<string, [path: string, parameter: string]> = {
    'a blank name': ['/products?name=%20%09', 'name'],
    'a name of no-break spaces': ['/products?name=%C2%A0', 'name'],
    'a name of next-line characters': ['/products?name=%C2%85', 'name'],
    'a name of marks alone': ['/products?name=%CC%81', 'name'],
    'a name of marks and white space': ['/products?name=+%CC%81+%CC%88', 'name'],
    'an empty name': ['/products?name=', 'name'],
    'a name without a value': ['/products?name', 'name'],
    'a name of 201 characters': [`/products?name=${'x'.repeat(201)}`, 'name'],
    'a name of 201 characters after trimming': [`/products?name=+${'%C5%9F'.repeat(201)}+`, 'name'],
    'a name with a NUL': ['/products?name=a%00', 'name'],
    'a name with an escape': ['/companies?name=%1Ba', 'name'],
    'a name with DEL': ['/drugs?name=a%7Fb', 'name'],
    'a name with a C1 control': ['/products?name=a%C2%80', 'name'],
    'a name with half of a surrogate pair': ['/products?name=a%ED%A0%80', 'name'],
    'a name that is not UTF-8': ['/products?name=%FF', 'name'],
    'a name that is truncated': ['/products?name=%C5', 'name'],
    'a name given twice': ['/products?name=a&name=a', 'name'],
    'an empty barcode': ['/products?barcode=', 'barcode'],
    'a barcode of 11 digits': ['/products?barcode=01234567890', 'barcode'],
    'a barcode of 14 digits that does not begin with 0': ['/products?barcode=11234567890123', 'barcode'],
    'a barcode of 15 digits': ['/products?barcode=001234567890123', 'barcode'],
    'a barcode with a space': [`/products?barcode=${thirteen}+`, 'barcode'],
    'a barcode in other digits': [`/products?barcode=${encodeURIComponent('١'.repeat(13))}`, 'barcode'],
    'a barcode given twice': [`/products?barcode=${twelve}&barcode=${twelve}`, 'barcode'],
    'a barcode of companies': [`/companies?barcode=${twelve}`, 'barcode'],
    'a barcode of drugs': [`/drugs?barcode=${twelve}`, 'barcode'],
    'a malformed barcode beside a name': ['/products?name=a&barcode=1', 'barcode'],
    'a name of one record': ['/products/7?name=a', 'name'],
    'a name of changes': ['/products/changes?since=1&name=a', 'name'],
    'a name in capitals': ['/products?NAME=a', 'NAME'],
    'an empty drug': ['/products?drug=', 'drug'],
    'a drug that is no number': ['/products?drug=aspirin', 'drug'],
    'a drug of zero': ['/products?drug=0', 'drug'],
    'a drug over 2^53-1': ['/products?drug=9007199254740992', 'drug'],
    'a drug given twice': ['/products?drug=1&drug=1', 'drug'],
    'a drug of drugs': ['/drugs?drug=1', 'drug'],
    'a drug of companies': ['/companies?drug=1', 'drug'],
    'a drug of one record': ['/products/7?drug=1', 'drug'],
    'a page of zero': ['/products?name=a&page=0', 'page'],
  };
  for (const [what, [path, parameter]] of Object.entries(malformed)) {
    it(`rejects ${what}, and names the parameter`, async () => {
      const response = await api().get(path);
      expect(response.status, response.text).to.equal(400);
      const { data } = response.json<{ data: { message: string } }>();
      expect(data.message).to.match(new RegExp(`^The parameter "?${parameter}"? .* accepts .+\\.$`));
    });
  }

  it('is 410 for a version that is not kept', async () => {
    expect((await api().get('/products?name=a&version=77')).status).to.equal(410);
  });

  it('searches the pinned version, or the live one', async () => {
    const next = [...listed.slice(1), named(901, 'Aspirin forte', barcodesOf(thirteen))];
    const { version } = await importRecords(next, productCollection, { redisUrl: server().url });
    while ((await api().get('/products?per-page=1')).headers.get('medref-version') !== String(version));
    expect(idsOf(await search({ name: 'aspirin', version: first }))).to.deep.equal([7, 10, 900, 1_000_000]);
    expect(idsOf(await search({ name: 'aspirin' }))).to.deep.equal([7, 10, 901, 1_000_000]);
    expect(idsOf(await search({ barcode: thirteen, version: first }))).to.deep.equal([900, 7, 10]);
    expect(idsOf(await search({ barcode: thirteen }))).to.deep.equal([7, 10, 901]);
    expect(idsOf(await search({ drug: 900, version: first }))).to.deep.equal([900, 7, 10]);
    expect(idsOf(await search({ drug: 900 }))).to.deep.equal([7, 10]);
  });

  it('is 503, never a wrong or shorter list, if part of the index or a record is missing', async () => {
    const content = Number((await api().get('/products?per-page=1')).headers.get('medref-version'));
    const { prefix, exact, records } = productKeys.content(content);
    const names = prefix['name'] as string;
    const path = '/products?name=many&per-page=50&page=3';
    const complete = await api().get(path);
    const found = complete.json<List>().data as Product[];
    const expectRefused = async (asked: string, what: string) => {
      const response = await api().get(asked);
      expect(response.status, what).to.equal(503);
      expect(response.headers.get('retry-after'), what).to.match(/^[1-9]/);
      expect(response.text, what).not.to.include('"product"');
      expect((await api().get('/products?page=2')).status, 'the plain list').to.equal(200);
    };
    const reported = api().damage.length;
    const members = await redis.zrange(names, 0, '-1');
    await redis.zrem(names, members[200] as string);
    for (const asked of [path, `/products?name=nothing`, `/products?drug=1&name=many`])
      await expectRefused(asked, `a name is missing: ${asked}`);
    await redis.del(names);
    await expectRefused(path, 'no names');
    await redis.zadd(names, ...members.flatMap((it) => [0, it]));
    for (const [search, value] of [
      ['barcode', '8699999999999'],
      ['drug', '999999'],
    ] as const) {
      const key = exact[search] as string;
      const [field = '', ids = ''] = (await redis.hscan(key, 0, 'COUNT', 1))[1];
      await redis.hdel(key, field);
      for (const asked of [field, value]) await expectRefused(`/products?${search}=${asked}`, search);
      await redis.hset(key, field, ids);
    }
    const lost = found[7] as Product;
    await redis.hdel(records, String(lost.product.id));
    await expectRefused(path, 'a record is missing');
    await redis.hset(records, String(lost.product.id), JSON.stringify(lost));
    expect((await api().get(path)).text).to.equal(complete.text);
    expect(api().damage.length, 'reported').to.be.above(reported);
  });
});

describe('a search with many matches', () => {
  const server = useRedis();
  const api = useApi(server);
  const manyRecords = 200;
  const count = 2 * manyRecords + 100;
  const [all, most, many, few, one] = [1, 2, 3, 4, 5].map((n) => `869000000000${n}`) as [
    ...[string, string, string, string, string],
  ];
  // Neither ids nor names are in list order. Some names are the same.
  const listed = Array.from({ length: count }, (_, n) => {
    const barcodes = [
      all,
      ...(n >= 50 ? [most] : []),
      ...(n <= manyRecords ? [many] : []),
      ...(n % 2 === 0 && n < 2 * manyRecords ? [few] : []),
      ...(n === 7 ? [one] : []),
    ];
    const drug = n % 2 === 0 ? 1 : n < 2 * manyRecords + 3 ? 64 : 4_096;
    const name = `${'çÇaIı'[n % 5]} ${(n * 7) % 90}`;
    return named(1 + ((n * 77) % 997), name, { ...barcodesOf(...barcodes), drug: { id: drug, name: 'x' } });
  });
  before(() => importRecords(listed, productCollection, { redisUrl: server().url }));

  it('finds the same as a filter over the list, in order, for any combination', async () => {
    const barcodes = [undefined, all, most, many, few, one, '8690000000009'];
    const drugs = [undefined, 1, 64, 4_096, 9];
    const names = [undefined, 'c', 'a', 'I', 'ç 6', 'ı 63', 'x'];
    const asked = barcodes.flatMap((barcode) =>
      drugs.flatMap((drug) => names.map((name) => ({ barcode, drug, name }))),
    );
    for (const [n, { barcode, drug, name }] of asked.slice(1).entries()) {
      const found = listed.filter(
        (it) =>
          (drug === undefined || it.drug.id === drug) &&
          (barcode === undefined || it.barcodes.some((its) => its.barcode === barcode)) &&
          (name === undefined || fold(it.product.name).startsWith(fold(name))),
      );
      if (name !== undefined) found.sort(byName);
      const perPage = [200, 7, 40][n % 3] as number;
      const page = 1 + (n % Math.max(1, Math.ceil(found.length / perPage)));
      const parameters = Object.entries({ barcode, drug, name }).filter(([, value]) => value !== undefined);
      const path = `/products?${query({ ...Object.fromEntries(parameters), page, 'per-page': perPage })}`;
      const response = (await api().get(path)).json<List>();
      expect(response._meta.totalCount, path).to.equal(found.length);
      const expected = found.slice((page - 1) * perPage, page * perPage);
      expect(idsOf(response), path).to.deep.equal(expected.map((it) => it.product.id));
    }
  });
});
