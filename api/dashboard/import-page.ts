// One import: its report, what it warned of, and what to do next.

import Boom from '@hapi/boom';
import { html } from 'hono/html';
import type { HistoryEntry } from '../../shared/ended-imports.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { facts, none, pageLink, shownCount, shownDuration, shownTime } from '../admin/dashboard/html.ts';
import type { PageDefinition } from '../admin/dashboard/page.ts';
import { pastImportId, readPastImport } from '../reads/past-imports.ts';
import { badParameter, missingParameter } from '../requests/parameters.ts';
import { nextSteps, outcomeBadge } from './import-words.ts';
import { importedOf, readCollection } from './page-parameters.ts';
import { type Html, shownText } from './shown-text.ts';

/** Reasons and warnings have no more than this. */
const sentenceLength = 2_000;

const idTakes = 'what the list of imports links to, such as 1795316405123-0';

export const importPage: PageDefinition = {
  within: 'imports',
  collections: 'imported',
  takes: { id: idTakes },
  async render(context) {
    const { redis, keyPrefix, served } = context.sources;
    const { source } = readCollection(context, importedOf(served));
    const id = context.parameters.get('id');
    if (id === undefined) throw missingParameter('id', idTakes);
    if (!pastImportId.test(id)) throw badParameter('id', `is ${JSON.stringify(id)}`, idTakes);
    const found = await readPastImport(redis, collectionKeys(keyPrefix, source), id);
    if (!found) throw Boom.notFound();
    return { title: `An import of ${source.name}`, collection: source.name, body: reportBody(found.report) };
  },
};

function reportBody(report: HistoryEntry): Html {
  const { collection, version, previousVersion, reason, warnings } = report;
  const versionLink = (number: number | null) =>
    number === null
      ? none
      : html`<a href="${pageLink('browse', { collection, version: number })}">${number}</a>`;
  const isOther = version !== null && previousVersion !== null && version !== previousVersion;
  return html`${facts([
    ['Outcome', html`${outcomeBadge(report.outcome)}${report.forced ? ' forced past the checks' : ''}`],
    ['Reason', reason === null ? none : shownText(reason, sentenceLength)],
    ['Began', shownTime(report.startedAt)],
    ['Ended', shownTime(report.endedAt)],
    ['Took', shownDuration(report.durationMs)],
    ['Version that readers get', versionLink(version)],
    ['Live before', versionLink(previousVersion)],
  ])}
<h2>Records</h2>
${facts([
  ['Read', shownCount(report.read)],
  ['Valid', shownCount(report.written)],
  ['Rejected', shownCount(report.rejected)],
  ['Added', shownCount(report.added)],
  ['Changed', shownCount(report.changed)],
  ['Removed', shownCount(report.removed)],
])}
${
  isOther
    ? html`<p><a href="${pageLink('diff', { collection, from: previousVersion, to: version })}">What differs between the two versions</a></p>`
    : ''
}
<h2>${warnings.length === 0 ? 'No warnings' : 'Warnings'}</h2>
<ul>${warnings.map((warning) => html`<li>${shownText(warning, sentenceLength)}</li>`)}</ul>
${nextSteps(report)}
<p>The <a href="${pageLink('rejects', { collection })}">rejects of ${collection}</a> are those of the last import that read anything.</p>`;
}
