import { expect } from 'chai';
import { products as productCollection } from '../../shared/collections/products.ts';
import { useApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';

const shop = 'https://shop.example';

describe('pages of other origins', () => {
  const redis = useRedis();
  const closed = useApi(redis);
  const some = useApi(redis, { corsOrigins: ['https://other.example', shop] });
  const all = useApi(redis, { corsOrigins: '*' });
  before(async () => {
    await importRecords(products(3), productCollection, { redisUrl: redis().url });
    for (const api of [closed, some, all]) while ((await api().get('/products')).status !== 200);
  });

  /** Returns a response as a browser receives it for a page. */
  const asked = async (
    api: typeof some,
    path: string,
    headers: Record<string, string> = {},
    method = 'GET',
  ) => {
    const { origin, key } = api();
    const sent = { origin: shop, ...(method === 'GET' && { authorization: `Bearer ${key}` }), ...headers };
    const response = await fetch(`${origin}${path}`, { method, headers: sent });
    const body = await response.text();
    return { status: response.status, headers: response.headers, body };
  };
  const preflight = {
    'access-control-request-method': 'GET',
    'access-control-request-headers': 'authorization',
  };
  const crossOrigin = (headers: Headers) =>
    [...headers.keys()].filter((it) => it.startsWith('access-control'));

  describe('that are allowed', () => {
    for (const [what, path, headers, status] of [
      ['a list', '/products', {}, 200],
      ['a record', '/products/1', {}, 200],
      ['lines', '/products', { accept: 'application/x-ndjson' }, 200],
      ['a 304', '/products', { 'if-none-match': '*' }, 304],
      ['an error of a route', '/products/9', {}, 404],
      ['an error of a path', '/nothing', {}, 404],
      ['a refused key', '/products', { authorization: 'Bearer no' }, 401],
      ['a wrong parameter', '/products?page=0', {}, 400],
      ['what is refused before it is routed', '/%ff', {}, 400],
      ['the health', '/health/ready', {}, 200],
      ['the description', '/openapi.json', {}, 200],
    ] as const) {
      it(`may read ${what}, with its fields`, async () => {
        const { status: answered, headers: fields } = await asked(some, path, headers);
        expect(answered).to.equal(status);
        expect(fields.get('access-control-allow-origin')).to.equal(shop);
        expect(fields.get('access-control-expose-headers')?.split(', ')).to.include.members([
          ...['Medref-Version', 'Medref-Digest', 'ETag', 'Retry-After', 'RateLimit', 'X-Request-Id'],
        ]);
        expect(fields.get('vary')?.split(', ')).to.include('Origin');
      });
    }

    it('keep the other values of Vary', async () => {
      const { headers } = await asked(some, '/products');
      expect(headers.get('vary')).to.equal('Accept, Accept-Encoding, Authorization, Origin');
    });

    it('send preflights without a key, which are valid for two hours', async () => {
      for (const path of ['/products', '/products/1', '/nothing']) {
        const { status, headers, body } = await asked(some, path, preflight, 'OPTIONS');
        expect([status, body]).to.deep.equal([204, '']);
        expect(headers.get('access-control-allow-origin')).to.equal(shop);
        expect(headers.get('access-control-allow-methods')).to.equal('GET, HEAD');
        expect(headers.get('access-control-allow-headers')?.toLowerCase().split(', ')).to.include.members([
          ...['authorization', 'if-none-match', 'if-modified-since', 'medref-have', 'x-request-id'],
        ]);
        expect(headers.get('access-control-max-age')).to.equal('7200');
      }
    });

    it('may be all origins', async () => {
      for (const [path, method] of [
        ['/products', 'GET'],
        ['/products', 'OPTIONS'],
      ] as const) {
        const { headers } = await asked(all, path, method === 'GET' ? {} : preflight, method);
        expect(headers.get('access-control-allow-origin')).to.equal('*');
        expect(headers.get('vary') ?? '').not.to.include('Origin');
      }
    });
  });

  it('that are not allowed read nothing, and no cache mixes their responses', async () => {
    for (const origin of ['https://shop.example.evil', 'https://SHOP.example', 'null']) {
      const responses = [
        await asked(some, '/products', { origin }),
        await asked(some, '/products', { origin, ...preflight }, 'OPTIONS'),
      ];
      for (const { headers } of responses) {
        expect(headers.get('access-control-allow-origin')).to.equal(null);
        expect(headers.get('vary')?.split(', ')).to.include('Origin');
      }
    }
  });

  it('may only read: an OPTIONS that is no preflight is refused', async () => {
    const { status, headers } = await asked(
      some,
      '/products',
      { authorization: `Bearer ${some().key}` },
      'OPTIONS',
    );
    expect([status, headers.get('allow')]).to.deep.equal([405, 'GET, HEAD']);
  });

  it('get the list with a request that needs a preflight', async () => {
    expect((await asked(some, '/products', preflight)).status).to.equal(200);
  });

  it('change nothing if none are allowed', async () => {
    const { headers } = await asked(closed, '/products');
    expect(crossOrigin(headers)).to.deep.equal([]);
    expect(headers.get('vary')).to.equal('Accept, Accept-Encoding, Authorization');
    const { status } = await asked(closed, '/products', preflight, 'OPTIONS');
    expect(status).to.equal(401);
  });
});
