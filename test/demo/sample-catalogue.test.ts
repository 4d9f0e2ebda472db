import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { catalogueDocument, sampleCompanies, sampleProducts } from '../../demo/sample-catalogue.ts';
import { inventedName } from '../../demo/sample-names.ts';
import { type SampleUpstream, startSampleUpstream } from '../../demo/sample-upstream.ts';
import { DRUG_ENDINGS } from '../../demo/sample-words.ts';
import { createValidator } from '../../importer/validate.ts';
import { type Company, companies } from '../../shared/collections/companies.ts';
import type { Collection } from '../../shared/collections/define.ts';
import { type Product, products } from '../../shared/collections/products.ts';
import { judgement } from '../../shared/collections/rules.ts';
import { listsAreReal, readList } from '../support/whole-lists.ts';

const seed = 20_260;

describe('The sample catalogue', () => {
  const market = [...sampleProducts({ seed, count: 5_000 })];
  const firms = [...sampleCompanies({ seed, count: 300 })];
  /** More than the real market has. */
  const large = { products: 40_000, companies: 10_000 };

  describe('as a generator', () => {
    it('has exactly as many records as asked for', () => {
      for (const count of [0, 1, 99, 100, 101, 777]) {
        expect([...sampleProducts({ seed, count })], `products ${count}`).to.have.length(count);
        expect([...sampleCompanies({ seed, count })], `companies ${count}`).to.have.length(count);
      }
    });

    it('makes the same bytes for the same seed, on every machine and in every release', () => {
      // A change of the generator changes what users of the demo see: then, and only then, change these.
      expect(fingerprint(market)).to.equal('068702b13ea8be3e');
      expect(fingerprint(firms)).to.equal('533bb37c378077cb');
    });

    it('makes another market from another seed', () => {
      const other = [...sampleProducts({ seed: seed + 1, count: 5_000 })];
      const shared = intersection(market.map(drugName), other.map(drugName));
      expect(shared.length / distinct(market.map(drugName)).size).to.be.below(0.05);
      expect(fingerprint([...sampleCompanies({ seed: seed + 1, count: 300 })])).not.to.equal(
        fingerprint(firms),
      );
    });

    it('begins a larger catalogue with the smaller one', () => {
      expect(fingerprint(take(sampleProducts({ seed, count: 1_000_000 }), 5_000))).to.equal(
        fingerprint(market),
      );
      expect(fingerprint(take(sampleCompanies({ seed, count: 1_000_000 }), 300))).to.equal(
        fingerprint(firms),
      );
    });

    it('needs no more memory for 100,000 products than for a thousand', async function () {
      this.timeout(60_000);
      // A list of them is some 50 MB of objects, and does not fit into this heap.
      const script = `
        import { catalogueDocument, sampleProducts } from ${JSON.stringify(new URL('../../demo/sample-catalogue.ts', import.meta.url).href)};
        let length = 0;
        for (const piece of catalogueDocument(sampleProducts({ seed: 1, count: 100_000 }))) length += piece.length;
        process.stdout.write(String(length));`;
      const node = ['--max-old-space-size=40', '--import', 'tsx', '--input-type=module', '--eval', script];
      const { stdout } = await promisify(execFile)(process.execPath, node);
      expect(Number(stdout)).to.be.above(20_000_000);
    });
  });

  describe('as a list that is imported', () => {
    it('has valid records only', () => {
      for (const record of market) expectValid(products, record);
      for (const record of firms) expectValid(companies, record);
    });

    it('gives each record an id of its own, in growing order, with gaps', () => {
      for (const ids of [market.map((record) => record.product.id), firms.map((record) => record.id)]) {
        expect(ids).to.deep.equal([...distinct(ids)].sort((a, b) => a - b));
        expect(ids.at(-1)).to.be.above(ids.length);
      }
    });

    it('gives each barcode to one product once, with a right check digit, from the Turkish range', () => {
      const barcodes = [...sampleProducts({ seed, count: large.products })].flatMap(barcodesOf);
      expect(distinct(barcodes).size).to.equal(barcodes.length);
      for (const barcode of barcodes) {
        if (!/^86[89]\d{10}$/.test(barcode) || checkSum(barcode) % 10 !== 0)
          expect.fail(`${barcode} is no Turkish EAN-13`);
      }
    });

    it('uses one id for one drug or drugform, and one name for each id', () => {
      for (const named of [market.map((record) => record.drug), market.map((record) => record.drugform)]) {
        const pairs = distinct(named.map(({ id, name }) => `${id} ${name}`)).size;
        expect(distinct(named.map(({ id }) => id)).size).to.equal(pairs);
        expect(distinct(named.map(({ name }) => name)).size).to.equal(pairs);
      }
    });

    it('still has a name of its own for every drug of a market ten times the real one', () => {
      const names = new Set<string>();
      for (let number = 0; number < 3_000 * 37; number += 1)
        names.add(plain(inventedName({ number, start: 0.5, endings: DRUG_ENDINGS })));
      expect(names.size).to.equal(3_000 * 37);
    });

    it('streams as one JSON document', () => {
      const pieces = [...catalogueDocument(sampleProducts({ seed, count: 5_000 }))];
      expect(pieces.length).to.be.above(10);
      expect(pieces.join('') === JSON.stringify({ data: market })).to.equal(true);
      expect([...catalogueDocument([])].join('')).to.equal('{"data":[]}');
    });
  });

  describe('as a picture of the real market', () => {
    it('composes the name of a product of its drug, its form and its package', () => {
      for (const { product, drug, drugform } of market) {
        expect(product.name.startsWith(`${drug.name} ${drugform.name}`), product.name).to.equal(true);
        expect(product.name.slice(drug.name.length + drugform.name.length + 1)).to.match(
          /^ \(\d+ \p{L}+\)$|^, \d+ \p{L}+$/u,
        );
      }
    });

    it('gives a drug one product mostly, some many, and no two of the same name', () => {
      const sizes = counts(market.map(drugName));
      expect(market.length / sizes.length).to.be.within(2.3, 3.2);
      expect(share(sizes, (size) => size === 1)).to.be.within(0.3, 0.5);
      expect(Math.max(...sizes)).to.be.within(10, 15);
      expect(distinct(market.map(({ product }) => product.name)).size).to.equal(market.length);
    });

    it('has products without a barcode and with several, statuses of all kinds, and unpublished products', () => {
      expect(share(market, ({ barcodes }) => barcodes.length === 0)).to.be.within(0.002, 0.012);
      expect(share(market, ({ barcodes }) => barcodes.length > 1)).to.be.within(0.02, 0.06);
      expect(share(market, ({ published }) => !published)).to.be.within(0.3, 0.4);
      const statuses = market.flatMap(({ barcodes }) => barcodes.map(({ skrsStatus }) => skrsStatus));
      expect(share(statuses, (status) => status === 'Aktif')).to.be.within(0.22, 0.35);
      expect(share(statuses, (status) => status === 'Pasif')).to.be.within(0.28, 0.42);
      expect(share(statuses, (status) => status === null)).to.be.within(0.3, 0.45);
      expect(distinct(statuses).size).to.equal(3);
    });

    it('spells some names with Turkish letters, most without, and few in mixed case', () => {
      expect(share(market, ({ product }) => /[İŞĞÇÖÜışğçöü]/.test(product.name))).to.be.within(0.15, 0.4);
      expect(share(market, ({ product }) => /\p{Ll}/u.test(product.name))).to.be.within(0.01, 0.1);
      expect(
        market.some(({ product }) => /I.*İ|İ.*I/.test(product.name)),
        'dotted and dotless I together',
      ).to.equal(true);
    });

    it('makes records of the size of real ones', () => {
      expect(Buffer.byteLength(JSON.stringify(market)) / market.length).to.be.within(225, 280);
    });

    it('leaves out parts of what is known of a company, in any combination', () => {
      for (const part of ['fax', 'phone', 'email', 'address', 'city', 'district'] as const) {
        expect(
          share(firms, (firm) => firm[part] === null),
          part,
        ).to.be.within(0.3, 0.8);
      }
      expect(share(firms, ({ website }) => website === '')).to.be.within(0.4, 0.7);
      const combinations = distinct(
        firms.map((firm) =>
          Object.values(firm)
            .map((value) => value === null)
            .join(),
        ),
      );
      expect(combinations.size).to.be.above(10);
    });

    it('reaches nobody: its web sites and telephone numbers can not exist', () => {
      for (const { website, email, phone, fax } of firms) {
        for (const host of [website, email]) if (host) expect(host).to.match(/\.example$/);
        for (const number of [phone, fax]) if (number) expect(number).to.match(/^\+90 \d{3} 000 \d\d \d\d$/);
      }
    });

    /** Some that anybody knows; real lists, where they are there, have thousands. */
    const known =
      'aspirin parol apranax majezik augmentin ventolin lipitor nexium viagra xanax zoloft prozac lasix plavix'
        .concat(
          ' glucophage lantus humira enbrel bayer pfizer novartis roche sanofi merck abbvie teva amgen lilly abdi',
        )
        .concat(
          ' eczacibasi bilim deva nobel sandoz mylan gsk astrazeneca boehringer takeda biogen servier ipsen',
        )
        .split(' ');

    it('takes no drug and no company from the real world', () => {
      const real = new Set([
        ...known,
        ...(listsAreReal ? readList<Product>('products') : []).map(({ drug }) => plain(firstWord(drug.name))),
        ...(listsAreReal ? readList<Company>('companies') : []).map(({ name }) => plain(firstWord(name))),
      ]);
      const invented = distinct([
        ...[...sampleProducts({ seed, count: large.products })].map(({ drug }) =>
          plain(firstWord(drug.name)),
        ),
        ...[...sampleCompanies({ seed, count: large.companies })].map(({ name }) => plain(firstWord(name))),
      ]);
      expect([...invented].filter((name) => real.has(name))).to.deep.equal([]);
    });
  });

  describe('as an HTTP upstream', () => {
    const served = market.slice(0, 500);
    let upstream: SampleUpstream;
    before(async () => {
      upstream = await startSampleUpstream({ seed, products: served.length, companies: 300 });
    });
    after(() => upstream.stop());

    it('serves both lists, whole, and behind the companies two records that are rejected', async () => {
      const { productsUrl, companiesUrl } = upstream;
      expect(await (await fetch(productsUrl)).json()).to.deep.equal({ data: served });
      const { data } = (await (await fetch(companiesUrl)).json()) as { data: Company[] };
      expect(data.slice(0, -2)).to.deep.equal(firms);
      const judge = createValidator(companies);
      expect(data.slice(-2).map((it) => judge(it).valid)).to.deep.equal([false, false]);
    });

    it('compresses for those who accept it, and for no others', async () => {
      const { productsUrl } = upstream;
      const packed = await fetch(productsUrl, { headers: { 'Accept-Encoding': 'gzip' } });
      expect(packed.headers.get('content-encoding')).to.equal('gzip');
      expect(await packed.json()).to.deep.equal({ data: served });
      const unpacked = await fetch(productsUrl, { headers: { 'Accept-Encoding': 'identity' } });
      expect(unpacked.headers.get('content-encoding')).to.equal(null);
      await unpacked.body?.cancel();
    });

    it('answers 304 to who has the list already, and not to who has another', async () => {
      const { productsUrl, companiesUrl } = upstream;
      const etag = (await fetch(productsUrl, { method: 'GET' })).headers.get('etag') as string;
      const again = (url: string) =>
        fetch(url, { headers: { 'If-None-Match': etag } }).then(({ status }) => status);
      expect(await again(productsUrl)).to.equal(304);
      expect(await again(companiesUrl)).to.equal(200);

      const larger = await startSampleUpstream({ seed, products: served.length + 1, companies: 300 });
      expect(await again(larger.productsUrl)).to.equal(200);
      await larger.stop();
    });

    it('waits for a slow reader instead of piling up what it has not read', async () => {
      const large = await startSampleUpstream({ seed, products: 1_000_000, companies: 0 });
      const response = await fetch(large.productsUrl, { headers: { 'Accept-Encoding': 'identity' } });
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      await reader.read();
      const before = process.memoryUsage().rss;
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect(process.memoryUsage().rss - before).to.be.below(50_000_000);
      await reader.cancel();
      await large.stop();
    });

    it('says 404 for anything else', async () => {
      const { productsUrl } = upstream;
      expect((await fetch(`${productsUrl}/1`)).status).to.equal(404);
    });
  });
});

function fingerprint(records: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(records)).digest('hex').slice(0, 16);
}

function expectValid({ schema }: Collection, record: unknown): void {
  const { error } = schema.validate(record, { ...judgement, allowUnknown: false });
  if (error) expect.fail(`${error.message}: ${JSON.stringify(record)}`);
}

function take<T>(items: Iterable<T>, count: number): T[] {
  const taken: T[] = [];
  for (const item of items) if (taken.push(item) === count) break;
  return taken;
}

const distinct = <T>(items: readonly T[]) => new Set(items);
const intersection = (some: string[], others: string[]) =>
  [...distinct(some)].filter((item) => distinct(others).has(item));
const share = <T>(items: readonly T[], condition: (item: T) => boolean) =>
  items.filter(condition).length / items.length;
const counts = (items: string[]) =>
  [...distinct(items)].map((one) => items.filter((item) => item === one).length);
const drugName = ({ drug }: Product) => drug.name;
const barcodesOf = ({ barcodes }: Product) => barcodes.map(({ barcode }) => barcode);
const checkSum = (barcode: string) =>
  [...barcode].reduce((sum, digit, place) => sum + Number(digit) * (place % 2 ? 3 : 1), 0);
const firstWord = (name: string) => name.trim().split(/[\s,]/)[0] as string;
const plain = (name: string) =>
  name.normalize('NFD').replace(/\p{M}/gu, '').replaceAll('ı', 'i').toUpperCase();
