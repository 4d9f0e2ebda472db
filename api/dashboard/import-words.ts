// How an import ended, in words and as a mark.

import { html, raw } from 'hono/html';
import type { HistoryEntry, ImportOutcome } from '../../shared/ended-imports.ts';
import { commands } from '../admin/dashboard/html.ts';
import { type RunKind, runMark } from '../plots/run-plot.ts';
import type { Html } from './shown-text.ts';

/** What an outcome is to who looks for trouble. */
export function runKindOf(outcome: ImportOutcome): RunKind {
  return outcome === 'published' || outcome === 'unchanged' || outcome === 'refused' || outcome === 'failed'
    ? outcome
    : 'otherwise';
}

/** An outcome as a word that is coloured. */
export function outcomeBadge(outcome: ImportOutcome): Html {
  return html`<span class="badge ${runKindOf(outcome)}">${outcome}</span>`;
}

/** The marks of plots with their words. */
export function markLegend(): Html {
  const words = { published: 'published', unchanged: 'unchanged', refused: 'refused', failed: 'failed' };
  return html`<ul class="legend" aria-label="Marks of the plots">${Object.entries({
    ...words,
    otherwise: 'other outcomes',
  }).map(([kind, word]) => html`<li>${raw(runMark(kind as RunKind))} ${word}</li>`)}</ul>`;
}

/** What an operator does next about an import that ended so; nothing where there is nothing to do. */
export function nextSteps({ collection, outcome, rejected }: HistoryEntry): Html | '' {
  const rejects = rejected > 0 ? [`medref rejects ${collection}`] : [];
  const dryRun = `medref import ${collection} --dry-run`;
  const run: Partial<Record<ImportOutcome, string[]>> = {
    refused: [...rejects, dryRun],
    failed: [`medref import ${collection}`],
    held: [dryRun, `medref resume ${collection}`],
    'rolled-back': [dryRun, `medref resume ${collection}`],
  };
  const next = run[outcome] ?? rejects;
  if (next.length === 0) return '';
  return html`<section aria-labelledby="next"><h2 id="next">What to run next</h2>${commands(next)}
${
  outcome === 'refused'
    ? html`<p>Where upstream is right all the same, <code>medref import ${collection} --force</code> publishes it past the checks.</p>`
    : ''
}</section>`;
}
