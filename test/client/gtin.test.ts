import { expect } from 'chai';
import fc from 'fast-check';
import type { Product } from '../../client/client.ts';
import { gtinOf, hasCheckDigit } from '../../client/client.ts';
import { listsAreReal, readList } from '../support/whole-lists.ts';

const gs = '\u001d';
const found = '8699546010011';
const element = `010${found}`;

/** Texts that scanners return for one pack, and texts that are printed on it. */
const packs: [what: string, text: string][] = [
  ['EAN-13', found],
  ['EAN-13 with a line end behind it', `${found}\r\n`],
  ['EAN-13 with the prefix of its symbology', `]E0${found}`],
  ['GTIN-14', `0${found}`],
  ['GTIN-14 as an element', element],
  ['karekod with FNC1', `${element}21ABC1234567890${gs}1726123110LOT7`],
  ['karekod with FNC1 at its beginning', `${gs}${element}21ABC123${gs}1726123110LOT7`],
  ['karekod with ]d2', `]d2${element}21ABC123${gs}1726123110LOT7`],
  ['karekod with ]D2, as caps lock makes it', `]D2${element}21ABC123${gs}1726123110LOT7`],
  ['GS1-128 with ]C1', `]C1${element}1726123110LOT7`],
  ['GS1 QR with ]Q3', `]Q3${element}1726123110LOT7`],
  ['karekod with FNC1 left out', `${element}21ABC12345678901726123110LOT7`],
  ['karekod of digits alone', `${element}2100000000000001726123110123`],
  ['karekod in parentheses', `(01)0${found}(21)ABC123(17)261231(10)LOT7`],
  ['karekod in parentheses and spaces', `(01) 0${found} (21) ABC123 (17) 261231`],
  ['parentheses, and the GTIN last', `(17)261231(10)LOT7(01)0${found}`],
  ['parentheses with 13 digits', `(01)${found}(21)ABC123`],
  ['expiry before the GTIN', `17261231${element}21ABC`],
  ['serial number before the GTIN', `21ABC123${gs}${element}`],
  ['batch and expiry before the GTIN', `10LOT7${gs}17261231${element}`],
  ['a serial number that looks like a GTIN, before it', `210112345678901231${gs}${element}`],
  ...['|', '~', '{GS}', '<GS>', '^]', '\u241d', '{FNC1}', '<gs>', '\\x1d'].map(
    (separator): [string, string] => [`${separator} for FNC1`, `21ABC123${separator}${element}`],
  ),
  ['GS1 Digital Link', `https://id.gs1.org/01/0${found}/21/ABC123?17=261231`],
  ['GS1 Digital Link with 13 digits', `https://id.gs1.org/01/${found}`],
  ['GS1 Digital Link of a brand', `http://brand.example/shop/tr/01/0${found}?10=LOT7#top`],
  ['GS1 Digital Link of batch 01', `https://id.gs1.org/01/0${found}/10/01/21/12345`],
  ['GS1 Digital Link below 01', `https://brand.example/01/01/0${found}/21/01`],
  ['GS1 Digital Link by a word', `HTTPS://BRAND.EXAMPLE/GTIN/0${found}/SER/ABC`],
];

const others: [what: string, text: string, barcode: string | null][] = [
  ['UPC-A', '382903206858', '382903206858'],
  ['UPC-A as EAN-13', '0382903206858', '382903206858'],
  ['UPC-A as GTIN-14', '00382903206858', '382903206858'],
  ['UPC-A in a Data Matrix', `]d20100382903206858`, '382903206858'],
  ['EAN-8', '96385074', '000096385074'],
  ['a wrong check digit', '8699607695014', '8699607695014'],
  ['a case, by its GTIN-14', '18699546010014', null],
  ['a case in a Data Matrix', ']d20118699546010014', null],
  ['nothing', '', null],
  ['11 digits', '12345678901', null],
  ['9 digits', '123456789', null],
  ['15 digits', '123456789012345', null],
  ['a shipping container alone', '00123456789012345675', null],
  ['a serial number alone', `21${found}`, null],
  ['a serial number and no separator behind it', `21ABC${element}`, null],
  ['a Data Matrix with too few digits', '01869954601', null],
  ['a word', 'PAROL 500 MG', null],
  ['a link without a GTIN', 'https://example.com/product/12345678', null],
  ['a link with a GTIN in its query', `https://example.com/?a=/01/0${found}`, null],
  ['a link with digits that go on', 'https://example.com/01/08699546010011X', null],
  ['parentheses with too many digits', '(01)086995460100111', null],
];

describe('gtinOf', () => {
  for (const [what, text] of packs) {
    it(`finds the barcode in ${what}`, () => expect(gtinOf(text)).to.equal(found));
  }

  for (const [what, text, barcode] of others) {
    it(`returns ${barcode} for ${what}`, () => expect(gtinOf(text)).to.equal(barcode));
  }

  it('skips every element of fixed length before the GTIN', () => {
    const parts = ['00123456789012345675', '0212345678901231', '0312345678901231', `04${'1'.repeat(16)}`];
    parts.push(
      '11261231',
      '13261231',
      '15261231',
      '16261231',
      '17261231',
      '2001',
      '3103001750',
      '3202001750',
    );
    parts.push('4101234567890128', '4171234567890128');
    for (const part of parts) expect(gtinOf(part + element), part).to.equal(found);
    expect(gtinOf(parts.join('') + element)).to.equal(found);
  });

  it('returns 12 or 13 digits or null for any text, quickly', () => {
    const pieces = fc.constantFrom(
      element,
      '21',
      '10',
      '17261231',
      gs,
      '(01)',
      ']d2',
      'https://x/01/',
      '0',
      'A',
    );
    const texts = fc.oneof(
      fc.string(),
      fc.array(pieces, { maxLength: 30 }).map((it) => it.join('')),
    );
    fc.assert(
      fc.property(texts, (text) => /^\d{12,13}$|^null$/.test(String(gtinOf(text)))),
      { numRuns: 500 },
    );
    const startedAt = performance.now();
    for (const long of ['(01)'.repeat(50_000), '0'.repeat(200_000), `https://${'/01/1'.repeat(40_000)}`])
      expect(gtinOf(long)).to.equal(null);
    expect(performance.now() - startedAt).to.be.below(1_000);
  });

  it('keeps all barcodes of a whole list, also as GTIN-14', () => {
    const barcodes = readList<Product>('products').flatMap((it) => it.barcodes.map(({ barcode }) => barcode));
    const asGiven = (it: string) => gtinOf(it) === it && gtinOf(it.padStart(14, '0')) === it;
    expect(barcodes.filter((it) => !asGiven(it))).to.deep.equal([]);
    if (listsAreReal) expect(barcodes.filter((it) => !hasCheckDigit(it))).to.have.length(126);
  });
});

describe('hasCheckDigit', () => {
  for (const [text, holds] of [
    ['8699546010011', true],
    ['8699546010012', false],
    ['382903206858', true],
    ['96385074', true],
    ['08699546010011', true],
    ['869954601001', false],
    ['', false],
    ['869954601001X', false],
  ] as const) {
    it(`returns ${holds} for "${text}"`, () => expect(hasCheckDigit(text)).to.equal(holds));
  }
});
