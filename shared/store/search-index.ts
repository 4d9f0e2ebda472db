// The search index of a content: names of its keys, folded texts, and the values of exact searches.

import { type Collection, type ExactSearch, type PrefixSearch, valueAt } from '../collections/define.ts';

/** A client's search: prefixes as typed, and exact values, by name of the search. */
export interface Search {
  readonly prefix: Readonly<Record<string, string>>;
  readonly exact: Readonly<Record<string, string>>;
  /** Folded words; each must be the beginning of a word of the name. */
  readonly words: readonly string[];
  /** By name of the search. */
  readonly flags: Readonly<Record<string, boolean>>;
}

/** Ends the text in a member of a sorted set. No folded text contains it: {@link escaped} replaces it. */
const end = '\0';

/** Returns the member of a text in a sorted set. The bytes of members sort by the folded text, then by the id. */
export function memberOf(text: string, id: number): string {
  return `${escaped(fold(text))}${end}${sortable(id)}`;
}

/** Returns the text of a record for each prefix search; records without a text are not in the index. */
export function prefixTexts(
  { prefixSearches }: Collection,
  record: unknown,
): [search: string, text: string][] {
  const found: [string, string][] = [];
  for (const search in prefixSearches) {
    const text = valueAt(record, (prefixSearches[search] as PrefixSearch).path);
    if (typeof text === 'string') found.push([search, text]);
  }
  return found;
}

/** Returns the bounds of all members with a prefix, for ZLEXCOUNT: no UTF-8 text has the byte 0xff. */
export function prefixBounds(prefix: string): Readonly<Record<'before' | 'min' | 'max', Buffer>> {
  const bytes = Buffer.from(escaped(fold(prefix)));
  return {
    before: Buffer.concat([Buffer.from('('), bytes]),
    min: Buffer.concat([Buffer.from('['), bytes]),
    max: Buffer.concat([Buffer.from('('), bytes, Buffer.from([0xff])]),
  };
}

/** Returns the text in a member; of its control characters, two are escaped. */
export function textOfMember(member: string): string {
  return member.slice(0, member.lastIndexOf(end));
}

/** Returns the id in a member, as decimal digits. */
export function idOfMember(member: string): string {
  return String(unsortable(member.slice(member.lastIndexOf(end) + 1)));
}

/** Compares members as Redis sorts them: by their bytes. */
export function compareMembers(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

/** Returns the values of a record for each exact search. */
export function exactValues(
  { exactSearches }: Collection,
  record: unknown,
): [search: string, values: string[]][] {
  const found: [string, string[]][] = [];
  for (const search in exactSearches) {
    const values = (exactSearches[search] as ExactSearch).valuesOf(record).map(String);
    found.push([search, values.length > 1 ? [...new Set(values)] : values]);
  }
  return found;
}

/** Replaces the separator byte in a text, and keeps the order of texts. */
function escaped(text: string): string {
  return text.replaceAll('\x01', '\x01\x02').replaceAll(end, '\x01\x01');
}

const digits = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz';

/** Writes a number so that texts sort like numbers: the number of its digits, then the digits, in base 64. */
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

/** Text that only needs lower case: ASCII with single inner spaces. */
const isPlain = /^(?:[!-~]+(?: [!-~]+)*)?$/;

const marks = /\p{M}+/gu;
const iLetters = /[Iı]/g;
const whiteSpace = /[\s\u0085]+/g;

/**
 * Folds a text: canonical decomposition without combining marks (`ş` is `s`, `é` is `e`), lower case, one `i` for
 * `I ı İ i`, one `µ` for the micro sign and the Greek letter, single spaces for white space, none at the ends.
 * Letters that do not decompose stay (`ß æ ø ł ™`). See docs/API.md, "Search".
 * Each letter is lowered alone, so that the fold of a prefix is a prefix of the fold.
 * @example fold(' ASPİRİN\n Plus ') // 'aspirin plus'
 */
export function fold(text: string): string {
  if (isPlain.test(text)) return text.toLowerCase();
  // Marks are removed first: normalizing a long run of them takes quadratic time.
  const letters = text.replace(marks, '').normalize('NFD').replace(marks, '');
  return lower(letters.replace(iLetters, 'i').replaceAll('µ', 'μ')).replace(whiteSpace, ' ').trim();
}

/** Lowers letters without context: a sigma at the end of a word equals one inside a word. */
function lower(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ');
}
