// The entries of a search index: each is a key that a search is a prefix of, and the id of a record. Sorted by their
// bytes, they are one sequence, in which what a search finds lies together.

import { type Collection, valueAt } from '../collections/collection.ts';
import { fold } from './fold.ts';

/** What is searched for; at least one of both. */
export interface Search {
  /** The beginning of a name, as it was typed. */
  readonly name?: string | undefined;
  /** A whole barcode. */
  readonly barcode?: string | undefined;
}

/** Stands behind each part of an entry. No part has it within: {@link keyOf} writes a NUL of a name in another way. */
const end = '\0';

/**
 * The entries of a record: by name, by barcode (in list order), and by both.
 * @param position of the record upstream, from 1
 */
export function entriesOf(
  collection: Collection,
  { record, id, position }: { record: unknown; id: number; position: number },
): string[] {
  const name = fold(valueAt(record, collection.namePath) as string);
  const entries = [`n${keyOf(name)}${end}${sortable(id)}`];
  const barcodes = collection.barcodesOf?.(record) ?? [];
  if (barcodes.length === 0) return entries;
  const beginning = keyOf(beginningOf(name));
  for (const barcode of barcodes) {
    entries.push(
      `b${barcode}${end}${sortable(position)}${end}${sortable(id)}`,
      `c${barcode}${end}${beginning}${end}${sortable(id)}`,
    );
  }
  return entries;
}

/**
 * How much of a name stands beside each barcode, in characters: more than any search can ask for, since the 200 that are
 * typed fold to 600 at most. A record of 1,000 barcodes would else have its name a thousand times.
 */
const maxBeginning = 1_000;

function beginningOf(name: string): string {
  if (name.length <= maxBeginning) return name;
  return [...name.slice(0, 2 * maxBeginning)].slice(0, maxBeginning).join('');
}

/** What the keys of the entries begin with that a search finds. */
export function prefixOf({ name, barcode }: Search): string {
  const typed = name === undefined ? '' : keyOf(fold(name));
  if (barcode === undefined) return `n${typed}`;
  return name === undefined ? `b${barcode}${end}` : `c${barcode}${end}${typed}`;
}

/** The least text that is beyond all that begin so: with the next character for the last one. */
export function beyond(prefix: string): string {
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
function keyOf(text: string): string {
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
