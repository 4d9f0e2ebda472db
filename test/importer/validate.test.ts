import { expect } from 'chai';
import fc from 'fast-check';
import { createValidator, maxRecordBytes, type Verdict } from '../../importer/validate.ts';
import { companies as companyCollection } from '../../shared/collections/companies.ts';
import { type Product, products as productCollection } from '../../shared/collections/products.ts';
import { judgement } from '../../shared/collections/rules.ts';
import { company, product } from '../support/records.ts';

const judgeProduct = createValidator(productCollection);
const judgeCompany = createValidator(companyCollection);
const idReason = 'must be an integer from 1 to 9007199254740991';
const nameReason = 'must have at least one visible character';
const barcodeReason = 'must be a string of 12 or 13 digits';

/** Returns a product as JSON would bring it, with one value at a path. */
function productWith(path: string, value: unknown): unknown {
  const record = structuredClone(product(1)) as unknown as Record<string, unknown>;
  const steps = path.split('.');
  const last = steps.pop() as string;
  const parent = steps.reduce((it, step) => it[step] as Record<string, unknown>, record);
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return record;
}

function expectReject(verdict: Verdict, path: string, reason: string): void {
  expect(verdict).to.deep.equal({ valid: false, path, reason });
}

describe('the record validator', () => {
  it('returns a valid record as JSON in schema order, whatever its order', () => {
    const { product: named, ...rest } = product(7);
    const shuffled = {
      ...Object.fromEntries(Object.entries(rest).reverse()),
      product: { name: named.name, id: 7 },
    };
    const json = JSON.stringify(product(7));
    expect(judgeProduct(shuffled)).to.deep.equal({
      valid: true,
      id: 7,
      record: product(7),
      json,
      unknownMembers: [],
    });
  });

  it('drops unknown members and names them', () => {
    const record = { ...product(1), extra: 1, 'a b': 2, drug: { id: 1, name: 'A', atc: 'B01' } };
    const verdict = judgeProduct({
      ...record,
      barcodes: [{ barcode: '123456789012', skrsStatus: null, x: 0 }],
    });
    expect(verdict).to.deep.include({ valid: true });
    expect((verdict as { unknownMembers?: unknown }).unknownMembers).to.deep.equal([
      ...['$.drug.atc', '$.barcodes[*].x', '$.extra', '$["a b"]'],
    ]);
    expect((verdict as { json: string }).json).not.to.match(/extra|a b|atc|"x"/);
  });

  it('turns a barcode that is an integer of 12 or 13 digits into a string', () => {
    for (const digits of [100_000_000_000, 8_699_622_270_041, 9_999_999_999_999]) {
      const verdict = judgeProduct(productWith('barcodes', [{ barcode: digits, skrsStatus: null }]));
      expect(verdict.valid).to.equal(true);
      expect((JSON.parse((verdict as { json: string }).json) as Product).barcodes).to.deep.equal([
        { barcode: String(digits), skrsStatus: null },
      ]);
    }
  });

  it('returns nested members in schema order, too', () => {
    const record = product(1) as unknown as Record<string, unknown>;
    const turned = (value: object) => Object.fromEntries(Object.entries(value).reverse());
    const json = JSON.stringify(record);
    expect(judgeProduct(turned(record))).to.deep.include({ valid: true, json });
    expect(judgeProduct({ ...record, drug: turned(record['drug'] as object) })).to.deep.include({ json });
    expect(judgeProduct({ ...record, product: turned(record['product'] as object) })).to.deep.include({
      json,
    });
  });

  it('leaves the value unchanged, as rejects show it', () => {
    const value = productWith('barcodes', [{ barcode: 8_699_622_270_041, skrsStatus: null }]);
    const before = JSON.stringify(value);
    judgeProduct(value);
    expect(JSON.stringify(value)).to.equal(before);
  });

  it('accepts unusual but valid values', () => {
    const unusual: readonly (readonly [string, unknown])[] = [
      ['barcodes', []],
      ['barcodes', [{ barcode: '000000000000', skrsStatus: '' }]],
      ['barcodes', [{ barcode: '8699622270041', skrsStatus: 'anything else' }]],
      ['published', false],
      ['product.id', Number.MAX_SAFE_INTEGER],
      ['product.name', ' \n\u00a0edge spaces\t kept \u2028'],
      ['product.name', '\ud800 a lone surrogate'],
      ['product.name', 'x'.repeat(10_000)],
      ['product.name', '💊'.repeat(10_000)],
      ['drug.name', '™'],
    ];
    for (const [path, value] of unusual) {
      const record = productWith(path, value);
      const json = JSON.stringify(record);
      expect(judgeProduct(record), path).to.deep.include({ valid: true, json });
    }
    for (const changes of [
      { website: '', officialName: '' },
      { fax: '', phone: null, district: '' },
    ]) {
      expect(judgeCompany(company(1, changes)).valid).to.equal(true);
    }
  });

  type Case = readonly [at: string, value: unknown, path: string, reason: string];
  const badId = (id: unknown): Case => ['product.id', id, '$.product.id', idReason];
  const invisible = (name: string): Case => ['drug.name', name, '$.drug.name', nameReason];
  const badBarcode = (barcode: unknown): Case => [
    'barcodes',
    [{ barcode, skrsStatus: null }],
    '$.barcodes[0].barcode',
    barcodeReason,
  ];
  const rejected: readonly Case[] = [
    ...['1', 0, -0, -1, 1.5, 2 ** 53, Infinity, Number.NaN, null, true, [], {}].map(badId),
    ['product.id', undefined, '$.product.id', 'is required'],
    ...['', ' ', '\n\t\u00a0', '\u200b\u00ad\ufeff', '\u3164', '\u0000'].map(invisible),
    ...['12345678901', '12345678901234', '86996222700l1', ' 8699622270041', '8699622270041\n'].map(
      badBarcode,
    ),
    ...[':869962227004', '٨٦٩٩٦٢٢٢٧٠٠٤١', '', null, 12_345_678_901, 12_345_678_901_234].map(badBarcode),
    ...[8_699_622_270_041.5, -8_699_622_270_041].map(badBarcode),
    ['drug.name', 'x'.repeat(10_001), '$.drug.name', 'must be at most 10000 characters long'],
    ['drug.name', null, '$.drug.name', 'must be a string'],
    ['drug.name', undefined, '$.drug.name', 'is required'],
    ['drug', undefined, '$.drug', 'is required'],
    ['drug', null, '$.drug', 'must be of type object'],
    ['drug', [], '$.drug', 'must be of type object'],
    ['drugform', 'TABLET', '$.drugform', 'must be of type object'],
    ['barcodes', undefined, '$.barcodes', 'is required'],
    ['barcodes', null, '$.barcodes', 'must be an array'],
    ['barcodes', {}, '$.barcodes', 'must be an array'],
    ['barcodes', '8699622270041', '$.barcodes', 'must be an array'],
    ['barcodes', [null], '$.barcodes[0]', 'must be of type object'],
    ['barcodes', ['8699622270041'], '$.barcodes[0]', 'must be of type object'],
    ['barcodes', [{ barcode: '8699622270041' }], '$.barcodes[0].skrsStatus', 'is required'],
    [
      'barcodes',
      [{ barcode: '8699622270041', skrsStatus: 1 }],
      '$.barcodes[0].skrsStatus',
      'must be a string',
    ],
    ['published', undefined, '$.published', 'is required'],
    ['published', null, '$.published', 'must be a boolean'],
    ['published', 'true', '$.published', 'must be a boolean'],
    ['published', 1, '$.published', 'must be a boolean'],
  ];
  for (const [at, value, path, reason] of rejected) {
    const shown = JSON.stringify(value) ?? 'nothing';
    it(`rejects a product whose ${at} is ${shown.length > 50 ? `${shown.slice(0, 50)}…` : shown} (${typeof value})`, () => {
      expectReject(judgeProduct(productWith(at, value)), path, reason);
    });
  }

  it('rejects the whole record for one invalid barcode', () => {
    const good = { barcode: '8699622270041', skrsStatus: null };
    const record = productWith('barcodes', [good, { barcode: '1', skrsStatus: null }, good]);
    expectReject(judgeProduct(record), '$.barcodes[1].barcode', barcodeReason);
  });

  it('accepts 1,000 barcodes, and rejects more, whatever they are', () => {
    const barcodes = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ barcode: String(8_690_000_000_000 + n), skrsStatus: null }));
    expect(judgeProduct(product(1, { barcodes: barcodes(1_000) })).valid).to.equal(true);
    const reason = 'has 1001 elements; at most 1000 are allowed';
    expectReject(judgeProduct(product(1, { barcodes: barcodes(1_001) })), '$.barcodes', reason);
    expectReject(judgeProduct(productWith('barcodes', Array(1_001).fill(null))), '$.barcodes', reason);
    const integers = barcodes(1_001).map(({ barcode }) => ({ barcode: Number(barcode), skrsStatus: null }));
    expectReject(judgeProduct(productWith('barcodes', integers)), '$.barcodes', reason);
  });

  it('accepts 256 KiB as UTF-8, and rejects one byte more', () => {
    const withAddress = (address: string) => company(1, { address });
    const room = maxRecordBytes - Buffer.byteLength(JSON.stringify(withAddress('')));
    for (const [character, bytes] of [
      ['x', 1],
      ['ş', 2],
      ['€', 3],
      ['💊', 4],
      ['"', 2], // It counts with its escape.
      ['\ud800', 6],
    ] as const) {
      const fitting = character.repeat(Math.floor(room / bytes)) + 'x'.repeat(room % bytes);
      const verdict = judgeCompany(withAddress(fitting));
      expect(verdict.valid, character).to.equal(true);
      expect(Buffer.byteLength((verdict as { json: string }).json)).to.equal(maxRecordBytes);
      const reason = `is ${maxRecordBytes + 1} bytes of JSON text; at most 262144 are allowed`;
      expectReject(judgeCompany(withAddress(`${fitting}x`)), '$', reason);
    }
  });

  it('does not count dropped members', () => {
    expect(judgeCompany({ ...company(1), extra: 'x'.repeat(1_000_000) }).valid).to.equal(true);
  });

  it('accepts a record with 200,000 unknown members', () => {
    const unknown = Object.fromEntries(Array.from({ length: 200_000 }, (_, n) => [`x${n}`, n]));
    const verdict = judgeCompany({ ...company(1), ...unknown });
    expect((verdict as { unknownMembers?: unknown }).unknownMembers).to.have.length(200_000);
  });

  it('rejects values that are not objects', () => {
    for (const value of [null, 1, 'text', true, [], [product(1)]]) {
      expectReject(judgeProduct(value), '$', 'must be of type object');
    }
  });

  it('rejects a company whose text is missing, null or not text', () => {
    expectReject(judgeCompany({ ...company(1), website: null }), '$.website', 'must be a string');
    expectReject(judgeCompany({ ...company(1), officialName: null }), '$.officialName', 'must be a string');
    expectReject(judgeCompany({ ...company(1), phone: 902120000000 }), '$.phone', 'must be a string');
    const { district, ...without } = company(1);
    expect(district).to.equal(null);
    expectReject(judgeCompany(without), '$.district', 'is required');
  });

  it('treats members with names of built-in ones as unknown', () => {
    const record = JSON.parse(
      `{"__proto__":{"product":1},"constructor":2,${JSON.stringify(product(3)).slice(1)}`,
    );
    expect(judgeProduct(record)).to.deep.include({ valid: true, id: 3, json: JSON.stringify(product(3)) });
  });

  it('distinguishes members with the same type by their names', () => {
    const { drug, drugform, ...rest } = product(7);
    const renamed = { product: rest.product, drugs: drug, drugform, barcodes: [], published: true };
    const reject = { valid: false, path: '$.drug', reason: 'is required', similar: 'drugs' };
    expect(judgeProduct(renamed)).to.deep.equal(reject);
    const { barcodes, published, product: named } = rest;
    const swapped = { product: named, drugform, drug, barcodes, published };
    expect(judgeProduct(swapped)).to.deep.include({ valid: true, json: JSON.stringify(product(7)) });
  });

  it('agrees with joi on records with any values in any place', () => {
    const values = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom('', ' ', null, 0, 1, 2 ** 53, [], {}, '8690000000011'),
    );
    const change = (record: object, paths: readonly string[]) =>
      fc.tuple(fc.constantFrom(...paths), values).map(([path, value]) => {
        const changed = structuredClone(record) as Record<string, unknown>;
        const steps = path.split('.');
        const last = steps.pop() as string;
        const parent = steps.reduce((it, step) => it[step] as Record<string, unknown>, changed);
        parent[last] = value;
        return changed;
      });
    const productPaths = [
      'product',
      'product.id',
      'product.name',
      'drug.more',
      'barcodes',
      'barcodes.0',
      'barcodes.0.barcode',
    ];
    const cases = fc.oneof(
      change(product(1), [...productPaths, 'barcodes.0.skrsStatus', 'published', 'more']),
      change(company(1), ['id', 'name', 'website', 'fax', 'more']),
    );
    const joi = { product: productCollection, company: companyCollection };
    fc.assert(
      fc.property(cases, (record) => {
        const isProduct = 'product' in record;
        const { error } = (isProduct ? joi.product : joi.company).schema.prefs(judgement).validate(record);
        const { valid } = (isProduct ? judgeProduct : judgeCompany)(record);
        // An integer barcode becomes text before joi sees it.
        if (valid !== (error === undefined)) expect(error?.message).to.match(/barcode/);
      }),
      { numRuns: 3_000 },
    );
  });
});
