// Invents products and companies that look like a real market, from a seed: each is computed from the seed and its position
// alone, so that millions cost no memory.

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
  /** Any integer; another seed is another market. */
  seed: number;
  /** How many records; a smaller sample is the beginning of a larger one. */
  count: number;
}

/** Invented products, in the order of an upstream list: those of one drug stand together. */
export function* sampleProducts({ seed, count }: SampleOptions): Generator<Product, void, undefined> {
  let index = 0;
  for (const drug of drugs(seed)) {
    for (let nth = 0; nth < drug.size; nth++, index++) {
      if (index >= count) return;
      yield product({ seed, index, drug, nth });
    }
  }
}

/** Invented companies, in the order of an upstream list. */
export function* sampleCompanies({ seed, count }: SampleOptions): Generator<Company, void, undefined> {
  for (let index = 0; index < count; index++) yield company(seed, index);
}

/** The text of the document `{"data":[…]}`, in pieces that are made as they are asked for. */
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

/** What a stream of random numbers is for. */
const FOR = { shelf: 1, drug: 2, product: 3, company: 4, drugNames: 5, companyNames: 6, barcodes: 7 };

/** Turkish capitals in lists without Turkish letters. */
const PLAIN: Record<string, string> = { Ç: 'C', Ğ: 'G', İ: 'I', Ö: 'O', Ş: 'S', Ü: 'U' };

// ---- drugs: a shelf of 100 products after the other, each with the same numbers of small and large drugs

/** How many drugs of a shelf have so many products: as in a real list, most have one or two. */
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
  /** The form most of its products have, and the form of the others. */
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
  // Packages change first, then strengths, from a start of the drug's own: products of a drug differ.
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
      // What a product had before its present barcode is out of use.
      skrsStatus: pick(place > 0 ? OLD_STATUSES : published ? STATUSES : UNPUBLISHED_STATUSES, random),
    })),
    published,
  };
}

/** Shares in thousandths: most have one barcode, some none, some kept their earlier ones. */
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

/** Four of five Turkish barcodes begin with 869, the others with 868: these are a billion and a quarter of that. */
const BARCODE_BODIES = { first: 868_750_000_000, count: 1_250_000_000 };
/** A prime that does not divide the count, so that steps of it visit every body once before any twice. */
const BARCODE_STEP = 7_368_787;

/** The n-th EAN-13 barcode of a market; all are different. */
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
  // Of some firms nothing but the name is known; of the others any part may be missing.
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

/** No subscriber's number begins with a zero: nobody's telephone rings. */
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

/** A dosage form in one spelling: with each of its strengths, and its packages as they end a product's name. */
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

/** Some are spelled alike with and without Turkish letters: those are the same. */
function drugform(name: string): Named {
  const id = drugformIds.get(name) ?? drugformIds.size + 1;
  drugformIds.set(name, id);
  return { id, name };
}

/** Ids grow with the position, and leave out some numbers, as those of a list that lost records do. */
function idWithGaps(position: number, random: Random): number {
  return 3 * position + 1 + Math.floor(random() * 3);
}

// ---- names

/** As lists really spell: capitals without Turkish letters, capitals with them, and mixed case. */
type Spelling = 'plain' | 'turkish' | 'mixed';

/** A prime, so that steps of it visit every name of two syllables once before any twice. */
const STEP = 724_313;

/**
 * The name with this number: two syllables and an ending, and one more syllable each time all are used up.
 * `start`, from 0 up to 1, says where among the names the numbering begins.
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

/** Spells a Turkish text that is in lower case (but for units and abbreviations that never are). */
function spell(text: string, spelling: Spelling): string {
  if (spelling === 'mixed') return text.replace(/\p{L}{4,}/gu, capitalized);
  const upper = text.toLocaleUpperCase('tr');
  return spelling === 'turkish' ? upper : upper.replace(/[ÇĞİÖŞÜ]/g, (letter) => PLAIN[letter] as string);
}

function capitalized(word: string): string {
  return word.slice(0, 1).toLocaleUpperCase('tr') + word.slice(1);
}
