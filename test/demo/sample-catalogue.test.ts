// Tests the sample catalogue: it is the same for a seed, valid, distinct, invented, and served as an upstream list.

import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { catalogueDocument, sampleCompanies, sampleProducts } from '../../demo/sample-catalogue.ts';
import { startSampleUpstream } from '../../demo/sample-upstream.ts';
import { createValidator } from '../../importer/validate.ts';
import { type Company, companies } from '../../shared/collections/companies.ts';
import { type Product, products } from '../../shared/collections/products.ts';
import { listsAreReal, readList } from '../support/whole-lists.ts';

const seed = 20_260;

describe('the sample catalogue', () => {
  const market = [...sampleProducts({ seed, count: 5_000 })];
  const firms = [...sampleCompanies({ seed, count: 300 })];
  /** More records than the real market has. */
  const manyProducts = [...sampleProducts({ seed, count: 40_000 })];
  const manyCompanies = [...sampleCompanies({ seed, count: 10_000 })];

  it('has the same bytes for the same seed, also as the start of a larger catalogue', () => {
    // A change of the generator changes the data that users of the demo see. Change these values only then.
    expect(fingerprint(market)).to.equal('068702b13ea8be3e');
    expect(fingerprint(firms)).to.equal('533bb37c378077cb');
    expect(fingerprint(manyProducts.slice(0, 5_000))).to.equal(fingerprint(market));
    expect(fingerprint(manyCompanies.slice(0, 300))).to.equal(fingerprint(firms));
    expect(fingerprint([...sampleProducts({ seed: 1, count: 5_000 })])).not.to.equal(fingerprint(market));
  });

  it('has only valid records with unique ids', () => {
    const [judgeProduct, judgeCompany] = [createValidator(products), createValidator(companies)];
    expect(market.filter((it) => !judgeProduct(it).valid)).to.deep.equal([]);
    expect(firms.filter((it) => !judgeCompany(it).valid)).to.deep.equal([]);
    expect(new Set(manyProducts.map(({ product }) => product.id)).size).to.equal(manyProducts.length);
    expect(new Set(manyCompanies.map(({ id }) => id)).size).to.equal(manyCompanies.length);
  });

  it('gives each barcode to one product, with a correct check digit, from the Turkish range', () => {
    const barcodes = manyProducts.flatMap((it) => it.barcodes.map(({ barcode }) => barcode));
    expect(new Set(barcodes).size).to.equal(barcodes.length);
    expect(barcodes.filter((it) => !/^86[89]\d{10}$/.test(it) || checkSum(it) % 10 !== 0)).to.deep.equal([]);
  });

  it('has one name per drug and dosage form, and no two products of the same name', () => {
    for (const named of [manyProducts.map(({ drug }) => drug), market.map(({ drugform }) => drugform)]) {
      const pairs = new Set(named.map(({ id, name }) => `${id} ${name}`)).size;
      expect(new Set(named.map(({ id }) => id)).size).to.equal(pairs);
      expect(new Set(named.map(({ name }) => name)).size).to.equal(pairs);
    }
    expect(new Set(market.map(({ product }) => product.name)).size).to.equal(market.length);
  });

  it('resembles a real market: missing and multiple barcodes, unpublished products, all statuses and spellings', () => {
    const share = (condition: (it: Product) => boolean) => market.filter(condition).length / market.length;
    expect(share(({ barcodes }) => barcodes.length === 0)).to.be.within(0.002, 0.012);
    expect(share(({ barcodes }) => barcodes.length > 1)).to.be.within(0.02, 0.06);
    expect(share(({ published }) => !published)).to.be.within(0.3, 0.4);
    expect(share(({ product }) => /[İŞĞÇÖÜışğçöü]/.test(product.name))).to.be.within(0.15, 0.4);
    expect(share(({ product }) => /\p{Ll}/u.test(product.name))).to.be.within(0.01, 0.1);
    const statuses = new Set(market.flatMap((it) => it.barcodes.map(({ skrsStatus }) => skrsStatus)));
    expect([...statuses]).to.have.members(['Aktif', 'Pasif', null]);
    expect(Buffer.byteLength(JSON.stringify(market)) / market.length).to.be.within(225, 280);
    for (const part of ['fax', 'phone', 'email', 'address', 'city', 'district'] as const)
      expect(firms.filter((it) => it[part] === null).length / firms.length, part).to.be.within(0.3, 0.8);
  });

  it('reaches no real party: its web sites and telephone numbers cannot exist', () => {
    for (const { website, email, phone, fax } of firms) {
      for (const host of [website, email]) if (host) expect(host).to.match(/\.example$/);
      for (const number of [phone, fax]) if (number) expect(number).to.match(/^\+90 \d{3} 000 \d\d \d\d$/);
    }
  });

  it('has no real drug or company', () => {
    const known =
      'aspirin parol apranax majezik augmentin ventolin lipitor nexium viagra xanax zoloft prozac lasix plavix glucophage lantus humira enbrel bayer pfizer novartis roche sanofi merck abbvie teva amgen lilly abdi eczacibasi bilim deva nobel sandoz mylan gsk takeda biogen servier ipsen';
    const real = new Set([
      ...known.toUpperCase().split(' '),
      ...(listsAreReal ? readList<Product>('products') : []).map(({ drug }) => firstWord(drug.name)),
      ...(listsAreReal ? readList<Company>('companies') : []).map(({ name }) => firstWord(name)),
    ]);
    const invented = new Set([
      ...manyProducts.map(({ drug }) => firstWord(drug.name)),
      ...manyCompanies.map(({ name }) => firstWord(name)),
    ]);
    expect([...invented].filter((name) => real.has(name))).to.deep.equal([]);
  });

  it('is one JSON document, in pieces', () => {
    const pieces = [...catalogueDocument(sampleProducts({ seed, count: 5_000 }))];
    expect(pieces.length).to.be.above(10);
    expect(pieces.join('') === JSON.stringify({ data: market })).to.equal(true);
    expect([...catalogueDocument([])].join('')).to.equal('{"data":[]}');
  });

  it('is served over HTTP: gzip, 304 for the same list, and two companies that are rejected', async () => {
    const upstream = await startSampleUpstream({ seed, products: 500, companies: 300 });
    const { productsUrl, companiesUrl } = upstream;
    try {
      const list = await fetch(productsUrl, { headers: { 'Accept-Encoding': 'gzip' } });
      expect(list.headers.get('content-encoding')).to.equal('gzip');
      expect(await list.json()).to.deep.equal({ data: market.slice(0, 500) });
      const headers = { 'If-None-Match': String(list.headers.get('etag')) };
      expect((await fetch(productsUrl, { headers })).status).to.equal(304);
      const { data } = (await (await fetch(companiesUrl, { headers })).json()) as { data: Company[] };
      expect(data.slice(0, -2)).to.deep.equal(firms);
      const judge = createValidator(companies);
      expect(data.slice(-2).map((it) => judge(it).valid)).to.deep.equal([false, false]);
    } finally {
      await upstream.stop();
    }
  });
});

function fingerprint(records: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(records)).digest('hex').slice(0, 16);
}

function checkSum(barcode: string): number {
  return [...barcode].reduce((sum, digit, place) => sum + Number(digit) * (place % 2 ? 3 : 1), 0);
}

/** Returns the first word of a name in capitals, without accents. */
function firstWord(name: string): string {
  const [word = ''] = name.trim().split(/[\s,]/);
  return word.normalize('NFD').replace(/\p{M}/gu, '').replaceAll('ı', 'i').toUpperCase();
}
