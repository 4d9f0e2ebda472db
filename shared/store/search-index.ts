// The search index of a content: names of its keys, folded texts, and the values of exact searches.

import { type Collection, type ExactSearch, type PrefixSearch, valueAt } from '../collections/define.ts';

/** What a client searches for: prefixes as they were typed, and values of exact searches, by the names of the searches. */
export interface Search {
  readonly prefix: Readonly<Record<string, string>>;
  readonly exact: Readonly<Record<string, string>>;
}

/** Ends the text in a member of a sorted set. No folded text contains it: {@link escaped} replaces it. */
const end = '\0';

/** Returns the member of a text in a sorted set. The bytes of members sort by the folded text, then by the id. */
export function memberOf(text: string, id: number): string {
  return `${escaped(fold(text))}${end}${sortable(id)}`;
}

/** Returns the text of a record for each prefix search; a record without a text is not found by it. */
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

/** Returns the bounds of the members whose texts begin with a prefix, for ZLEXCOUNT: no UTF-8 text has the byte 0xff. */
export function prefixBounds(prefix: string): Readonly<Record<'before' | 'min' | 'max', Buffer>> {
  const bytes = Buffer.from(escaped(fold(prefix)));
  return {
    before: Buffer.concat([Buffer.from('('), bytes]),
    min: Buffer.concat([Buffer.from('['), bytes]),
    max: Buffer.concat([Buffer.from('('), bytes, Buffer.from([0xff])]),
  };
}

/** Whether a member has a text that begins with a prefix. */
export function hasPrefix(member: string, prefix: string): boolean {
  return member.startsWith(escaped(fold(prefix)));
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

/** Keeps the byte that ends a text out of it, and the order of texts as it was. */
function escaped(text: string): string {
  return text.replaceAll('\x01', '\x01\x02').replaceAll(end, '\x01\x01');
}

const digits = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz';

/** Writes a number so that texts sort like numbers: the count of its digits, then the digits, in base 64. */
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

/** What folds to its lower case: ASCII without runs of white space, or any at the edges. */
const isPlain = /^(?:[!-~]+(?: [!-~]+)*)?$/;

const marks = /\p{M}+/gu;
const iLetters = /[Iı]/g;
const whiteSpace = /[\s\u0085]+/g;

/**
 * Folds a text: canonical decomposition without combining marks (`ş` is `s`, `é` is `e`), lower case, one `i` of
 * `I ı İ i`, one `µ` of the micro sign and the Greek letter, each run of white space one space and none at the edges.
 * Letters that do not decompose stay (`ß æ ø ł ™`). See docs/API.md, "Search".
 * Lower case is taken letter by letter, so that the fold of a prefix is a prefix of the fold.
 * @example fold(' ASPİRİN\n Plus ') // 'aspirin plus'
 */
export function fold(text: string): string {
  if (isPlain.test(text)) return text.toLowerCase();
  // Without marks first: those of a long run would be brought into their order, in time that grows with its square.
  const letters = text.replace(marks, '').normalize('NFD').replace(marks, '');
  return lower(letters.replace(iLetters, 'i').replaceAll('µ', 'μ')).replace(whiteSpace, ' ').trim();
}

/** Without context: a sigma at the end of a word is the letter that it is within one. */
function lower(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ');
}
