// Complete lists, as long as real ones. Real lists are read in the folder next to the project, and never copied. Without them,
// the sample catalogue is used, so that a fresh clone proves as much.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { sampleCompanies, sampleProducts } from '../../demo/sample-catalogue.ts';
import type { Product } from '../../shared/collections/products.ts';

/** Lists of valid records, and one with invalid records among them: `{kind, record}`. */
export type ListName = 'products' | 'companies' | 'dirty';

const realFolder = new URL('../../../shared/data/', import.meta.url);

/** Whether the lists are real ones. */
export const listsAreReal = existsSync(new URL('products.json.gz', realFolder));

/** Names the lists in test titles. */
export const whichLists = listsAreReal ? 'the real lists' : 'the sample catalogue';

const seed = 7_313;
const sizes = { products: 28_395, companies: 2_417 };

/** Returns the URL of a list's file. */
export function listUrl(name: ListName): URL {
  if (listsAreReal) return new URL(`${name}.json.gz`, realFolder);
  const path = join(sampleFolder(), `${name}.json.gz`);
  if (!existsSync(path)) writeFileSync(path, gzipSync(JSON.stringify({ data: sampleList(name) })));
  return pathToFileURL(path);
}

/** Reads the records of a list. */
export function readList<Item = unknown>(name: ListName): Item[] {
  return (JSON.parse(gunzipSync(readFileSync(listUrl(name))).toString()) as { data: Item[] }).data;
}

let folder: string | undefined;

/** Creates the folder at its first use; it is deleted when the process ends. */
function sampleFolder(): string {
  if (folder) return folder;
  const made = mkdtempSync(join(tmpdir(), 'medref-test-lists-'));
  process.once('exit', () => rmSync(made, { recursive: true, force: true }));
  folder = made;
  return made;
}

function sampleList(name: ListName): readonly unknown[] {
  if (name === 'products') return [...sampleProducts({ seed, count: sizes.products })];
  if (name === 'companies') return [...sampleCompanies({ seed, count: sizes.companies })];
  return dirtyList();
}

/** The invalid barcodes of real lists. */
const badBarcodes: readonly ((digits: string) => string)[] = [
  (digits) => `${digits} `,
  (digits) => `${digits.slice(0, 6)} ${digits.slice(6)}`,
  (digits) => `:${digits}`,
  (digits) => `${digits}\n`,
  (digits) => digits.replace(/\d/, 'l'),
  (digits) => digits.slice(2),
  (digits) => `0${digits}`,
  () => '',
];

/** Returns records of which some are invalid in the ways of real lists: bad barcodes, and repeated ids. */
function dirtyList(): unknown[] {
  const products = [...sampleProducts({ seed, count: 3_000 })].map((record, n): Product => {
    const flaw = badBarcodes[n % 11];
    const [first, ...others] = record.barcodes;
    if (!flaw || !first) return record;
    return { ...record, barcodes: [...others, { ...first, barcode: flaw(first.barcode) }] };
  });
  const companies = [...sampleCompanies({ seed, count: 1_000 })];
  const again = <Item>(items: readonly Item[]) => items.filter((_item, n) => n % 37 === 0);
  return [
    ...[...products, ...again(products)].map((record) => ({ kind: 'product', record })),
    ...[...companies, ...again(companies)].map((record) => ({ kind: 'company', record })),
  ];
}
