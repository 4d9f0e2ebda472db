// Invents products and companies that resemble a real market. Each record depends only on the seed and its position, so millions
// need no memory.

import type { Company } from '../shared/collections/companies.ts';
import type { Product } from '../shared/collections/products.ts';
import {
  COMPANY_ENDINGS,
  DRUG_ENDINGS,
  DRUG_FORMS,
  FIRM_KINDS,
  LEGAL_FORMS,
  NAME_SUFFIXES,
  PLACES,
  STREETS,
  SYLLABLES,
} from './sample-words.ts';
import { chance, pick, type Random, randomFor, repeated, shuffled } from './seeded-random.ts';

export interface SampleOptions {
  /** Any integer; each seed is a different market. */
  seed: number;
  /** The number of records; a smaller sample is the start of a larger one. */
  count: number;
}

/** Yields invented products in the order of an upstream list: products of one drug are adjacent. */
export function* sampleProducts({ seed, count }: SampleOptions): Generator<Product, void, undefined> {
  let index = 0;
  for (const drug of drugs(seed)) {
    for (let nth = 0; nth < drug.size; nth++, index++) {
      if (index >= count) return;
      yield product({ seed, index, drug, nth });
    }
  }
}

/** Yields invented companies in the order of an upstream list. */
export function* sampleCompanies({ seed, count }: SampleOptions): Generator<Company, void, undefined> {
  for (let index = 0; index < count; index++) yield company(seed, index);
}

/** Yields the text of the document `{"data":[…]}` in pieces. */
export function* catalogueDocument(records: Iterable<unknown>): Generator<string, void, undefined> {
  let piece = '{"data":[';
  let separator = '';
  for (const record of records) {
    piece += separator + JSON.stringify(record);
    separator = ',';
    if (piece.length >= PIECE_LENGTH) {
      yield piece;
      piece = '';
    }
  }
  yield `${piece}]}`;
}

const PIECE_LENGTH = 32_768;

/** The purposes of random streams. */
const FOR = { shelf: 1, drug: 2, product: 3, company: 4, drugNames: 5, companyNames: 6, barcodes: 7 };

/** Turkish capitals in lists without Turkish letters. */
const PLAIN: Record<string, string> = { Ç: 'C', Ğ: 'G', İ: 'I', Ö: 'O', Ş: 'S', Ü: 'U' };

// ---- drugs: shelves of 100 products, each with the same mix of small and large drugs

/** How many drugs of a shelf have how many products: as in a real list, most have one or two. */
const SHELF = repeated([
  [1, 15],
  [2, 9],
  [3, 4],
  [4, 3],
  [5, 1],
  [6, 3],
  [8, 1],
  [12, 1],
]);

interface Drug {
  id: number;
  name: string;
  /** The form of most of its products, and of the others. */
  forms: readonly [Form, Form];
  size: number;
}

function* drugs(seed: number): Generator<Drug, never, undefined> {
  for (let shelf = 0; ; shelf++) {
    const sizes = shuffled(SHELF, randomFor(seed, FOR.shelf, shelf));
    for (const [place, size] of sizes.entries()) yield drug(seed, shelf * SHELF.length + place, size);
  }
}

function drug(seed: number, number: number, size: number): Drug {
  const random = randomFor(seed, FOR.drug, number);
  const spelling = pick(SPELLINGS, random);
  const suffix = chance(0.15, random) ? ` ${pick(NAME_SUFFIXES, random)}` : '';
  const name = inventedName({ number, start: randomFor(seed, FOR.drugNames, 0)(), endings: DRUG_ENDINGS });
  return {
    id: idWithGaps(number, random),
    name: spell(name + suffix, spelling),
    forms: [pick(FORMS[spelling], random), pick(FORMS[spelling], random)],
    size,
  };
}

// ---- products

function product(at: { seed: number; index: number; drug: Drug; nth: number }): Product {
  const random = randomFor(at.seed, FOR.product, at.index);
  const form = at.drug.forms[at.nth % 5 === 3 ? 1 : 0];
  // Packages vary first, then strengths, from a different start per drug: products of a drug differ.
  const variant = at.drug.id + at.nth;
  const pack = form.packages[variant % form.packages.length];
  const drugform = form.drugforms[
    Math.floor(variant / form.packages.length) % form.drugforms.length
  ] as Named;
  const published = !chance(0.35, random);
  return {
    product: { id: idWithGaps(at.index, random), name: `${at.drug.name} ${drugform.name}${pack}` },
    drug: { id: at.drug.id, name: at.drug.name },
    drugform: { ...drugform },
    barcodes: Array.from({ length: pick(BARCODE_COUNTS, random) }, (_, place) => ({
      barcode: barcode(at.seed, at.index * MOST_BARCODES + place),
      // Earlier barcodes of a product are out of use.
      skrsStatus: pick(place > 0 ? OLD_STATUSES : published ? STATUSES : UNPUBLISHED_STATUSES, random),
    })),
    published,
  };
}

/** Shares in thousandths: most products have one barcode, some none, some also earlier ones. */
const BARCODE_COUNTS = repeated([
  [0, 6],
  [1, 954],
  [2, 33],
  [3, 6],
  [4, 1],
]);
const MOST_BARCODES = 4;

const STATUSES = repeated<string | null>([
  ['Aktif', 43],
  [null, 57],
]);
const UNPUBLISHED_STATUSES = repeated<string | null>([
  ['Pasif', 95],
  ['Aktif', 3],
  [null, 2],
]);
const OLD_STATUSES = repeated<string | null>([
  ['Pasif', 85],
  ['Aktif', 10],
  [null, 5],
]);

/** Four in five Turkish barcodes start with 869, the others with 868: these are 1.25 billion of them. */
const BARCODE_BODIES = { first: 868_750_000_000, count: 1_250_000_000 };
/** A prime that does not divide the count, so that its multiples visit each number once. */
const BARCODE_STEP = 7_368_787;

/** Returns the n-th EAN-13 barcode of a market; all are different. */
function barcode(seed: number, n: number): string {
  const start = Math.floor(randomFor(seed, FOR.barcodes, 0)() * BARCODE_BODIES.count);
  const body = String(BARCODE_BODIES.first + ((start + n * BARCODE_STEP) % BARCODE_BODIES.count));
  let sum = 0;
  for (let place = 0; place < body.length; place++) sum += Number(body[place]) * (place % 2 === 0 ? 1 : 3);
  return body + ((10 - (sum % 10)) % 10);
}

// ---- companies

function company(seed: number, index: number): Company {
  const random = randomFor(seed, FOR.company, index);
  const spelling = pick(COMPANY_SPELLINGS, random);
  const word = inventedName({
    number: index,
    start: randomFor(seed, FOR.companyNames, 0)(),
    endings: COMPANY_ENDINGS,
  });
  const name = chance(0.6, random) ? `${word} ${pick(FIRM_KINDS, random)}` : word;
  const officialName = `${name}${name === word ? ' ilaç' : ''} ${pick(LEGAL_FORMS, random)}`;
  const [city, district, code] = pick(PLACES, random);
  const host = `${spell(word, 'plain').toLowerCase()}.example`;
  // Some firms have only a name; in others any field may be empty.
  const known = chance(0.6, random);
  const orNull = (share: number, value: string) => (known && chance(share, random) ? value : null);
  return {
    id: idWithGaps(index, random),
    name: spell(name, spelling),
    officialName: spell(officialName, spelling),
    website: known && chance(0.7, random) ? `https://www.${host}` : '',
    fax: orNull(0.5, phoneNumber(code, random)),
    phone: orNull(0.9, phoneNumber(code, random)),
    email: orNull(0.7, `info@${host}`),
    address: orNull(
      0.95,
      spell(`${pick(STREETS, random)} sokak No: ${1 + Math.floor(random() * 150)}`, spelling),
    ),
    city: orNull(0.97, spell(city, spelling)),
    district: orNull(0.85, spell(district, spelling)),
  };
}

/** Real subscriber numbers never start with a zero, so no telephone rings. */
function phoneNumber(code: string, random: Random): string {
  const digits = String(Math.floor(random() * 10_000)).padStart(4, '0');
  return `+90 ${code} 000 ${digits.slice(0, 2)} ${digits.slice(2)}`;
}

// ---- spelled forms, ids

type Named = Product['drugform'];

const SPELLINGS = repeated<Spelling>([
  ['plain', 66],
  ['turkish', 30],
  ['mixed', 4],
]);
const COMPANY_SPELLINGS = repeated<Spelling>([
  ['turkish', 70],
  ['mixed', 20],
  ['plain', 10],
]);

/** A dosage form in one spelling, with its strengths and the packages at the end of product names. */
interface Form {
  drugforms: readonly Named[];
  packages: readonly string[];
}

const drugformIds = new Map<string, number>();
const FORMS: Record<Spelling, readonly Form[]> = {
  plain: spelledForms('plain', (pack) => ` (${pack})`),
  turkish: spelledForms('turkish', (pack) => `, ${pack}`),
  mixed: spelledForms('mixed', (pack) => `, ${pack}`),
};

function spelledForms(spelling: Spelling, ending: (pack: string) => string): Form[] {
  const forms = DRUG_FORMS.map(({ name, strengths, packages, weight }): [Form, number] => {
    const drugforms = strengths.map((strength) => drugform(spell(`${strength} ${name}`, spelling)));
    return [{ drugforms, packages: packages.map((pack) => ending(spell(pack, spelling))) }, weight];
  });
  return repeated(forms);
}

/** Some forms have the same spelling with and without Turkish letters: these are equal. */
function drugform(name: string): Named {
  const id = drugformIds.get(name) ?? drugformIds.size + 1;
  drugformIds.set(name, id);
  return { id, name };
}

/** Ids increase with the position and skip some numbers, as in a list that lost records. */
function idWithGaps(position: number, random: Random): number {
  return 3 * position + 1 + Math.floor(random() * 3);
}

// ---- names

/** Real spellings: capitals without Turkish letters, with them, and mixed case. */
type Spelling = 'plain' | 'turkish' | 'mixed';

/** A prime, so that its multiples visit each two-syllable name once. */
const STEP = 724_313;

/**
 * Returns the name with a number: two syllables and an ending, then one more syllable when all are used.
 * `start`, from 0 up to 1, is the position of the first name.
 */
export function inventedName(of: { number: number; start: number; endings: readonly string[] }): string {
  const names = SYLLABLES.length ** 2 * of.endings.length;
  let rest = (Math.floor(of.start * names) + of.number * STEP) % names;
  const take = (parts: readonly string[]): string => {
    const part = parts[rest % parts.length] as string;
    rest = Math.floor(rest / parts.length);
    return part;
  };
  let name = take(SYLLABLES) + take(SYLLABLES) + take(of.endings);
  for (rest = Math.floor(of.number / names); rest > 0; ) name = take(SYLLABLES) + name;
  return name;
}

/** Spells a Turkish text in lower case, except units and abbreviations. */
function spell(text: string, spelling: Spelling): string {
  if (spelling === 'mixed') return text.replace(/\p{L}{4,}/gu, capitalized);
  const upper = text.toLocaleUpperCase('tr');
  return spelling === 'turkish' ? upper : upper.replace(/[ÇĞİÖŞÜ]/g, (letter) => PLAIN[letter] as string);
}

function capitalized(word: string): string {
  return word.slice(0, 1).toLocaleUpperCase('tr') + word.slice(1);
}
