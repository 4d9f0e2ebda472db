// The entries of a search index. Sorted by their bytes they are one sequence: all names; then, by each key (a barcode, or a
// drug), its records in list order; then, of keys with many records, what finds some of these.

import type { Collection } from '../collections/define.ts';
import { fold } from '../store/fold.ts';

/** What is searched for; at least one of these. */
export interface Search {
  /** The beginning of a name, as it was typed. */
  readonly name?: string | undefined;
  /** A whole barcode. */
  readonly barcode?: string | undefined;
  /** The id of a drug. */
  readonly drug?: number | undefined;
}

/**
 * A key with more records than this is a frequent one. Of any other key a search reads all entries, and takes those that
 * have the name or the drug, too: no more work than for a page of results.
 */
export const frequentOver = 200;

/** Stands behind each part of an entry. No part has it within: {@link escaped} writes a NUL of a name in another way. */
const end = '\0';

/**
 * The entry of a record by its name, as long as its rank among all names is not known: what {@link entriesAt} makes the
 * others of stands behind it.
 * @param place of the record in its list, from 0
 */
export function unrankedEntryOf(
  collection: Collection,
  { record, id, place }: { record: unknown; id: number; place: number },
): string {
  const name = fold(collection.nameOf(record));
  const drug = collection.exactSearches['drug']?.valuesOf(record)[0] as number | undefined;
  const barcodes = (collection.exactSearches['barcode']?.valuesOf(record) ?? []) as string[];
  const drugPart = drug === undefined ? '' : sortable(drug);
  return [`n${escaped(name)}`, sortable(id), sortable(place), drugPart, ...barcodes].join(end);
}

/**
 * The entries of a record, that by its name first.
 * @param unranked see {@link unrankedEntryOf}; as it is, or as its bytes
 * @param rank how many names come before that of the record
 */
export function entriesAt(unranked: string, rank: number): string[] {
  const [name, id, place, drug, ...barcodes] = unranked.split(end) as [string, string, string, string];
  const entries = [`${name}${end}${id}`];
  const behind = `${end}${place}${end}${sortable(rank)}${end}`;
  if (drug !== '') entries.push(`pd${drug}${behind}${end}${id}`);
  for (const barcode of barcodes) entries.push(`pb${barcode}${behind}${drug}${end}${id}`);
  return entries;
}

/** The key of an entry in list order; `null` of any other one, and of one of a barcode and a drug together. */
export function keyIn(entry: string): string | null {
  return entry.startsWith('pb') || entry.startsWith('pd') ? entry.slice(1, entry.indexOf(end)) : null;
}

/** The further entries of a record of a frequent key, by its entry of that key in list order. */
export function frequentEntriesOf(listed: string): string[] {
  const [kindAndKey, place, rank, drug, id] = listed.split(end) as [string, string, string, string, string];
  const key = kindAndKey.slice(1);
  const entries = [`r${key}${end}${rank}${end}${id}`];
  if (drug !== '') {
    const both = `x${key.slice(1)}:${drug}`;
    entries.push(`p${both}${end}${place}${end}${id}`, `r${both}${end}${rank}${end}${id}`);
  }
  return entries;
}

/** Entries from the first that is no less than a text, to before the first that is no less than another. */
export interface EntryRange {
  readonly least: string;
  readonly beyond: string;
}

/** The entries of all names that begin as one was typed. */
export function namesRange(name: string): EntryRange {
  return rangeOf(`n${escaped(fold(name))}`);
}

/** The key of a search, of a barcode and a drug together too; `null` where it is for a name alone. */
export function keyOf({ barcode, drug }: Search): string | null {
  if (drug === undefined) return barcode === undefined ? null : `b${barcode}`;
  return barcode === undefined ? `d${sortable(drug)}` : `x${barcode}:${sortable(drug)}`;
}

/** The entries of a key, in list order. */
export function listedRange(key: string): EntryRange {
  return rangeOf(`p${key}${end}`);
}

/** From one rank to before another. */
export interface Ranks {
  readonly from: number;
  readonly until: number;
}

/** The entries of a frequent key in the order of names, those of some ranks. */
export function rankedRange(key: string, { from, until }: Ranks): EntryRange {
  const bound = (rank: number) => `r${key}${end}${sortable(rank)}`;
  return { least: bound(from), beyond: bound(until) };
}

/** Whether the record of an entry of a barcode or a drug, in list order, has this drug and one of these ranks, too. */
export function isListed(
  entry: string,
  { drug, ranks }: { drug?: number | undefined; ranks?: Ranks | undefined },
): boolean {
  const [, , rank, its] = entry.split(end) as [string, string, string, string];
  if (drug !== undefined && its !== '' && its !== sortable(drug)) return false;
  return ranks === undefined || (rank >= sortable(ranks.from) && rank < sortable(ranks.until));
}

/** The rank in an entry of a barcode or a drug, in list order, as a text that has the order of the number. */
export function rankOf(entry: string): string {
  return entry.split(end)[2] as string;
}

/** What a search without a drug finds in an index without ranks, which has entries of each barcode with each name. */
export function olderRange({ name, barcode }: Search): EntryRange {
  if (barcode === undefined) return namesRange(name as string);
  return name === undefined
    ? rangeOf(`b${barcode}${end}`)
    : rangeOf(`c${barcode}${end}${escaped(fold(name))}`);
}

/** The entries that begin with a text, by their bytes. */
function rangeOf(prefix: string): EntryRange {
  return { least: bytes(prefix), beyond: bytes(beyond(prefix)) };
}

/** The least text that is beyond all that begin so: with the next character for the last one. */
function beyond(prefix: string): string {
  const characters = [...prefix];
  const last = characters.pop()?.codePointAt(0) as number;
  if (last === 0x10ffff) return beyond(characters.join(''));
  // Halves of surrogate pairs are no characters of their own.
  return characters.join('') + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1);
}

/** The id of the record that an entry is of. */
export function idOf(entry: string): string {
  return String(unsortable(entry.slice(entry.lastIndexOf(end) + 1)));
}

/** A text as bytes, one character each: so compared, texts have the order of their UTF-8. */
export function bytes(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/** Keeps what ends a key out of it, and the order of keys as it was. */
function escaped(text: string): string {
  return text.replaceAll('\x01', '\x01\x02').replaceAll(end, '\x01\x01');
}

const digits = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz';

/** A number as a text whose order is that of the number: how many digits, then those, in base 64. */
function sortable(value: number): string {
  let text = '';
  for (let left = value; left > 0; left = Math.floor(left / 64)) text = digits[left % 64] + text;
  return text.length + text;
}

function unsortable(text: string): number {
  let value = 0;
  for (let at = 1; at < text.length; at += 1) value = value * 64 + digits.indexOf(text[at] as string);
  return value;
}
