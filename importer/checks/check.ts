// What a check is: a rule that a staged version must pass to be published.

import type { LiveVersion } from '../../shared/versions.ts';
import type { StagedVersion } from '../version-writer.ts';

/** What a check judges. */
export interface Candidate {
  readonly staged: StagedVersion;
  readonly live: LiveVersion | null;
  readonly maxShrinkPercent: number;
  readonly maxRejectPercent: number;
}

/** One rule. */
export interface Check {
  readonly name: string;
  /** Whether `--force` passes over it. */
  readonly forceable: boolean;
  /** Why the candidate is refused, as a sentence with its figures; `null` when it passes. */
  readonly refusal: (candidate: Candidate) => string | null;
}

/** A share in percent, rounded down to what still tells it from the limit it exceeds. */
export function percentText(part: number, whole: number): string {
  return `${Math.round((part / whole) * 10_000) / 100} %`;
}
