// In: text that came from outside. Out: the same as text of a page: what nobody sees is made visible, what is long is cut or
// folded, and its direction stays its own.

import { html } from 'hono/html';

/** A piece of a page. */
export type Html = ReturnType<typeof html>;

/** How much of a text is shown where there are many of them, in characters. */
const usualLength = 200;

/** How much of a text is shown at all: as much as the longest name has. */
const longestLength = 10_000;

/** Controls, format marks, halves of surrogate pairs, separators of lines, and all that leaves no ink by design. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** More marks above or below a letter than this would be written over what stands there. */
const manyMarks = /(\p{M}{4})\p{M}+/gu;

/** A text in a list: its beginning, and how long it is. */
export function shownText(text: string, most = usualLength): Html {
  const characters = firstCharacters(text, most);
  if (characters === null) return html`<bdi class="text">${visible(text)}</bdi>`;
  return html`<bdi class="text">${visible(characters)}…</bdi> <small>(${length(text)})</small>`;
}

/** A text that a page is about: all of it, folded where it is long. */
export function foldedText(text: string): Html {
  if (firstCharacters(text, usualLength) === null) return shownText(text);
  return html`<details><summary>${shownText(text)}</summary><div>${shownText(text, longestLength)}</div></details>`;
}

/** A text with what nobody sees made visible, piece by piece. */
export function visible(text: string): (string | Html)[] {
  const pieces: (string | Html)[] = [];
  let from = 0;
  const bounded = text.replace(manyMarks, '$1\ufffd');
  for (const { 0: mark, index } of bounded.matchAll(unseen)) {
    pieces.push(bounded.slice(from, index), html`<span class="unseen">${nameOf(mark)}</span>`);
    from = index + mark.length;
  }
  return [...pieces, bounded.slice(from)];
}

/** The number of a character; fonts do not all have pictures of controls. */
function nameOf(mark: string): string {
  return `U+${(mark.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** The first characters of a text; `null` where it has no more. Halves no character. */
function firstCharacters(text: string, most: number): string | null {
  if (text.length <= most) return null;
  const isPair = /[\ud800-\udbff]/.test(text[most - 1] as string);
  return text.slice(0, isPair ? most - 1 : most);
}

function length(text: string): string {
  return `${text.length.toLocaleString('en')} characters`;
}
