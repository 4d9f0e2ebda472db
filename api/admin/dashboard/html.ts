// The HTML that all pages share: text from outside, times, numbers, tables, links, and the layout.

import { html, raw } from 'hono/html';
import type { NextCommand } from '../../../shared/collection-status.ts';
import { ageText, age as largestUnit } from '../../../shared/text.ts';

/** A piece of a page. */
export type Html = ReturnType<typeof html>;

/** The length at which lists cut a text, in characters. */
const cutLength = 200;

/** The length at which every page cuts a sentence, such as a reason, in characters. */
export const sentenceLength = 2_000;

/** Controls, format marks, unpaired surrogates, line separators, and everything without ink by design. */
const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** More marks than this on one letter would cover the text around it. */
const manyMarks = /(\p{M}{4})\p{M}+/gu;

/** Returns a text from outside with its invisible characters shown; a long text is cut and followed by its length. */
export function shownText(text: string, length = cutLength): Html {
  if (text.length <= length) return html`<bdi class="text">${visible(text)}</bdi>`;
  const isPair = /[\ud800-\udbff]/.test(text[length - 1] as string);
  const cut = text.slice(0, isPair ? length - 1 : length);
  return html`<bdi class="text">${visible(cut)}…</bdi> <small>(${shownCount(text.length)} characters)</small>`;
}

/** Returns the pieces of a text, each invisible character as its number: fonts do not have pictures of all controls. */
export function visible(text: string): (string | Html)[] {
  const pieces: (string | Html)[] = [];
  let from = 0;
  const bounded = text.replace(manyMarks, '$1\ufffd');
  for (const { 0: mark, index } of bounded.matchAll(invisible)) {
    const number = (mark.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0');
    pieces.push(bounded.slice(from, index), html`<span class="unseen">U+${number}</span>`);
    from = index + mark.length;
  }
  return [...pieces, bounded.slice(from)];
}

/** Returns the address of a page, relative to every other page; parameters that are `undefined` are left out. */
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

/** Returns a time in UTC, and how far it is from now. */
export function shownTime(time: string | Date): Html {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return html`<span class="wrong">not a time</span>`;
  const iso = date.toISOString();
  const seconds = (Date.now() - date.getTime()) / 1000;
  const relative = seconds < 0 ? `in ${largestUnit(-seconds)}` : ageText(seconds);
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC</time> <small>(${relative})</small>`;
}

/** Returns the number of a version, on one line. */
export function shownVersion(version: number): Html {
  return html`<span class="whole">${version}</span>`;
}

/** Returns a whole number with its thousands separated. */
export function shownCount(count: number): string {
  return count.toLocaleString('en');
}

/** Returns a duration in the unit that fits it. */
export function shownDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}

/** An empty cell. */
export const none: Html = html`<span class="none">–</span>`;

/** Returns names with their values. */
export function facts(rows: readonly (readonly [name: string, value: unknown])[]): Html {
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** A column of a table; numbers are aligned right. */
export interface Column {
  readonly heading: string;
  readonly isNumber: boolean;
}

/** Returns a column of numbers. */
export function numbers(heading: string): Column {
  return { heading, isNumber: true };
}

/** Returns a table that scrolls if it is wide; the first cell of a row is the heading of the row. */
export function table(
  caption: string,
  columns: readonly (string | Column)[],
  rows: readonly (readonly unknown[])[],
): Html {
  const kind = (n: number) => (typeof columns[n] === 'object' ? 'number' : '');
  const id = `table-${caption.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`;
  return html`<div class="scroll" role="region" aria-labelledby="${id}" tabindex="0"><table>
<caption id="${id}">${caption}</caption>
<thead><tr>${columns.map(
    (it, n) => html`<th scope="col" class="${kind(n)}">${typeof it === 'object' ? it.heading : it}</th>`,
  )}</tr></thead>
<tbody>${rows.map(
    ([first, ...others]) => html`<tr><th scope="row" class="${kind(0)}">${first}</th>${others.map(
      (cell, n) => html`<td class="${kind(n + 1)}">${cell}</td>`,
    )}</tr>
`,
  )}</tbody>
</table></div>`;
}

/** Returns commands for the operator, one on each line, with their effects. */
export function commands(run: readonly NextCommand[]): Html | '' {
  if (run.length === 0) return '';
  const items = run.map(
    ({ command, effect }) => html`<li><code>${command}</code> <span class="next">${effect}</span></li>`,
  );
  return html`<ul class="commands" aria-label="Commands">${items}</ul>`;
}

/** Returns a form field that selects one of the kept versions. */
export function versionField(
  { name, label, selected }: { name: string; label: string; selected: number | undefined },
  kept: readonly { readonly version: number }[],
): Html {
  return html`<label>${label} <select name="${name}">${kept.map(
    ({ version }) =>
      html`<option value="${version}"${version === selected ? raw(' selected') : ''}>${version}</option>`,
  )}</select></label>`;
}

/** Returns links to the pages of a list, or nothing if the list has one page. */
export function pageLinks(
  { page, perPage, total }: { readonly page: number; readonly perPage: number; readonly total: number },
  linkTo: (page: number) => string,
): Html | '' {
  const last = Math.max(1, Math.ceil(total / perPage));
  if (last === 1 && page === 1) return '';
  const link = (to: number, text: string, exists: boolean) =>
    exists ? html`<a href="${linkTo(to)}">${text}</a>` : html`<span class="none">${text}</span>`;
  return html`<nav class="pages" aria-label="Pages of the list">
${link(1, 'First', page > 1)} ${link(Math.min(page - 1, last), 'Previous', page > 1)}
<span>Page ${shownCount(page)} of ${shownCount(last)}</span>
${link(page + 1, 'Next', page < last)} ${link(last, 'Last', page < last)}</nav>`;
}

/** A process and its Redis. */
export interface Instance {
  readonly release: string;
  readonly host: string;
  /** Without credentials. */
  readonly redis: string;
}

/** The layout around the body of a page. */
export interface LayoutOptions {
  readonly title: string;
  readonly body: Html;
  /** The entries of the menu. */
  readonly menu: readonly { readonly name: string; readonly label: string }[];
  /** The name of the menu entry that the page belongs to. */
  readonly current?: string;
  /** The collections that the page can show. */
  readonly collections?: readonly string[];
  /** The collection that the page shows. */
  readonly collection?: string | undefined;
  readonly instance: Instance;
  readonly keyPrefix: string;
  /** Whether the page reports an error, and no data of Redis. */
  readonly isError?: boolean;
  /** The automatic refresh of this page, if it has one. */
  readonly refresh?: { readonly page: string; readonly seconds: number; readonly isOn: boolean } | undefined;
}

function refreshText({ page, seconds, isOn }: NonNullable<LayoutOptions['refresh']>): Html {
  return isOn
    ? html` It refreshes every ${seconds} s. <a href="${pageLink(page, { refresh: 'off' })}">Stop refreshing</a>`
    : html` It does not refresh. <a href="${pageLink(page)}">Refresh automatically</a>`;
}

/** Returns a whole page. */
export async function layout(options: LayoutOptions): Promise<string> {
  const { title, body, menu, current, collections = [], collection, instance, keyPrefix } = options;
  const { refresh, isError = false } = options;
  const entry = (href: string, label: string, isCurrent: boolean) =>
    html`<li><a href="${href}"${isCurrent ? raw(' aria-current="page"') : ''}>${label}</a></li>`;
  const linkTo = (name: string) => pageLink(name, name === '' || name === 'keys' ? {} : { collection });
  const text = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · medref</title>
${refresh?.isOn ? html`<meta http-equiv="refresh" content="${refresh.seconds}">` : ''}
<link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css">
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header>
<span class="brand">medref</span>
<nav aria-label="Pages"><ul>${menu.map(({ name, label }) => entry(linkTo(name), label, name === current))}</ul></nav>
<p class="instance">medref ${instance.release} on ${shownText(instance.host, 60)} · Redis ${shownText(instance.redis, 120)} · prefix ${keyPrefix}</p>
</header>
<main id="content" tabindex="-1">
<h1>${title}</h1>
${
  collections.length < 2 || current === undefined
    ? ''
    : html`<nav class="collections" aria-label="Collections"><ul>${collections.map((name) =>
        entry(pageLink(current, { collection: name }), name, name === collection),
      )}</ul></nav>`
}
${body}
</main>
<footer><p>${isError ? 'Made' : 'Read from Redis'} at ${shownTime(new Date())}. This page is read-only.${refresh ? refreshText(refresh) : ''}</p></footer>
</body>
</html>
`;
  return String(text);
}
