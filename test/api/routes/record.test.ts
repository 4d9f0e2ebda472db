// Tests GET /products/{id} and /companies/{id}: the right record, and its exact bytes.

import { expect } from 'chai';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { type Product, products as productCollection } from '../../../shared/collections/products.ts';
import { useApi } from '../../support/api.ts';
import { importRecords, importText } from '../../support/importing.ts';
import { company, product } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { send } from '../../support/wire.ts';

const max = Number.MAX_SAFE_INTEGER;
const named = (id: number, name: string) => product(id, { product: { id, name } });

/** Products whose bytes are easily damaged on the way. */
const peculiar: [what: string, record: Product][] = [
  ['a name with line breaks and tabs', named(10, 'ASPİRİN\n500 MG\r\n\tTABLET')],
  ['a name with quotes, backslashes and slashes', named(11, '"A" \\ / \\" \\u0041 </script>')],
  ['a name with emoji', named(12, 'ALFA 💊👩‍⚕️🇹🇷')],
  ['a lone high surrogate', named(13, 'A \ud800 B')],
  ['a lone low surrogate at the end', named(14, 'A \udfff')],
  ['surrogates in the wrong order', named(15, 'A \udc00\ud800 B')],
  ['line and paragraph separators', named(16, 'A\u2028B\u2029C')],
  ['control characters', named(17, 'A\u0000\u0001\u0008\u000c\u001f\u007f\u0085B')],
  ['combining marks that are not composed', named(18, 'S\u0327EKER I\u0307')],
  ['Turkish letters', named(19, 'ŞĞİÖÜÇ şğıöüç')],
  ['spaces at the edges and inside', named(20, '  A   B\u00a0 ')],
  ['a byte order mark and a bidirectional mark', named(21, '\ufeffA\u202eB')],
  ['a name of 10,000 letters', named(22, 'Ş'.repeat(10_000))],
  ['a name of 10,000 emoji', named(23, '💊'.repeat(10_000))],
  ['a name of one letter', named(24, 'A')],
  ['a name that looks like a member', named(25, '","published":false,"x":"')],
  [
    'names __proto__ and constructor',
    product(26, { drug: { id: 1, name: '__proto__' }, drugform: { id: 2, name: 'constructor' } }),
  ],
  ['no barcodes', product(27, { barcodes: [] })],
  [
    'barcodes with every kind of status',
    product(28, {
      barcodes: [
        { barcode: '869000000000', skrsStatus: 'Aktif' },
        { barcode: '0869000000000', skrsStatus: 'Pasif' },
        { barcode: '0000000000000', skrsStatus: null },
        { barcode: '8690000000001', skrsStatus: '' },
        { barcode: '8690000000001', skrsStatus: 'Askıda "?"\n' },
      ],
    }),
  ],
  ['published: false', product(29, { published: false })],
  [
    'the greatest ids there are',
    product(max, { drug: { id: max, name: 'A' }, drugform: { id: max, name: 'B' }, barcodes: [] }),
  ],
];

describe('GET /{collection}/{id}', () => {
  const redis = useRedis();
  const api = useApi(redis);
  const fullCompany = company(7, {
    website: 'https://a.example',
    fax: '',
    email: 'x@a.example',
    address: 'A\nB',
    district: 'ŞİŞLİ',
  });

  before(async () => {
    const options = { redisUrl: redis().url };
    const records = [product(1), ...peculiar.map(([, record]) => record)];
    expect((await importRecords(records, productCollection, options)).written).to.equal(records.length);
    expect((await importRecords([company(1), fullCompany], companyCollection, options)).written).to.equal(2);
  });

  it('returns the single envelope and nothing else', async () => {
    const { status, headers, body } = await send(api(), '/products/1');
    expect(status).to.equal(200);
    expect(headers['content-type']).to.equal('application/json');
    expect(headers['content-length']).to.equal(String(body.length));
    expect(body.toString()).to.equal(
      '{"data":{"product":{"id":1,"name":"DRUG 1 10 MG TABLET (20 TABLET)"},"drug":{"id":1,"name":"DRUG 1"},' +
        '"drugform":{"id":1,"name":"10 MG TABLET"},"barcodes":[{"barcode":"8690000000001","skrsStatus":"Aktif"}],' +
        '"published":true},"success":true}',
    );
  });

  it('returns a company with every member, text or null', async () => {
    expect((await api().get('/companies/1')).text).to.equal(
      '{"data":{"id":1,"name":"FIRM 1","officialName":"FIRM 1 LTD.","website":"","fax":null,' +
        '"phone":"+90 212 000 00 00","email":null,"address":null,"city":"İSTANBUL","district":null},"success":true}',
    );
    expect((await api().get('/companies/7')).text).to.equal(
      `{"data":${JSON.stringify(fullCompany)},"success":true}`,
    );
  });

  describe('returns the bytes that JSON.stringify makes of the record:', () => {
    for (const [what, record] of peculiar) {
      it(what, async () => {
        const { body } = await send(api(), `/products/${record.product.id}`);
        expect(body.toString()).to.equal(`{"data":${JSON.stringify(record)},"success":true}`);
      });
    }

    it('all of them in a list, joined by commas', async () => {
      const { body } = await send(api(), '/products');
      const records = [product(1), ...peculiar.map(([, record]) => record)];
      const data = `{"data":[${records.map((it) => JSON.stringify(it)).join(',')}],"_links":`;
      expect(body.subarray(0, Buffer.byteLength(data)).toString()).to.equal(data);
    });

    it('lone surrogates as escapes, in valid UTF-8', async () => {
      const { body } = await send(api(), '/products/13');
      expect(body.toString('latin1')).to.include('"A \\ud800 B"');
      expect(() => new TextDecoder('utf-8', { fatal: true }).decode(body)).not.to.throw();
    });
  });

  describe('finds the company with id 7 at', () => {
    for (const id of ['7', '07', '0000000000000000000000000000007', '%37', '%30%37']) {
      it(`/companies/${id}`, async () => {
        expect((await api().get(`/companies/${id}`)).text).to.equal((await api().get('/companies/7')).text);
        expect((await api().get(`/companies/${id}`)).status).to.equal(200);
      });
    }
  });

  const notIds = [
    ...[
      '0',
      '00',
      '0000000000000000',
      'x',
      'id',
      '7x',
      'x7',
      '0x7',
      '7n',
      '7e0',
      '1e1',
      '-7',
      '+7',
      '%2B7',
      '7.0',
      '7.',
      '.7',
      '7,0',
    ],
    ...[
      'NaN',
      'Infinity',
      'null',
      '__proto__',
      'constructor',
      'toString',
      '*',
      '7*',
      '?',
      '%20',
      '7%20',
      '%207',
      '7%0A',
      '%007',
      '7%00',
    ],
    ...[
      '%EF%BC%97',
      '%D9%A7',
      '%DB%B7',
      '%E0%A5%AD',
      '%C2%B2',
      '1_0',
      '7;v=1',
      '7%2F1',
      '7%3Fa',
      '7%2C8',
      '7\\',
    ],
  ].filter((id) => id !== '?');
  for (const id of notIds) {
    it(`returns 400 for /companies/${id}, which is not a whole number from 1`, async () => {
      const { status, body } = await send(api(), `/companies/${id}`);
      expect(status).to.equal(400);
      const { message } = (JSON.parse(body.toString()) as { data: { message: string } }).data;
      expect(message)
        .to.include(JSON.stringify(decodeURIComponent(id)))
        .and.include('whole number');
    });
  }

  for (const id of ['%', '%zz', '%e', '%FF', '%C3', '%ED%A0%80']) {
    it(`returns 400 for /companies/${id}, which is not percent-encoded UTF-8`, async () => {
      expect((await send(api(), `/companies/${id}`)).status).to.equal(400);
    });
  }

  for (const id of ['2', '70', '9007199254740991', '9007199254740992', '9007199254740993', '1'.repeat(400)]) {
    it(`returns 404 for an unknown id: ${id.slice(0, 20)}`, async () => {
      const { status, body } = await send(api(), `/companies/${id}`);
      expect(status).to.equal(404);
      expect(JSON.parse(body.toString()).data.message).to.match(/^No record of .* has the id .*\.$/);
    });
  }

  for (const path of [
    '/companies/',
    '/companies/7/',
    '/companies/7/x',
    '/companies//7',
    '//companies/7',
    '/Companies/7',
    '/company/7',
  ]) {
    it(`returns 404 for the unknown path ${path}`, async () => {
      const { status, body } = await send(api(), path);
      expect(status).to.equal(404);
      expect(JSON.parse(body.toString()).data.message).to.include(path);
    });
  }

  for (const query of ['page=1', 'per-page=1', 'x=1', 'x', '=', '&', '__proto__=1', 'name=A']) {
    it(`returns 400 for the unknown parameter ${query}`, async () => {
      const { status, body } = await send(api(), `/companies/7?${query}`);
      expect(status).to.equal(400);
      expect(JSON.parse(body.toString()).data.message).to.include(JSON.stringify(query.split(/[=&]/)[0]));
    });
  }

  it('accepts a question mark without parameters', async () => {
    expect((await api().get('/companies/7?')).status).to.equal(200);
  });

  it('separates products and companies', async () => {
    expect((await api().get('/companies/29')).status).to.equal(404);
    expect((await api().get('/products/7')).status).to.equal(404);
  });

  describe('after another import', () => {
    it("returns members in schema order, without unknown ones, whatever upstream's order", async () => {
      const upstream =
        '[{"x":1,"published":true,"barcodes":[{"skrsStatus":null,"y":2,"barcode":8690000000012}],' +
        '"drugform":{"name":"\\u0054ABLET","id":3},"drug":{"name":"A\\/B","id":2},"product":{"z":[],"name":"\\u015E","id":1}}]';
      const own = { redisUrl: redis().url, keyPrefix: 'medref', force: true };
      const before = await api().get('/products/1');
      expect((await importText(upstream, productCollection, own)).outcome).to.equal('published');
      const deadline = Date.now() + 1_000;
      let { text } = before;
      while (text === before.text && Date.now() < deadline) ({ text } = await api().get('/products/1'));
      expect(text).to.equal(
        '{"data":{"product":{"id":1,"name":"Ş"},"drug":{"id":2,"name":"A/B"},"drugform":{"id":3,"name":"TABLET"},' +
          '"barcodes":[{"barcode":"8690000000012","skrsStatus":null}],"published":true},"success":true}',
      );
    });

    it('does not confuse a number over 2^53−1 with its rounded value', async () => {
      await importRecords([product(1), product(max, { barcodes: [] })], productCollection, {
        redisUrl: redis().url,
        force: true,
      });
      const deadline = Date.now() + 1_000;
      while ((await api().get(`/products/${max}`)).status !== 200 && Date.now() < deadline);
      expect((await api().get(`/products/${max}`)).status).to.equal(200);
      expect((await api().get(`/products/${max - 1}`)).status).to.equal(404);
      expect((await api().get('/products/9007199254740991.0')).status).to.equal(400);
      expect((await api().get('/products/9007199254740992')).status).to.equal(404);
    });
  });
});
