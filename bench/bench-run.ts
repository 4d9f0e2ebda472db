// What every row group works with: the options made concrete, the workspace, and a way to say how far it is.

import type { LoadTimes } from './load.ts';
import { realProducts } from './project.ts';
import type { Workspace } from './workspace.ts';

/** A list that grows: so many records, and imports of it one after the other. */
export interface SizeToTry {
  readonly records: number;
  readonly imports: number;
}

/** Bursts of requests whose CPU time is measured. */
interface BurstSizes {
  readonly warmUpMs: number;
  readonly burstMs: number;
  /** How many bursts there are of each kind in a round. */
  readonly roundsEach: number;
}

/** How large and how long. */
export interface Sizes {
  readonly load: LoadTimes;
  readonly share: BurstSizes;
  /** Records of the list whose far pages are asked for. */
  readonly scaleRecords: number;
  /** Records of an import that is timed, and of one whose memory is compared with it. */
  readonly importRecords: number;
  readonly largeImportRecords: number;
  /** From the smallest to the largest. */
  readonly growth: readonly SizeToTry[];
  /** A steady load without an import lasts as long. */
  readonly idleSeconds: number;
}

/** One run of the bench. */
export interface BenchRun {
  readonly workspace: Workspace;
  readonly rounds: number;
  readonly sizes: Sizes;
  /** The real list. */
  readonly list: string;
  say(line: string): void;
}

const full: Sizes = {
  load: { warmUpSeconds: 1, seconds: 3 },
  share: { warmUpMs: 3_000, burstMs: 150, roundsEach: 10 },
  scaleRecords: 1_000_000,
  importRecords: 200_000,
  largeImportRecords: 2_000_000,
  // Fewer of the large ones: each takes minutes, and ten million twice do not fit into 24 GB.
  growth: [
    { records: 1_000_000, imports: 3 },
    { records: 5_000_000, imports: 1 },
    { records: 10_000_000, imports: 1 },
  ],
  idleSeconds: 10,
};

const quick: Sizes = {
  load: { warmUpSeconds: 0, seconds: 1 },
  share: { warmUpMs: 50, burstMs: 20, roundsEach: 1 },
  scaleRecords: 5_000,
  importRecords: 5_000,
  largeImportRecords: 10_000,
  growth: [
    { records: 1_000, imports: 2 },
    { records: 5_000, imports: 1 },
  ],
  idleSeconds: 1,
};

/** The run that was asked for. */
export function benchRun(workspace: Workspace, options: { quick: boolean; rounds: number }): BenchRun {
  return {
    workspace,
    rounds: options.rounds,
    sizes: options.quick ? quick : full,
    list: realProducts,
    say: (line) => process.stderr.write(`bench: ${line}\n`),
  };
}
