// The imports of a collection, and the report of one import.

import Boom from '@hapi/boom';
import { html } from 'hono/html';
import {
  candidateCommands,
  lastEnded,
  nextCommands,
  resumeCommands,
} from '../../../shared/collection-status.ts';
import {
  byText,
  causeText,
  type HistoryEntry,
  historyCap,
  type ImportOutcome,
  importId,
  isPublication,
  type PastImport,
  readHistory,
  readImport,
} from '../../../shared/import-history.ts';
import { collectionKeys } from '../../../shared/store/keys.ts';
import { isWrong, parameter, required } from '../../query.ts';
import {
  commands,
  facts,
  type Html,
  none,
  numbers,
  pageLink,
  sentenceLength,
  shownCount,
  shownDuration,
  shownText,
  shownTime,
  shownVersion,
  table,
} from './html.ts';
import { definePage } from './page.ts';

export const importsPage = definePage({
  label: 'Imports',
  collections: 'imported',
  parameters: {},
  async render(context) {
    const { redis, keyPrefix } = context.sources;
    const { source } = context.served;
    const { name } = source;
    const history = await readHistory(redis, collectionKeys(keyPrefix, source), historyCap);
    const body =
      history.length === 0
        ? html`<p>No import of ${name} has ended yet. Run <code>medref import ${name}</code>.</p>`
        : importTable(name, history);
    return { title: `Imports of ${name}`, collection: name, body };
  },
});

function importTable(collection: string, history: readonly PastImport[]): Html {
  return table(
    `Last imports of ${collection}, latest first`,
    [
      ...['Ended', 'Outcome', 'Version'],
      ...['Read', 'Rejected', 'Added', 'Changed', 'Removed', 'Duration'].map(numbers),
    ],
    history.map((report) => [
      html`<a href="${pageLink('import', { collection, id: report.id })}">${shownTime(report.endedAt)}</a>`,
      html`${outcomeBadge(report.outcome)}${report.forced ? ' forced' : ''}`,
      report.version === null ? none : shownVersion(report.version),
      ...[report.read, report.rejected].map(shownCount),
      ...[report.added, report.changed, report.removed].map((it) =>
        isPublication(report.outcome) ? shownCount(it) : none,
      ),
      shownDuration(report.durationMs),
    ]),
  );
}

const idParameter = parameter('an id from the list of imports, such as 1795316405123-0', (text) =>
  importId.test(text) ? text : isWrong(text),
);

export const importPage = definePage({
  parent: 'imports',
  collections: 'imported',
  parameters: { id: required(idParameter) },
  async render(context) {
    const { redis, keyPrefix } = context.sources;
    const { source } = context.served;
    const { id } = context.query.values;
    const keys = collectionKeys(keyPrefix, source);
    const report = await readImport(redis, keys, id);
    if (report === null) throw Boom.notFound();
    const isLast = lastEnded(await readHistory(redis, keys, historyCap))?.id === id;
    return { title: `Import of ${source.name}`, collection: source.name, body: reportBody(report, isLast) };
  },
});

/** @param isLast whether no later import has ended */
function reportBody(report: HistoryEntry, isLast: boolean): Html {
  const {
    collection,
    outcome,
    version,
    previousVersion,
    reason,
    causes = [],
    despite = [],
    warnings,
  } = report;
  const isLive = outcome !== 'candidate';
  const versionLink = (number: number | null) =>
    number === null
      ? none
      : html`<a href="${pageLink('browse', { collection, version: number })}">${number}</a>`;
  const hasChanged = isLive && version !== null && previousVersion !== null && version !== previousVersion;
  return html`${facts([
    ['Outcome', html`${outcomeBadge(report.outcome)}${report.forced ? ' in spite of its checks' : ''}`],
    ['Reason', reason === null ? none : shownText(reason, sentenceLength)],
    ...(despite.length > 0 ? [['Published despite', despite.join(', ')] as const] : []),
    ['By', report.by ? shownText(byText(report).slice('by '.length), sentenceLength) : none],
    ['Started', shownTime(report.startedAt)],
    ['Ended', shownTime(report.endedAt)],
    ['Duration', shownDuration(report.durationMs)],
    ['Live version', versionLink(isLive ? version : previousVersion)],
    ...(report.candidate
      ? [
          [
            'Candidate',
            html`<a href="${pageLink('candidate', { collection })}">${report.candidate}</a>`,
          ] as const,
        ]
      : []),
    ['Live before', versionLink(previousVersion)],
  ])}
<h2>Records</h2>
${facts([
  ['Read', shownCount(report.read)],
  ['Valid', shownCount(report.written)],
  ['Rejected', shownCount(report.rejected)],
  [isPublication(report.outcome) ? 'Added' : 'Would be added', shownCount(report.added)],
  [isPublication(report.outcome) ? 'Changed' : 'Would be changed', shownCount(report.changed)],
  [isPublication(report.outcome) ? 'Removed' : 'Would be removed', shownCount(report.removed)],
])}
${causes.length === 0 ? '' : html`<ul>${causes.map((it) => html`<li>${shownText(causeText(it), sentenceLength)}</li>`)}</ul>`}
${
  hasChanged
    ? html`<p><a href="${pageLink('diff', { collection, from: previousVersion, to: version })}">Compare the two versions</a></p>`
    : ''
}
<h2>${warnings.length === 0 ? 'No warnings' : 'Warnings'}</h2>
<ul>${warnings.map((warning) => html`<li>${shownText(warning, sentenceLength)}</li>`)}</ul>
${isLast ? nextSteps(report) : ''}
<p>The page <a href="${pageLink('rejects', { collection })}">Rejects of ${collection}</a> shows the last import that read records.</p>`;
}

/** Returns an outcome as a coloured word. */
export function outcomeBadge(outcome: ImportOutcome): Html {
  const coloured = ['published', 'unchanged', 'refused', 'failed'];
  return html`<span class="badge ${coloured.includes(outcome) ? outcome : 'otherwise'}">${outcome}</span>`;
}

/** Returns the commands that an operator runs after the last import, if any. */
export function nextSteps(report: HistoryEntry): Html | '' {
  const { collection, outcome, candidate = null, reason } = report;
  const isPaused = outcome === 'paused' || outcome === 'rolled-back';
  const next = isPaused ? resumeCommands(collection) : nextCommands(report);
  if (candidate) next.push(...candidateCommands(collection, { version: candidate, reason }));
  if (next.length === 0) return '';
  return html`<section aria-labelledby="next"><h2 id="next">Next steps</h2>${commands(next)}</section>`;
}
