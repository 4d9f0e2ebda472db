// Tests GET /products and /companies: the envelope, its links, and walks along the links.

import { expect } from 'chai';
import { readSettings } from '../../../config/settings.ts';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { type Product, products as productCollection } from '../../../shared/collections/products.ts';
import { useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { companies, company, product } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { send } from '../../support/wire.ts';

interface List {
  data: Product[];
  _links: Record<string, { href: string }>;
  _meta: { totalCount: number; pageCount: number; currentPage: number; perPage: number };
  success: boolean;
}

/** 450 products that are not in the order of their ids. The seventh is not published. */
const listed = Array.from({ length: 450 }, (_, i) =>
  product(((i * 37) % 450) + 1, i === 6 ? { published: false } : {}),
);
const ids = listed.map((it) => it.product.id);
const max = Number.MAX_SAFE_INTEGER;

describe('GET /{collection}', () => {
  const redis = useRedis();
  const api = useApi(redis);
  before(async () => {
    const options = { redisUrl: redis().url };
    expect((await importRecords(listed, productCollection, options)).outcome).to.equal('published');
    expect((await importRecords(companies(3), companyCollection, options)).outcome).to.equal('published');
  });

  async function list(path: string): Promise<List> {
    const response = await api().get(path);
    expect(response.status, response.text).to.equal(200);
    return response.json<List>();
  }

  it('returns the exact bytes of the envelope and the records', async () => {
    const { status, headers, body } = await send(api(), '/products?page=2&per-page=3');
    const links = (page: number) => `{"href":"${api().origin}/products?page=${page}&per-page=3"}`;
    expect(status).to.equal(200);
    expect(headers['content-type']).to.equal('application/json');
    expect(headers['content-length']).to.equal(String(body.length));
    expect(body.toString()).to.equal(
      `{"data":[${listed
        .slice(3, 6)
        .map((it) => JSON.stringify(it))
        .join(',')}],` +
        `"_links":{"self":${links(2)},"first":${links(1)},"last":${links(150)},"next":${links(3)},"prev":${links(1)}},` +
        '"_meta":{"totalCount":450,"pageCount":150,"currentPage":2,"perPage":3},"success":true}',
    );
  });

  it('returns companies in the same envelope', async () => {
    const { body } = await send(api(), '/companies');
    const link = `{"href":"${api().origin}/companies?page=1&per-page=200"}`;
    expect(body.toString()).to.equal(
      `{"data":[${companies(3)
        .map((it) => JSON.stringify(it))
        .join(',')}],"_links":{"self":${link},"first":${link},"last":${link}},` +
        '"_meta":{"totalCount":3,"pageCount":1,"currentPage":1,"perPage":200},"success":true}',
    );
  });

  it('returns 200 records on the first page by default', async () => {
    const { data, _meta } = await list('/products');
    expect(data).to.deep.equal(listed.slice(0, 200));
    expect(_meta).to.deep.equal({ totalCount: 450, pageCount: 3, currentPage: 1, perPage: 200 });
  });

  it('accepts a question mark without parameters', async () => {
    expect((await api().get('/products?')).text).to.equal((await api().get('/products')).text);
  });

  it('counts and lists unpublished products like any other', async () => {
    const { data, _meta } = await list('/products?page=7&per-page=1');
    expect(data).to.deep.equal([listed[6]]);
    expect(data[0]?.published).to.equal(false);
    expect(_meta.totalCount).to.equal(450);
  });

  interface PageCase {
    path: string;
    what: string;
    /** Index of the first record, and index after the last record. */
    slice: [number, number];
    page: number;
    perPage: number;
    pageCount: number;
    next?: number;
    prev?: number;
  }

  const pages: PageCase[] = [
    { path: '?page=1', what: 'first', slice: [0, 200], page: 1, perPage: 200, pageCount: 3, next: 2 },
    {
      path: '?page=2',
      what: 'middle',
      slice: [200, 400],
      page: 2,
      perPage: 200,
      pageCount: 3,
      next: 3,
      prev: 1,
    },
    {
      path: '?page=3',
      what: 'last, ragged',
      slice: [400, 450],
      page: 3,
      perPage: 200,
      pageCount: 3,
      prev: 2,
    },
    {
      path: '?page=4',
      what: 'first beyond the end',
      slice: [0, 0],
      page: 4,
      perPage: 200,
      pageCount: 3,
      prev: 3,
    },
    {
      path: '?page=99',
      what: 'far beyond the end',
      slice: [0, 0],
      page: 99,
      perPage: 200,
      pageCount: 3,
      prev: 3,
    },
    {
      path: `?page=${max}`,
      what: 'last that can be asked',
      slice: [0, 0],
      page: max,
      perPage: 200,
      pageCount: 3,
      prev: 3,
    },
    {
      path: `?page=${max}&per-page=1`,
      what: 'same, of one',
      slice: [0, 0],
      page: max,
      perPage: 1,
      pageCount: 450,
      prev: 450,
    },
    {
      path: '?per-page=1',
      what: 'first of one',
      slice: [0, 1],
      page: 1,
      perPage: 1,
      pageCount: 450,
      next: 2,
    },
    {
      path: '?page=450&per-page=1',
      what: 'last of one',
      slice: [449, 450],
      page: 450,
      perPage: 1,
      pageCount: 450,
      prev: 449,
    },
    {
      path: '?page=3&per-page=150',
      what: 'last, full',
      slice: [300, 450],
      page: 3,
      perPage: 150,
      pageCount: 3,
      prev: 2,
    },
    {
      path: '?page=4&per-page=150',
      what: 'beyond a full last',
      slice: [0, 0],
      page: 4,
      perPage: 150,
      pageCount: 3,
      prev: 3,
    },
    {
      path: '?per-page=50&page=9',
      what: 'last, parameters swapped',
      slice: [400, 450],
      page: 9,
      perPage: 50,
      pageCount: 9,
      prev: 8,
    },
    {
      path: '?per-page=199',
      what: 'just under the limit',
      slice: [0, 199],
      page: 1,
      perPage: 199,
      pageCount: 3,
      next: 2,
    },
    {
      path: '?per-page=200',
      what: 'at the limit',
      slice: [0, 200],
      page: 1,
      perPage: 200,
      pageCount: 3,
      next: 2,
    },
    {
      path: '?per-page=201',
      what: 'over the limit, reduced',
      slice: [0, 200],
      page: 1,
      perPage: 200,
      pageCount: 3,
      next: 2,
    },
    {
      path: '?page=2&per-page=450',
      what: 'over the limit, second',
      slice: [200, 400],
      page: 2,
      perPage: 200,
      pageCount: 3,
      next: 3,
      prev: 1,
    },
    {
      path: `?per-page=${max}`,
      what: 'far over the limit',
      slice: [0, 200],
      page: 1,
      perPage: 200,
      pageCount: 3,
      next: 2,
    },
    {
      path: '?page=0002&per-page=0050',
      what: 'leading zeros',
      slice: [50, 100],
      page: 2,
      perPage: 50,
      pageCount: 9,
      next: 3,
      prev: 1,
    },
    {
      path: '?%70age=%32&per%2Dpage=50',
      what: 'percent-encoded',
      slice: [50, 100],
      page: 2,
      perPage: 50,
      pageCount: 9,
      next: 3,
      prev: 1,
    },
  ];

  for (const { path, what, slice, page, perPage, pageCount, next, prev } of pages) {
    it(`describes the page and links to its neighbours: ${what} (${path})`, async () => {
      const { data, _links, _meta } = await list(`/products${path}`);
      const to = (number: number) => ({
        href: `${api().origin}/products?page=${number}&per-page=${perPage}`,
      });
      expect(data.map((it) => it.product.id)).to.deep.equal(ids.slice(...slice));
      expect(_meta).to.deep.equal({ totalCount: 450, pageCount, currentPage: page, perPage });
      const links = [
        ['self', to(page)],
        ['first', to(1)],
        ['last', to(pageCount)],
        ...(next === undefined ? [] : [['next', to(next)]]),
        ...(prev === undefined ? [] : [['prev', to(prev)]]),
      ];
      expect(Object.entries(_links)).to.deep.equal(links);
    });
  }

  it('has a previous page past the end of a single page', async () => {
    const { _links } = await list('/companies?page=2');
    expect(Object.keys(_links)).to.deep.equal(['self', 'first', 'last', 'prev']);
    expect(_links['prev']?.href).to.equal(`${api().origin}/companies?page=1&per-page=200`);
  });

  for (const { start, link, order } of [
    { start: '?per-page=60', link: 'next', order: ids },
    { start: '?per-page=150', link: 'next', order: ids },
    { start: '', link: 'next', order: ids },
    { start: '?per-page=150&page=77', link: 'prev', order: ids.toReversed() },
  ]) {
    it(`visits every record once, in order, along ${link} from /products${start}`, async () => {
      const seen: number[] = [];
      let requests = 0;
      for (let next: string | undefined = `/products${start}`; next !== undefined; ) {
        expect(++requests, 'the walk must end').to.be.at.most(20);
        const { data, _links }: List = await list(next.replace(api().origin, ''));
        const page = data.map((it) => it.product.id);
        seen.push(...(link === 'prev' ? page.toReversed() : page));
        next = _links[link]?.href;
      }
      expect(seen).to.deep.equal(order);
    });
  }

  it('links each page to itself', async () => {
    for (const path of ['/products', '/products?page=3', '/products?page=9&per-page=7']) {
      const first = await api().get(path);
      const { href } = first.json<List>()._links['self'] ?? { href: '' };
      expect((await api().get(href.replace(api().origin, ''))).text).to.equal(first.text);
    }
  });

  describe('starts its links with', () => {
    const settings = (BASE_URL: string) => readSettings({ BASE_URL }).baseUrl as string;
    const withPath = useApi(redis, { baseUrl: settings('https://data.example:8443/reference/v1') });
    const withSlash = useApi(redis, { baseUrl: settings('http://data.example/reference/') });
    const withSlashes = useApi(redis, { baseUrl: settings('https://data.example///') });

    async function selfOf(from: typeof api, host?: string): Promise<string | undefined> {
      const { body } = await send(from(), '/companies', { headers: host === undefined ? {} : { host } });
      return (JSON.parse(body.toString()) as List)._links['self']?.href;
    }

    it('http:// and the Host of the request, without BASE_URL', async () => {
      for (const host of ['medref.example', 'Medref.Example:8080', '[::1]:3000', 'a_b.local']) {
        expect(await selfOf(api, host)).to.equal(`http://${host}/companies?page=1&per-page=200`);
      }
    });

    it('nothing from forwarding headers', async () => {
      const headers = {
        host: 'medref.example',
        'x-forwarded-host': 'evil.example',
        'x-forwarded-proto': 'https',
        forwarded: 'host=evil.example',
      };
      const { body } = await send(api(), '/companies', { headers });
      expect(body.toString()).to.include('"http://medref.example/companies?').and.not.include('evil');
    });

    it('BASE_URL with its port and path, whatever the Host', async () => {
      expect(await selfOf(withPath, 'other.example')).to.equal(
        'https://data.example:8443/reference/v1/companies?page=1&per-page=200',
      );
    });

    it('BASE_URL without trailing slashes', async () => {
      expect(await selfOf(withSlash)).to.equal('http://data.example/reference/companies?page=1&per-page=200');
      expect(await selfOf(withSlashes)).to.equal('https://data.example/companies?page=1&per-page=200');
    });

    it('the same text in all links of a response', async () => {
      const { body } = await send(withPath(), '/products?page=2');
      const { _links } = JSON.parse(body.toString()) as List;
      expect(Object.keys(_links)).to.have.length(5);
      for (const { href } of Object.values(_links)) {
        expect(href).to.match(
          /^https:\/\/data\.example:8443\/reference\/v1\/products\?page=\d+&per-page=200$/,
        );
      }
    });
  });

  it('lists the latest publication completely', async () => {
    const changed = [company(9, { name: 'SON' }), company(2), company(3), company(1)];
    const report = await importRecords(changed, companyCollection, { redisUrl: redis().url });
    expect(report.outcome).to.equal('published');
    const deadline = Date.now() + 1_000;
    let text = '';
    do ({ text } = await api().get('/companies'));
    while (!text.includes('SON') && Date.now() < deadline);
    expect(JSON.parse(text).data).to.deep.equal(changed);
  });
});
