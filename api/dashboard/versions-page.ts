// The kept versions of a collection, and which two of them to compare.

import { html, raw } from 'hono/html';
import { contentOf, type Version } from '../../shared/store/versions.ts';
import {
  none,
  numbers,
  pageLink,
  shownCount,
  shownTime,
  shownVersion,
  table,
} from '../admin/dashboard/html.ts';
import type { PageDefinition } from '../admin/dashboard/page.ts';
import { readCollection } from './page-parameters.ts';
import type { Html } from './shown-text.ts';

export const versionsPage: PageDefinition = {
  label: 'Versions',
  collections: 'served',
  takes: {},
  async render(context) {
    const { served, readModel } = context.sources;
    const its = readCollection(context, served);
    const { name } = its.collection;
    const { version: live } = await readModel.target(its, undefined);
    const kept = await readModel.keptVersions(its);
    const body = html`${comparisonForm(name, kept, [kept[1]?.version, kept[0]?.version])}
${table(
  `Kept versions of ${name}, latest first`,
  ['Version', 'Became live', 'Content of', numbers('Records'), 'Checksum', 'Compare'],
  kept.map(({ version, publishedAt, totalCount, checksum, forced, ...its }, n) => {
    const content = contentOf(its);
    const before = kept[n + 1]?.version;
    return [
      html`<a href="${pageLink('browse', { collection: name, version })}">${shownVersion(version)}</a>${
        version === live.version ? html` <span class="badge published">live</span>` : ''
      }${forced ? ' forced' : ''}`,
      shownTime(publishedAt),
      content === version ? 'its own' : shownVersion(content),
      shownCount(totalCount),
      html`<code>${checksum.slice(0, 12)}</code>`,
      before === undefined
        ? none
        : html`<a href="${pageLink('diff', { collection: name, from: before, to: version })}">with ${before}</a>`,
    ];
  }),
)}`;
    return { title: `Versions of ${name}`, collection: name, body };
  },
};

/** Two lists of versions to choose from; nothing where there is but one. @param kept latest first */
export function comparisonForm(
  collection: string,
  kept: readonly Version[],
  [from, to]: readonly [from: number | undefined, to: number | undefined],
): Html | '' {
  if (kept.length < 2) return '';
  const choice = (name: string, label: string, chosen: number | undefined) => html`<label>${label}
<select name="${name}">${kept.map(
    ({ version }) =>
      html`<option value="${version}"${version === chosen ? raw(' selected') : ''}>${version}</option>`,
  )}</select></label>`;
  return html`<form action="diff" method="get" class="asks" aria-label="Compare two versions">
<input type="hidden" name="collection" value="${collection}">
${choice('from', 'From version', from)} ${choice('to', 'to version', to)}
<button>Compare</button></form>`;
}
