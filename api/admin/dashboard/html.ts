// What pages are put together from: times, numbers, lists of facts, tables that scroll by themselves, links to other pages.

import { html } from 'hono/html';
import { ageText, age as largestUnit } from '../../../shared/figures.ts';
import type { Html } from '../../dashboard/shown-text.ts';

/** The address of a page, relative to every other one; parameters that are `undefined` are left out. */
export function pageLink(
  page: string,
  parameters: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) query.append(name, String(value));
  const text = query.toString();
  return text === '' ? page || './' : `${page}?${text}`;
}

/** A time of ISO 8601 in UTC, and how long ago it was, or is to be. */
export function shownTime(time: string | Date): Html {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return html`<span class="wrong">not a time</span>`;
  const iso = date.toISOString();
  const seconds = (Date.now() - date.getTime()) / 1000;
  const relative = seconds < 0 ? `in ${largestUnit(-seconds)}` : ageText(seconds);
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC</time> <small>(${relative})</small>`;
}

/** The number of a version, on one line. */
export function shownVersion(version: number): Html {
  return html`<span class="whole">${version}</span>`;
}

/** A whole number with its thousands apart. */
export function shownCount(count: number): string {
  return count.toLocaleString('en');
}

/** A duration of some ms, in the unit that fits it. */
export function shownDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}

/** A cell of what there is none of. */
export const none: Html = html`<span class="none">–</span>`;

/** Names and what is known under each. */
export function facts(rows: readonly (readonly [name: string, value: unknown])[]): Html {
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** A column of a table. */
export interface Column {
  readonly heading: string;
  /** Numbers are aligned by their ends. */
  readonly isNumber?: boolean;
}

/** A table with its caption; the first cell of each row is the heading of the row. It scrolls within itself where it is wide. */
export function table(
  caption: string,
  columns: readonly (string | Column)[],
  rows: readonly (readonly unknown[])[],
): Html {
  const its = columns.map((column) => (typeof column === 'string' ? { heading: column } : column));
  const kind = (n: number) => (its[n]?.isNumber ? 'number' : '');
  const id = `table-${caption.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`;
  return html`<div class="scroll" role="region" aria-labelledby="${id}" tabindex="0"><table>
<caption id="${id}">${caption}</caption>
<thead><tr>${its.map(({ heading }, n) => html`<th scope="col" class="${kind(n)}">${heading}</th>`)}</tr></thead>
<tbody>${rows.map(
    ([first, ...others]) => html`<tr><th scope="row" class="${kind(0)}">${first}</th>${others.map(
      (cell, n) => html`<td class="${kind(n + 1)}">${cell}</td>`,
    )}</tr>
`,
  )}</tbody>
</table></div>`;
}

/** A column of numbers. */
export function numbers(heading: string): Column {
  return { heading, isNumber: true };
}

/** Commands to run, each on a line. */
export function commands(run: readonly string[]): Html | '' {
  if (run.length === 0) return '';
  return html`<ul class="commands" aria-label="What to run">${run.map((it) => html`<li><code>${it}</code></li>`)}</ul>`;
}

/** Links to the pages of a list; nothing where one page has all. */
export function pageLinks(
  { page, perPage, total }: { readonly page: number; readonly perPage: number; readonly total: number },
  linkTo: (page: number) => string,
): Html | '' {
  const last = Math.max(1, Math.ceil(total / perPage));
  if (last === 1 && page === 1) return '';
  const link = (to: number, text: string, isThere: boolean) =>
    isThere ? html`<a href="${linkTo(to)}">${text}</a>` : html`<span class="none">${text}</span>`;
  return html`<nav class="pages" aria-label="Pages of the list">
${link(1, 'First', page > 1)} ${link(Math.min(page - 1, last), 'Previous', page > 1)}
<span>Page ${shownCount(page)} of ${shownCount(last)}</span>
${link(page + 1, 'Next', page < last)} ${link(last, 'Last', page < last)}</nav>`;
}
