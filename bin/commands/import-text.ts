// The report of an import as lines for people.

import type { ImportReport } from '../../importer/report.ts';
import { printable } from '../../shared/escapes.ts';
import { count } from '../../shared/figures.ts';

/** A report as lines for people. */
export function importText(report: ImportReport): string {
  const { collection, outcome, version, previousVersion, reason, warnings } = report;
  const counts = `${count(report.read)} read, ${count(report.written)} written, ${count(report.rejected)} rejected`;
  const diff = `${count(report.added)} added, ${count(report.changed)} changed, ${count(report.removed)} removed`;
  const ended = {
    published: `published as version ${version}${previousVersion ? ` after ${previousVersion}` : ''}: ${counts}; ${diff}`,
    unchanged: `unchanged, version ${version} stays live: ${counts}`,
    refused: `refused, ${previousVersion ? `version ${previousVersion} stays live` : 'nothing is live'}: ${reason} (${counts})`,
    failed: `failed${previousVersion ? `, version ${previousVersion} stays live` : ''}: ${reason}`,
    locked: `not started: ${reason}`,
    held: `left alone: ${reason} "medref resume ${collection}" lifts the hold`,
    'dry-run': `dry run, ${reason === null ? `it would pass: ${counts}; ${diff}` : `it would be refused: ${reason} (${counts}; ${diff})`}`,
    'rolled-back': `rolled back to an older content as version ${version} after ${previousVersion}: ${diff}`,
  }[outcome];
  const lines = [
    `${collection}: ${ended}`,
    ...warnings.map((warning) => `${collection}: warning: ${warning}`),
  ];
  if (report.rejected > 0 && outcome !== 'dry-run')
    lines.push(`${collection}: see "medref rejects ${collection}" for what was rejected`);
  return lines.map(printable).join('\n');
}
