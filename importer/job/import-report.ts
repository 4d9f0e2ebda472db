// The account of one import: what `medref import --json` prints and what the history keeps.

import type { ImportOutcome, ImportReport } from '../../shared/ended-imports.ts';
import { shortened } from '../../shared/shortened.ts';

export type { ImportOutcome, ImportReport } from '../../shared/ended-imports.ts';

/** How much of a reason and of a warning is kept, and how many warnings: the history has a hundred reports. */
const maxSentenceLength = 2_000;
const maxWarnings = 100;

/** A report under way: facts are noted as they become known, and `end` makes the report of them. */
export interface ReportDraft {
  note(facts: Partial<ImportReport>): void;
  /** Adds plain sentences about what is odd but no reason to fail; each is told once. */
  warn(...warnings: string[]): void;
  /** Adds sentences about what was mended: it stays mended where the import starts again. */
  warnOfMended(...warnings: string[]): void;
  /** Forgets what was noted and warned of, since the import starts again and finds it anew. */
  startAgain(): void;
  end(outcome: ImportOutcome, facts?: Partial<ImportReport>): ImportReport;
}

/** Starts the report of an import of a collection now. */
export function startReport(collection: string): ReportDraft {
  const start = performance.now();
  let known: Partial<ImportReport> = {};
  const odd = new Set<string>();
  const mended = new Set<string>();
  let leftOut = 0;
  return {
    note: (facts) => {
      known = { ...known, ...facts };
    },
    warn: (...warnings) => {
      for (const warning of warnings) {
        const sentence = shortened(warning, maxSentenceLength);
        if (odd.size < maxWarnings || odd.has(sentence)) odd.add(sentence);
        else leftOut += 1;
      }
    },
    end: (outcome, facts) => {
      const report: ImportReport = {
        ...{ collection, outcome, version: null, previousVersion: null },
        ...{ read: 0, written: 0, rejected: 0, added: 0, changed: 0, removed: 0 },
        ...{ durationMs: Math.round(performance.now() - start), reason: null },
        warnings: [
          ...mended,
          ...odd,
          ...(leftOut === 0 ? [] : [`${leftOut} further warnings were left out.`]),
        ],
        ...known,
        ...facts,
      };
      return { ...report, reason: report.reason && shortened(report.reason, maxSentenceLength) };
    },
    warnOfMended: (...warnings) => {
      for (const warning of warnings) mended.add(warning);
    },
    startAgain: () => {
      known = {};
      odd.clear();
      leftOut = 0;
    },
  };
}
