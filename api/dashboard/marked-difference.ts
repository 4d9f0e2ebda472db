// In: a value before and after. Out: both as text of a page, with what differs between them marked.

import { html } from 'hono/html';
import { none } from '../admin/dashboard/html.ts';
import { type Html, shownText, visible } from './shown-text.ts';

/** Beyond this, in characters, only the beginnings are shown, and nothing in them is marked. */
const markedLength = 600;

/** Two cells. */
export interface MarkedDifference {
  readonly before: Html;
  readonly after: Html;
}

/** Marks what differs: all between the beginning and the end that both have. */
export function markedDifference(before: unknown, after: unknown): MarkedDifference {
  const [one, other] = [textOf(before), textOf(after)];
  if (one === null || other === null || Math.max(one.length, other.length) > markedLength)
    return {
      before: one === null ? none : shownText(one, 300),
      after: other === null ? none : shownText(other, 300),
    };
  const [was, is] = [[...one], [...other]];
  const shorter = Math.min(was.length, is.length);
  let start = 0;
  while (start < shorter && was[start] === is[start]) start += 1;
  let end = 0;
  while (end < shorter - start && was[was.length - 1 - end] === is[is.length - 1 - end]) end += 1;
  const parts = (characters: readonly string[]) =>
    [
      visible(characters.slice(0, start).join('')),
      characters.slice(start, characters.length - end).join(''),
      visible(characters.slice(characters.length - end).join('')),
    ] as const;
  const [a, removed, b] = parts(was);
  const [c, added, d] = parts(is);
  return {
    before: html`<bdi class="text">${a}${removed && html`<del>${visible(removed)}</del>`}${b}</bdi>`,
    after: html`<bdi class="text">${c}${added && html`<ins>${visible(added)}</ins>`}${d}</bdi>`,
  };
}

/** Text as it is, all else as JSON; `null` for what there is none of. */
function textOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
