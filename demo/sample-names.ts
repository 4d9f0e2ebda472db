// In: a number. Out: an invented name that no other number gets, and its spellings in Turkish lists.

import { SYLLABLES } from './sample-words.ts';

/** As lists really spell: capitals without Turkish letters, capitals with them, and mixed case. */
export type Spelling = 'plain' | 'turkish' | 'mixed';

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
export function spell(text: string, spelling: Spelling): string {
  if (spelling === 'mixed') return text.replace(/\p{L}{4,}/gu, capitalized);
  const upper = text.toLocaleUpperCase('tr');
  return spelling === 'turkish' ? upper : upper.replace(/[ÇĞİÖŞÜ]/g, (letter) => PLAIN[letter] as string);
}

const capitalized = (word: string) => word.slice(0, 1).toLocaleUpperCase('tr') + word.slice(1);
const PLAIN: Record<string, string> = { Ç: 'C', Ğ: 'G', İ: 'I', Ö: 'O', Ş: 'S', Ü: 'U' };
