// What a check is: a rule that a staged version must pass to be published.

import type { LiveVersion } from '../../shared/versions.ts';
import type { DiffCounts } from '../publishing/compare-versions.ts';
import type { StagedVersion } from '../writing/version-writer.ts';

/** What a check judges. */
export interface Candidate {
  readonly staged: StagedVersion;
  readonly live: LiveVersion | null;
  readonly diff: DiffCounts;
  /** Whether this content was rolled back from. */
  readonly undone: boolean;
  readonly maxShrinkPercent: number;
  readonly maxRejectPercent: number;
  readonly maxChangePercent: number;
}

/** One rule. */
export interface Check {
  readonly name: string;
  /** Whether `--force` passes over it. */
  readonly forceable: boolean;
  /** Why the candidate is refused, as a sentence with its figures; `null` when it passes. */
  readonly refusal: (candidate: Candidate) => string | null;
}

/** Whether a part is more than so many percent of the whole; a figure exactly at the limit is not, however it is written. */
export function exceeds(part: number, whole: number, percent: number): boolean {
  return part * 100 > percent * whole * (1 + 1e-12);
}

/** A percentage with one decimal; with more where one would not show that it exceeds a limit. */
export function percentText(percent: number, limit: number): string {
  let decimals = 1;
  while (decimals < maxDecimals && Number(percent.toFixed(decimals)) <= limit && percent > limit)
    decimals += 1;
  return `${percent.toFixed(decimals)} %`;
}

const maxDecimals = 10;
