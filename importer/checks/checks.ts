// The checks in the order in which they are reported.

import { change } from './change.ts';
import type { Candidate, Check } from './check.ts';
import { elements } from './elements.ts';
import { filled } from './filled.ts';
import { notEmpty } from './not-empty.ts';
import { rejects } from './rejects.ts';
import { rolledBack } from './rolled-back.ts';
import { shrink } from './shrink.ts';

const checks: readonly Check[] = [notEmpty, rejects, shrink, change, filled, elements, rolledBack];

/** Runs every check and gives all refusals, not only the first; none: the candidate may be published. */
export function refusalsOf(candidate: Candidate, { force }: { force: boolean }): string[] {
  return checks
    .filter((check) => !(force && check.forceable))
    .map((check) => check.refusal(candidate))
    .filter((refusal) => refusal !== null);
}
