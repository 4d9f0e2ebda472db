// The imports of a collection: plots of how long they took and what came of them, and a table.

import { html, raw } from 'hono/html';
import type { HistoryEntry } from '../../../shared/ended-imports.ts';
import { collectionKeys } from '../../../shared/store/keys.ts';
import { markLegend, outcomeBadge, runKindOf } from '../../dashboard/import-words.ts';
import { importedOf, readCollection } from '../../dashboard/page-parameters.ts';
import type { Html } from '../../dashboard/shown-text.ts';
import { runPlot } from '../../plots/run-plot.ts';
import { type PastImport, readPastImports } from '../../reads/past-imports.ts';
import {
  none,
  numbers,
  pageLink,
  shownCount,
  shownDuration,
  shownTime,
  shownVersion,
  table,
} from './html.ts';
import type { PageDefinition } from './page.ts';

export const importsPage: PageDefinition = {
  label: 'Imports',
  collections: 'imported',
  takes: {},
  async render(context) {
    const { redis, keyPrefix, served } = context.sources;
    const { source } = readCollection(context, importedOf(served));
    const imports = await readPastImports(redis, collectionKeys(keyPrefix, source));
    const body =
      imports.length === 0
        ? html`<p>No import of ${source.name} has ended yet. Run <code>medref import ${source.name}</code>.</p>`
        : html`${plots(imports.map(({ report }) => report))}${importTable(source.name, imports)}`;
    return { title: `Imports of ${source.name}`, collection: source.name, body };
  },
};

/** How many imports are plotted. */
const maxPlotted = 60;

/** @param reports latest first */
function plots(reports: readonly HistoryEntry[]): Html {
  const shown = reports.slice(0, maxPlotted).reverse();
  const ends = [dayOf(shown[0]), dayOf(shown.at(-1))] as const;
  const plot = (name: string, title: string, figureOf: (report: HistoryEntry) => number | null) => {
    const values = shown.map(figureOf).filter((value) => value !== null);
    const last = values.at(-1);
    return runPlot(
      shown.map((report) => ({
        kind: runKindOf(report.outcome),
        value: figureOf(report),
        label: `${report.outcome}, ${report.endedAt}`,
      })),
      {
        ...{ name, title, ends },
        description:
          last === undefined
            ? 'No import has such a figure. The table below has all figures.'
            : `${shown.length} imports, the latest on the right: from ${Math.min(...values)} to ${Math.max(...values)}, the last one ${last}. The table below has all figures.`,
      },
    );
  };
  const ofRead = (member: 'read' | 'rejected') => (report: HistoryEntry) =>
    report.read > 0 ? report[member] : null;
  return html`<section aria-labelledby="plots"><h2 id="plots">Over time</h2>
${markLegend()}
<div class="plots">${[
    plot('duration', 'Duration, s', ({ durationMs }) => durationMs / 1000),
    plot('records', 'Records read', ofRead('read')),
    plot('rejects', 'Records rejected', ofRead('rejected')),
  ].map((svg) => raw(svg))}</div></section>`;
}

function dayOf(report: HistoryEntry | undefined): string {
  return report?.endedAt.slice(0, 10) ?? '';
}

function importTable(collection: string, imports: readonly PastImport[]): Html {
  return table(
    `The last imports of ${collection}, latest first`,
    [
      ...['Ended', 'Outcome', 'Version'],
      ...['Read', 'Rejected', 'Added', 'Changed', 'Removed', 'Took'].map(numbers),
    ],
    imports.map(({ id, report }) => [
      html`<a href="${pageLink('import', { collection, id })}">${shownTime(report.endedAt)}</a>`,
      html`${outcomeBadge(report.outcome)}${report.forced ? ' forced' : ''}`,
      report.version === null ? none : shownVersion(report.version),
      ...[report.read, report.rejected, report.added, report.changed, report.removed].map(shownCount),
      shownDuration(report.durationMs),
    ]),
  );
}
