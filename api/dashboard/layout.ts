// In: what a page says. Out: the whole page: landmarks, the way to the other pages, the style sheet.

import { html, raw } from 'hono/html';
import { pageLink, shownTime } from '../admin/dashboard/html.ts';
import { type Html, shownText } from './shown-text.ts';

/** A page among the others. */
export interface PageEntry {
  readonly name: string;
  readonly label: string;
}

/** What stands in a page and around it. */
export interface LaidOut {
  readonly title: string;
  readonly body: Html;
  readonly pages: readonly PageEntry[];
  /** Which of the pages it belongs to; none where it is an error. */
  readonly current?: string;
  /** Collections that the page can be about, and which one it is about. */
  readonly collections?: readonly string[];
  readonly collection?: string | undefined;
}

/** Lays a page out. */
export async function layout({
  title,
  body,
  pages,
  current,
  collections = [],
  collection,
}: LaidOut): Promise<string> {
  const entry = (href: string, label: string, isCurrent: boolean) =>
    html`<li><a href="${href}"${isCurrent ? raw(' aria-current="page"') : ''}>${label}</a></li>`;
  const about =
    pages.some(({ name }) => name === current) && collection !== undefined ? collection : undefined;
  const text = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · medref</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<span class="brand">medref</span>
<nav aria-label="Pages"><ul>${pages.map(({ name, label }) =>
    entry(
      pageLink(name, name === '' || name === 'keys' ? {} : { collection: about }),
      label,
      name === current,
    ),
  )}</ul></nav>
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
<footer><p>Read from Redis at ${shownTime(new Date())}. Nothing can be changed here.</p></footer>
</body>
</html>
`;
  return String(text);
}

/** The body of an error. */
export function errorBody(sentences: readonly string[]): Html {
  return html`${sentences.map((sentence) => html`<p>${shownText(sentence, 2_000)}</p>`)}
<p><a href="./">Overview</a></p>`;
}
