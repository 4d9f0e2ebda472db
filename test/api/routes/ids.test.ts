// Tests GET /{collection}?ids=…: the records with these ids, in the order of the ids, and refused requests.

import { expect } from 'chai';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { type Product, products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { productKeys } from '../../support/keys.ts';
import { commandsDuring } from '../../support/one-server.ts';
import { companies, product, products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { send } from '../../support/wire.ts';

interface List {
  data: unknown[];
  _links: Record<string, { href: string }>;
  _meta: { totalCount: number; pageCount: number; currentPage: number; perPage: number };
}

describe('GET /{collection} with ids', () => {
  const server = useRedis();
  const api = useApi(server);
  let redis: Redis;
  let first: number;
  let last: number;
  const greatest = Number.MAX_SAFE_INTEGER;
  const earlier = products(250);
  const listed = [
    ...earlier.filter(({ product: { id } }) => id !== 3),
    product(greatest, {
      product: { id: greatest, name: 'The last one' },
      drug: { id: 1, name: 'DRUG 1' },
      barcodes: [],
    }),
  ];
  const at = (...ids: number[]) => ids.map((id) => listed.find((it) => it.product.id === id) as Product);

  before(async () => {
    redis = await connectForWriting(server().url);
    const options = { redisUrl: server().url, force: true };
    first = (await importRecords(earlier, productCollection, options)).version as number;
    const { version, rejected } = await importRecords(listed, productCollection, options);
    expect(rejected).to.equal(0);
    last = version as number;
    await importRecords(companies(9), companyCollection, options);
    while ((await api().get('/products?per-page=1')).headers.get('medref-version') !== String(last));
    while ((await api().get('/companies')).status !== 200);
  });
  after(() => redis.disconnect());

  async function list(path: string): Promise<List> {
    const response = await api().get(path);
    expect(response.status, `${path}: ${response.text}`).to.equal(200);
    return response.json<List>();
  }

  it('returns the records in the order of the ids, for every collection', async () => {
    expect((await list('/products?ids=9,250,1')).data).to.deep.equal(at(9, 250, 1));
    expect((await list(`/products?ids=${greatest}`)).data).to.deep.equal(at(greatest));
    expect((await list('/drugs?ids=2,1')).data).to.deep.equal(at(2, 1).map(({ drug }) => ({ drug })));
    const [one, , three] = companies(3);
    expect((await list('/companies?ids=3,1')).data).to.deep.equal([three, one]);
    expect((await list('/products?ids=007,01')).data).to.deep.equal(at(7, 1));
  });

  it('omits unknown ids, and counts only the records found', async () => {
    const found = await list('/products?ids=3,9,777,1');
    expect(found.data).to.deep.equal(at(9, 1));
    expect(found._meta).to.deep.equal({ totalCount: 2, pageCount: 1, currentPage: 1, perPage: 200 });
    expect((await list('/products?ids=3,777'))._meta).to.deep.include({ totalCount: 0, pageCount: 0 });
  });

  it('is paginated, with links that carry the ids', async () => {
    const { data, _meta, _links } = await list('/products?per-page=2&ids=9,3,250,1,08&page=2');
    expect(data).to.deep.equal(at(1, 8));
    expect(_meta).to.deep.equal({ totalCount: 4, pageCount: 2, currentPage: 2, perPage: 2 });
    const prev = new URL(_links['prev']?.href as string);
    expect([...prev.searchParams]).to.deep.equal([
      ['ids', '9,3,250,1,08'],
      ['page', '1'],
      ['per-page', '2'],
    ]);
    expect((await list(prev.pathname + prev.search)).data).to.deep.equal(at(9, 250));
    expect(_links).not.to.have.property('next');
    expect((await list('/products?ids=9&page=7')).data).to.deep.equal([]);
  });

  it('accepts 200 ids of any length', async () => {
    const ids = Array.from({ length: 200 }, (_, n) => greatest - n);
    expect((await list(`/products?ids=${ids.join()}`)).data).to.deep.equal(at(greatest));
    const known = earlier
      .slice(10, 210)
      .map(({ product: { id } }) => id)
      .reverse();
    const encoded = encodeURIComponent(known.join());
    expect((await list(`/products?ids=${encoded}`)).data).to.deep.equal(at(...known));
  });

  it('returns them from the pinned version', async () => {
    const pinned = await list(`/products?ids=3,${greatest},2&version=${first}`);
    expect(pinned.data).to.deep.equal(earlier.slice(1, 3).reverse());
    expect(pinned._links['self']?.href).to.include(`&version=${first}&page=1&`);
    expect((await api().get('/products?ids=1&version=77')).status).to.equal(410);
  });

  it('sends one command, and nothing else if all are found', async () => {
    const asked = await commandsDuring(redis, () => list('/products?ids=5,4,8,9&per-page=2'));
    const commands = asked
      .filter(({ key }) => key.includes(`:${last}:`))
      .map(({ name, key, others }) => [name, key, ...others].join(' '));
    expect(commands).to.deep.equal([`hmget ${productKeys.content(last).records} 5 4 8 9`]);
  });

  it('is 503, not a shorter list, if Redis has lost a record', async () => {
    const { records } = productKeys.content(last);
    const stored = (await redis.hgetBuffer(records, '9')) as Buffer;
    await redis.hdel(records, '9');
    expect((await api().get('/products?ids=8,9')).status).to.equal(503);
    expect((await list('/products?ids=8')).data).to.deep.equal(at(8));
    await redis.hset(records, '9', stored);
    expect((await list('/products?ids=8,9')).data).to.deep.equal(at(8, 9));
    await redis.del(productKeys.damaged);
  });

  it('is 304 for clients that have it, and gzip if long', async () => {
    const ids = earlier.slice(10, 110).map(({ product: { id } }) => id);
    const { headers, body } = await send(api(), `/products?ids=${ids.join()}`, {
      headers: { 'accept-encoding': 'gzip' },
    });
    expect(headers['content-encoding']).to.equal('gzip');
    expect(body.length).to.be.below(5_000);
    const again = await send(api(), `/products?ids=${ids.join()}`, {
      headers: { 'if-none-match': headers.etag as string },
    });
    expect([again.status, again.body.length]).to.deep.equal([304, 0]);
  });

  it('may be repeated, which joins the lists', async () => {
    const { body } = await send(api(), '/products?ids=7&ids=1,3');
    expect(body.equals((await send(api(), '/products?ids=7,1,3')).body)).to.equal(true);
  });

  const malformed: Record<string, string> = {
    nothing: 'ids=',
    'commas alone': 'ids=,',
    'a comma before the first': 'ids=,1',
    'a comma behind the last': 'ids=1,',
    'two commas': 'ids=1,,2',
    'white space': 'ids=1,+2',
    letters: 'ids=1,a',
    'other digits': `ids=${encodeURIComponent('١')}`,
    'a sign': 'ids=-1',
    'a fraction': 'ids=1.5',
    zero: 'ids=1,0',
    'an id over 2^53-1': 'ids=9007199254740992',
    'an id twice': 'ids=1,2,1',
    'an id twice, once with leading zeros': 'ids=1,2,01',
    '201 ids': `ids=${Array.from({ length: 201 }, (_, n) => n + 1).join()}`,
    'ids beside a name': 'ids=1&name=a',
    'ids beside a barcode': 'barcode=8690000000001&ids=1',
    'ids beside a drug': 'ids=1&drug=1',
    'an id in two parameters': 'ids=1&ids=2,1',
  };
  for (const [what, query] of Object.entries(malformed)) {
    it(`rejects ${what}, with the accepted values`, async () => {
      const response = await api().get(`/products?${query}`);
      expect(response.status, response.text).to.equal(400);
      expect(response.json<{ data: { message: string } }>().data.message).to.match(
        /^The parameter ids (is|has|cannot) .*; it accepts 1 to 200 different ids, separated by commas, .*\.$/,
      );
    });
  }

  it('is unknown to records, changes, versions and exports', async () => {
    const lines = { headers: { accept: 'application/x-ndjson' } };
    for (const path of ['/products/1', '/products/changes', '/products/versions', '/products'])
      expect((await api().get(`${path}?ids=1`, path === '/products' ? lines : {})).status, path).to.equal(
        400,
      );
  });
});
