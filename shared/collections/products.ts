// Medicinal products, and the drugs that are derived from them.

import Joi, { type StringSchema } from 'joi';
import { defineCollection } from './define.ts';
import { arrayOf, type Named, named, rule, textOrNull } from './rules.ts';

/** Each barcode is indexed with the whole name, so the search index of a product grows with both. */
const maxBarcodes = 1_000;

export interface Barcode {
  /** 12 or 13 digits. */
  barcode: string;
  /** Status in the national list; `null` when unlisted. */
  skrsStatus: string | null;
}

export interface Product {
  product: Named;
  drug: Named;
  drugform: Named;
  barcodes: Barcode[];
  published: boolean;
}

export interface Drug {
  drug: Named;
}

export const drugs = defineCollection<Drug>({
  name: 'drugs',
  singular: 'drug',
  describe: 'The drugs that products are of, each once.',
  id: ['drug', 'id'],
  searchBy: {
    name: { type: 'prefix', path: ['drug', 'name'], describe: 'Only drugs whose name begins with this.' },
  },
  schema: Joi.object<Drug, true>({ drug: named.description('The drug: its id and name.') }).example({
    drug: { id: 3, name: 'NÖGEMRÜN' },
  }),
});

const digits = /^[0-9]{12,13}$/;

const barcode = rule<StringSchema>(
  { 'barcode.digits': 'must be a string of 12 or 13 digits' },
  (value) => (typeof value === 'string' && digits.test(value) ? null : 'barcode.digits'),
  { type: 'string', pattern: digits.source },
);

export const products = defineCollection<Product>({
  name: 'products',
  singular: 'product',
  describe: 'Medicinal products.',
  id: ['product', 'id'],
  searchBy: {
    name: {
      type: 'prefix',
      path: ['product', 'name'],
      describe: 'Only products whose name begins with this.',
    },
    barcode: {
      type: 'barcode',
      valuesOf: ({ barcodes }) => barcodes.map(({ barcode }) => barcode),
      describe:
        'Products that have or had this barcode. A GTIN-14 that starts with 0 counts as its last 13 digits.',
    },
    drug: {
      type: 'id',
      valuesOf: ({ drug }) => [drug.id],
      describe: 'Only products of the drug with this id.',
    },
    published: {
      type: 'flag',
      valueOf: ({ published }) => published,
      describe: '`true`: only actively published products; `false`: only the others.',
    },
  },
  derived: [{ collection: drugs, recordOf: ({ drug }): Drug => ({ drug }) }],
  schema: Joi.object<Product, true>({
    product: named.description('The product. Its name is composed of drug, form and package.'),
    drug: named.description('The drug that it is a product of.'),
    drugform: named.description('Its strength and form, as text.'),
    barcodes: arrayOf(
      Joi.object<Barcode, true>({
        barcode: barcode.description('12 or 13 digits.'),
        skrsStatus: textOrNull.description(
          'Status of the barcode in the national coding server: `Aktif`, `Pasif`, or another text; `null` if it is not listed there.',
        ),
      }).description('A current or former barcode.'),
      maxBarcodes,
    ).description(
      'Current and former barcodes. A product may have several, because they change; some have none.',
    ),
    published: Joi.boolean().description(
      '`false`: not actively published, because the company asked for it, because of a regulation, or because the entry is an error. Such a product is listed and found like any other.',
    ),
  }).example({
    product: { id: 1, name: 'NÖGEMRÜN %0,05 KREM, 50 G' },
    drug: { id: 3, name: 'NÖGEMRÜN' },
    drugform: { id: 230, name: '%0,05 KREM' },
    barcodes: [{ barcode: '8687873012778', skrsStatus: 'Pasif' }],
    published: false,
  }),
  accept: integerBarcodesToStrings,
});

/** Barcodes may be integers in upstream lists: an integer of 12 or 13 digits becomes a string. */
function integerBarcodesToStrings(value: unknown): unknown {
  const barcodes = (value as { barcodes?: unknown } | null)?.barcodes;
  if (!Array.isArray(barcodes) || !barcodes.some(hasInteger)) return value;
  const mended = barcodes.map((it) => (hasInteger(it) ? { ...it, barcode: String(it.barcode) } : it));
  return { ...(value as object), barcodes: mended };
}

function hasInteger(entry: unknown): entry is { barcode: number } {
  const digits = (entry as { barcode?: unknown } | null)?.barcode as number;
  return Number.isInteger(digits) && digits >= 1e11 && digits < 1e13;
}
