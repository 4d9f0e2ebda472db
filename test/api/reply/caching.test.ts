// Tests caching: the headers of every response, when an ETag changes, conditional requests, ranges and gzip.

import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting } from '../../../shared/redis/connections.ts';
import { useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { companies, product, products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { send, type WireAnswer } from '../../support/wire.ts';

const paths = [
  '/products',
  '/products?page=2&per-page=7',
  '/products?page=99',
  '/products/1',
  '/companies',
  '/companies/3',
];

describe('caching', () => {
  const redis = useRedis();
  const api = useApi(redis);
  before(async () => {
    await importRecords(products(450), productCollection, { redisUrl: redis().url });
    await importRecords(companies(3), companyCollection, { redisUrl: redis().url });
  });

  const get = (path: string, headers: Record<string, string> = {}) => send(api(), path, { headers });
  const etagOf = async (path: string, headers: Record<string, string> = {}) =>
    (await get(path, headers)).headers.etag ?? '';

  function expectCachingHeaders({ headers }: WireAnswer): void {
    expect(headers['medref-version']).to.match(/^[1-9][0-9]*$/);
    expect(headers['last-modified']).to.match(/^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/);
    expect(headers.etag).to.match(/^W\/"[A-Za-z0-9_-]{20,}"$/);
    expect(headers['cache-control']).to.equal('private, no-cache');
    expect(headers.vary).to.equal('Accept, Accept-Encoding, Authorization');
    expect(headers['accept-ranges']).to.equal('none');
  }

  describe('headers', () => {
    for (const path of paths) {
      it(`are on ${path}, on its gzip form, on HEAD, and on 304`, async () => {
        const plain = await get(path);
        expectCachingHeaders(plain);
        expectCachingHeaders(await get(path, { 'accept-encoding': 'gzip' }));
        expectCachingHeaders(await send(api(), path, { method: 'HEAD' }));
        const notModified = await get(path, { 'if-none-match': plain.headers.etag ?? '' });
        expect(notModified.status).to.equal(304);
        for (const name of [
          'medref-version',
          'last-modified',
          'etag',
          'cache-control',
          'vary',
          'accept-ranges',
        ]) {
          expect(notModified.headers[name], name).to.equal(plain.headers[name]);
        }
      });
    }

    it('show the live version of the collection, and when it was published', async () => {
      const connection = await connectForWriting(redis().url);
      const document = await connection.get('medref:{products}:live');
      connection.disconnect();
      const { version, publishedAt } = JSON.parse(document ?? '') as { version: number; publishedAt: string };
      for (const path of ['/products', '/products/1']) {
        const { headers } = await get(path);
        expect(headers['medref-version']).to.equal(String(version));
        expect(headers['last-modified']).to.equal(new Date(publishedAt).toUTCString());
      }
    });

    it('are absent from errors', async () => {
      for (const path of ['/products?page=0', '/products/451', '/x']) {
        const { status, headers } = await get(path, { 'if-none-match': '*' });
        expect(status).to.be.oneOf([400, 404]);
        expect(headers).not.to.have.any.keys('etag', 'last-modified', 'medref-version');
        expect(headers['cache-control']).to.match(/no-cache|no-store/);
      }
    });
  });

  describe('the ETag', () => {
    const a = { host: 'a.example' };

    it('is the same for the same request with GET and HEAD, gzip and identity', async () => {
      for (const path of paths) {
        const etag = await etagOf(path);
        expect(await etagOf(path)).to.equal(etag);
        expect(await etagOf(path, { 'accept-encoding': 'gzip' })).to.equal(etag);
        expect((await send(api(), path, { method: 'HEAD' })).headers.etag).to.equal(etag);
      }
    });

    it('is the same for equivalent requests', async () => {
      const etag = await etagOf('/products');
      for (const query of ['?', '?page=1', '?per-page=200', '?per-page=999', '?per-page=200&page=01']) {
        expect(await etagOf(`/products${query}`), query).to.equal(etag);
      }
      expect(await etagOf('/products/001')).to.equal(await etagOf('/products/1'));
    });

    it('differs by page, page size, base URL, collection, record, and list or record', async () => {
      const tags = [
        await etagOf('/products', a),
        await etagOf('/products', { host: 'b.example' }),
        await etagOf('/products', { host: 'a.example:8080' }),
        await etagOf('/products?page=2', a),
        await etagOf('/products?page=3', a),
        await etagOf('/products?page=99', a),
        await etagOf('/products?page=98', a),
        await etagOf('/products?per-page=199', a),
        await etagOf('/products?per-page=1', a),
        await etagOf('/products?page=2&per-page=1', a),
        await etagOf('/products?page=1&per-page=2', a),
        await etagOf('/products?page=1&per-page=12', a),
        await etagOf('/products?page=11&per-page=2', a),
        await etagOf('/products/1', a),
        await etagOf('/products/2', a),
        await etagOf('/companies', a),
        await etagOf('/companies/1', a),
        await etagOf('/companies/2', a),
      ];
      expect(new Set(tags).size).to.equal(tags.length);
    });

    it('differs whenever bytes differ, over many requests', async () => {
      const bodies = new Map<string, string>();
      for (const path of [
        ...paths,
        '/products?page=2',
        '/products?per-page=450',
        '/products/2',
        '/products/02',
      ]) {
        const { headers, body } = await get(path, a);
        const known = bodies.get(headers.etag ?? '');
        if (known !== undefined) expect(known).to.equal(body.toString());
        bodies.set(headers.etag ?? '', body.toString());
      }
    });
  });

  describe('If-None-Match', () => {
    const path = '/products/1';
    const strong = (etag: string) => etag.replace('W/', '');
    const held: [what: string, field: (etag: string) => string][] = [
      ['the ETag', (etag) => etag],
      ['its strong form', strong],
      ['a star', () => '*'],
      ['a star between spaces', () => '  *  '],
      ['a list with it first', (etag) => `${etag}, "x"`],
      ['a list with it last', (etag) => `"x", W/"y", ${etag}`],
      ['a list with its strong form', (etag) => `"x",${strong(etag)},"z"`],
      ['a list without spaces', (etag) => `"x",${etag}`],
      ['a list with empty elements', (etag) => `, ,"x",, ${etag},`],
      ['a list with a tag that has a comma', (etag) => `"x,y", ${etag}`],
    ];
    for (const [what, field] of held) {
      it(`returns 304 for ${what}, without a body`, async () => {
        for (const asked of [path, '/products', '/products?page=99']) {
          const etag = await etagOf(asked);
          for (const method of ['GET', 'HEAD']) {
            const headers = { 'if-none-match': field(etag) };
            const response = await send(api(), asked, { method, headers });
            expect(response.status).to.equal(304);
            expect(response.body).to.have.length(0);
            expect(response.headers).not.to.have.any.keys(
              'content-length',
              'content-encoding',
              'transfer-encoding',
            );
            expectCachingHeaders(response);
          }
        }
      });
    }

    const notHeld: [what: string, field: (etag: string) => string][] = [
      ['another tag', () => 'W/"x"'],
      ['a list of others', () => '"x", "y"'],
      ['nothing', () => ''],
      ['the tag without quotes', (etag) => strong(etag).replaceAll('"', '')],
      ['the tag in other letter case', (etag) => `W/${strong(etag).toUpperCase()}x`],
      ['the beginning of the tag', (etag) => `${etag.slice(0, -3)}"`],
      ['the tag inside a longer one', (etag) => `"x${strong(etag).slice(1)}`],
      ['a star in quotes', () => '"*"'],
    ];
    for (const [what, field] of notHeld) {
      it(`returns 200 with the body for ${what}`, async () => {
        const { status, body } = await get(path, { 'if-none-match': field(await etagOf(path)) });
        expect(status).to.equal(200);
        expect(JSON.parse(body.toString()).success).to.equal(true);
      });
    }

    it('takes precedence over If-Modified-Since, whatever that says', async () => {
      const { headers } = await get(path);
      const date = headers['last-modified'] ?? '';
      const asked = async (tag: string, since: string) =>
        (await get(path, { 'if-none-match': tag, 'if-modified-since': since })).status;
      expect(await asked('"x"', date)).to.equal(200);
      expect(await asked('', date)).to.equal(200);
      expect(await asked(headers.etag ?? '', new Date(0).toUTCString())).to.equal(304);
    });

    it('of one page does not match another', async () => {
      const etag = await etagOf('/products?page=1');
      expect((await get('/products?page=2', { 'if-none-match': etag })).status).to.equal(200);
    });

    it('is evaluated after the key', async () => {
      const headers = { 'if-none-match': '*', authorization: 'Bearer x' };
      expect((await send(api(), path, { headers })).status).to.equal(401);
    });
  });

  describe('If-Modified-Since', () => {
    for (const path of ['/products', '/products/1', '/companies']) {
      it(`answers 304 on the identical date only (${path})`, async () => {
        const date = (await get(path)).headers['last-modified'] ?? '';
        const since = async (text: string) => (await get(path, { 'if-modified-since': text })).status;
        const shifted = (ms: number) => new Date(Date.parse(date) + ms).toUTCString();
        const notModified = await get(path, { 'if-modified-since': date });
        expect([notModified.status, notModified.body.length]).to.deep.equal([304, 0]);
        expectCachingHeaders(notModified);
        for (const ms of [-1_000, 1_000, -86_400_000, 86_400_000]) {
          expect(await since(shifted(ms)), `${ms} ms`).to.equal(200);
        }
        for (const text of [
          '',
          'yesterday',
          new Date(date).toISOString(),
          `${Date.parse(date)}`,
          `${date}x`,
        ]) {
          expect(await since(text), text).to.equal(200);
        }
      });
    }
  });

  describe('ranges', () => {
    for (const range of [
      'bytes=0-0',
      'bytes=0-99',
      'bytes=-5',
      'bytes=99999999-',
      'bytes=0-1,3-4',
      'records=1-2',
      'x',
    ]) {
      it(`are not supported: Range: ${range} gets the whole body`, async () => {
        for (const path of ['/products', '/products/1']) {
          const whole = await get(path);
          for (const extra of [{}, { 'if-range': whole.headers.etag ?? '' }]) {
            const { status, headers, body } = await get(path, { range, ...extra });
            expect(status).to.equal(200);
            expect(headers).not.to.have.property('content-range');
            expect(body.equals(whole.body)).to.equal(true);
          }
        }
      });
    }
  });

  describe('gzip', () => {
    const encodings: [field: string | undefined, encoded: boolean][] = [
      ['gzip', true],
      ['GZip', true],
      ['*', true],
      ['gzip, deflate', true],
      ['gzip, deflate, br, zstd', true],
      ['br, gzip', true],
      ['br;q=1.0, gzip;q=0.1', true],
      ['gzip;q=0.5', true],
      ['gzip;q=0.001', true],
      ['gzip; q=1', true],
      ['identity;q=0.5, gzip;q=1.0', true],
      ['identity;q=0, gzip', true],
      ['*;q=0.5', true],
      ['br, *;q=0.1', true],
      [undefined, false],
      ['', false],
      ['identity', false],
      ['br', false],
      ['deflate', false],
      ['br, deflate, zstd', false],
      ['gzip;q=0', false],
      ['gzip;q=0.0', false],
      ['gzip;q=0.000', false],
      ['gzip;q=0, *', false],
      ['*, gzip;q=0', false],
      ['*;q=0', false],
      ['identity, *;q=0', false],
      ['gzipped', false],
      ['xgzip', false],
      [';;;', false],
      ['=', false],
    ];
    for (const [field, encoded] of encodings) {
      const sent = field === undefined ? 'no Accept-Encoding' : `Accept-Encoding: ${field}`;
      it(`${encoded ? 'encodes' : 'leaves alone'} a long body for ${sent}`, async () => {
        const identity = (await get('/products')).body;
        const { status, headers, body } = await get(
          '/products',
          field === undefined ? {} : { 'accept-encoding': field },
        );
        expect(status).to.equal(200);
        expect(headers['content-encoding']).to.equal(encoded ? 'gzip' : undefined);
        expect(headers['content-length']).to.equal(String(body.length));
        expect(headers['content-type']).to.equal('application/json');
        expect((encoded ? gunzipSync(body) : body).equals(identity)).to.equal(true);
        if (encoded) expect(body.length).to.be.below(identity.length / 2);
      });
    }

    it('decodes to the identity bytes on every page', async () => {
      for (let page = 1; page <= 12; page++) {
        const path = `/products?page=${page}&per-page=40`;
        const response = await get(path, { 'accept-encoding': 'gzip' });
        const plain =
          response.headers['content-encoding'] === 'gzip' ? gunzipSync(response.body) : response.body;
        expect(plain.equals((await get(path)).body), path).to.equal(true);
      }
    });

    it('leaves errors and health responses uncompressed', async () => {
      for (const path of ['/x', '/products?page=0', '/health/live']) {
        const { headers, body } = await get(path, { 'accept-encoding': 'gzip' });
        expect(headers).not.to.have.property('content-encoding');
        expect(() => JSON.parse(body.toString())).not.to.throw();
      }
    });
  });
});

describe('caching across publications', () => {
  const redis = useRedis();
  const api = useApi(redis);
  const publish = (records: readonly unknown[]) =>
    importRecords(records, productCollection, { redisUrl: redis().url, force: true });

  /** Returns the first response of this version, or the last response within a second. */
  async function replyOf(version: number | null, path: string): Promise<WireAnswer> {
    const deadline = Date.now() + 1_000;
    let response = await send(api(), path);
    while (response.headers['medref-version'] !== String(version) && Date.now() < deadline) {
      response = await send(api(), path);
    }
    expect(response.headers['medref-version']).to.equal(String(version));
    return response;
  }

  it('gives each version its own number, date and tags, however quickly they follow', async () => {
    const started = Date.now();
    const seen: WireAnswer[] = [];
    for (let n = 1; n <= 3; n++) {
      const { outcome, version } = await publish([product(1, { published: n % 2 === 0 }), product(n + 1)]);
      expect(outcome).to.equal('published');
      seen.push(await replyOf(version, '/products'));
    }
    expect(Date.now() - started, 'the three must follow within about a second').to.be.below(2_000);
    const dates = seen.map(({ headers }) => Date.parse(headers['last-modified'] ?? ''));
    expect(dates[1]).to.be.greaterThan(dates[0] as number);
    expect(dates[2]).to.be.greaterThan(dates[1] as number);
    expect(new Set(seen.map(({ headers }) => headers.etag)).size).to.equal(3);
    const [one, two, three] = seen.map(({ headers }) => Number(headers['medref-version']));
    expect([one, two, three]).to.deep.equal([one, two, three].toSorted((a, b) => Number(a) - Number(b)));
    const stale = { 'if-modified-since': seen[0]?.headers['last-modified'] ?? '' };
    expect((await send(api(), '/products', { headers: stale })).status).to.equal(200);
  });

  it('keeps version, date and tags if identical data is imported', async () => {
    const first = await publish(products(20));
    const before = await replyOf(first.version, '/products');
    expect((await publish(products(20))).outcome).to.equal('unchanged');
    const again = await importRecords(products(20), productCollection, { redisUrl: redis().url });
    expect(again.outcome).to.equal('unchanged');
    await new Promise((resolve) => setTimeout(resolve, 700));
    const after = await send(api(), '/products');
    for (const name of ['etag', 'last-modified', 'medref-version']) {
      expect(after.headers[name]).to.equal(before.headers[name]);
    }
    const headers = { 'if-none-match': before.headers.etag ?? '' };
    expect((await send(api(), '/products', { headers })).status).to.equal(304);
  });

  it('gives identical data the same tag after other data was live', async () => {
    const one = await replyOf((await publish(products(5))).version, '/products');
    const other = await replyOf((await publish(products(6))).version, '/products');
    const same = await replyOf((await publish(products(5))).version, '/products');
    expect(other.headers.etag).not.to.equal(one.headers.etag);
    expect(same.headers.etag).to.equal(one.headers.etag);
    expect(same.headers['last-modified']).not.to.equal(one.headers['last-modified']);
  });

  it('changes the tag when only the order of records changes', async () => {
    const one = await replyOf((await publish([product(1), product(2)])).version, '/products');
    const other = await replyOf((await publish([product(2), product(1)])).version, '/products');
    expect(other.headers.etag).not.to.equal(one.headers.etag);
  });

  it('compresses bodies over 4 KiB, and no others', async () => {
    const envelope = Buffer.byteLength(`{"data":,"success":true}`);
    for (const length of [4_096, 4_097, 4_100]) {
      const bare = product(1, { product: { id: 1, name: 'A' }, barcodes: [] });
      const padding = length - envelope - Buffer.byteLength(JSON.stringify(bare)) + 1;
      const record = { ...bare, product: { id: 1, name: 'A'.repeat(padding) } };
      const plain = await replyOf((await publish([record])).version, '/products/1');
      expect(plain.body).to.have.length(length);
      const { headers, body } = await send(api(), '/products/1', { headers: { 'accept-encoding': 'gzip' } });
      const encoded = headers['content-encoding'] === 'gzip';
      expect(encoded, `${length} bytes`).to.equal(length > 4_096);
      expect((encoded ? gunzipSync(body) : body).equals(plain.body)).to.equal(true);
    }
  });
});
