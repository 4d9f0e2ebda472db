// The checks that a staged version must pass before it is published, in the order in which they are reported.

import { rolledBackRefusal } from '../shared/import-history.ts';
import type { LiveVersion } from '../shared/store/versions.ts';
import { count, counted } from '../shared/text.ts';
import type { DiffCounts } from './diff.ts';
import type { StagedVersion } from './stage.ts';

/** The input of the checks. */
export interface Checked {
  readonly staged: StagedVersion;
  readonly live: LiveVersion | null;
  readonly diff: DiffCounts;
  /** Whether an operator rolled back from this content. */
  readonly wasRolledBack: boolean;
  readonly maxShrinkPercent: number;
  readonly maxRejectPercent: number;
  readonly maxChangePercent: number;
}

/** One rule. */
interface Check {
  readonly name: string;
  /** Whether `--force` skips it. */
  readonly forceable: boolean;
  /** Returns why the version is refused; `null` if it passes. */
  readonly refusal: (checked: Checked) => Refusal | null;
}

/** Why a check refuses a version. */
interface Refusal {
  /** A sentence with the numbers. */
  readonly sentence: string;
  /** The figure and its limit, such as `50.0 % > 20 %`; absent if there is none. */
  readonly figures?: string;
}

/** A field with a value in at least this share of the live records is expected to keep it. */
const filledPercent = 95;

export const checks: readonly Check[] = [
  {
    name: 'not-empty',
    forceable: false,
    refusal: ({ staged: { read, written, rejected } }) =>
      written > 0
        ? null
        : { sentence: `Upstream has no valid record: ${count(read)} read, ${count(rejected)} rejected.` },
  },
  {
    name: 'rejects',
    forceable: true,
    refusal: ({ staged: { read, rejected }, maxRejectPercent }) => {
      if (!exceeds(rejected, read, maxRejectPercent)) return null;
      const share = percentText((rejected * 100) / read, maxRejectPercent);
      const sentence =
        `${count(rejected)} of the ${counted(read, 'record')} read ${rejected === 1 ? 'was' : 'were'} rejected (${share}); ` +
        `MAX_REJECT_PERCENT allows ${maxRejectPercent} %.`;
      return { sentence, figures: `${share} > ${maxRejectPercent} %` };
    },
  },
  {
    name: 'shrink',
    forceable: true,
    refusal: ({ diff: { removed }, live, maxShrinkPercent }) => {
      if (!live || !exceeds(removed, live.totalCount, maxShrinkPercent)) return null;
      const share = percentText((removed * 100) / live.totalCount, maxShrinkPercent);
      const sentence =
        `${count(removed)} of the ${count(live.totalCount)} live ids ${removed === 1 ? 'is' : 'are'} absent (${share}); ` +
        `MAX_SHRINK_PERCENT allows ${maxShrinkPercent} %.`;
      return { sentence, figures: `${share} > ${maxShrinkPercent} %` };
    },
  },
  {
    name: 'change',
    forceable: true,
    refusal: ({ diff: { changed, removed }, live, maxChangePercent }) => {
      const staying = (live?.totalCount ?? 0) - removed;
      if (!exceeds(changed, staying, maxChangePercent)) return null;
      const share = percentText((changed * 100) / staying, maxChangePercent);
      const sentence =
        `${count(changed)} of the ${count(staying)} remaining records ${changed === 1 ? 'differs' : 'differ'} (${share}); ` +
        `MAX_CHANGE_PERCENT allows ${maxChangePercent} %.`;
      return { sentence, figures: `${share} > ${maxChangePercent} %` };
    },
  },
  {
    name: 'filled',
    forceable: true,
    refusal: ({ staged, live, maxShrinkPercent }) => {
      if (!live || staged.written === 0) return null;
      const fallen = Object.entries(live.profile.filled).flatMap(([path, count]) => {
        const before = (count * 100) / live.totalCount;
        const now = ((staged.profile.filled[path] ?? 0) * 100) / staged.written;
        if (before < filledPercent || !exceeds(before - now, 100, maxShrinkPercent)) return [];
        const [from, to] = [percentText(before, -1), percentText(now, -1)];
        return [
          {
            path,
            text: `${path} had a value in ${from} of the live records and now has one in ${to}`,
            from,
            to,
          },
        ];
      });
      if (fallen.length === 0) return null;
      const sentence = `${fallen.map(({ text }) => text).join('; ')}; MAX_SHRINK_PERCENT allows a fall of ${maxShrinkPercent} points.`;
      return { sentence, figures: fallen.map(({ path, from, to }) => `${path} ${from} → ${to}`).join(', ') };
    },
  },
  {
    name: 'elements',
    forceable: true,
    refusal: ({ staged, live, maxShrinkPercent }) => {
      const fallen = Object.entries(live?.profile.elements ?? {}).flatMap(([path, before]) => {
        const now = staged.profile.elements[path] ?? 0;
        const lost = before - now;
        if (!exceeds(lost, before, maxShrinkPercent)) return [];
        const share = percentText((lost * 100) / before, maxShrinkPercent);
        const text = `${path} fell from ${counted(before, 'element')} in total to ${count(now)} (by ${share})`;
        return [{ text, figures: `${path} ${share} > ${maxShrinkPercent} %` }];
      });
      if (fallen.length === 0) return null;
      const sentence = `${fallen.map(({ text }) => text).join('; ')}; MAX_SHRINK_PERCENT allows ${maxShrinkPercent} %.`;
      return { sentence, figures: fallen.map(({ figures }) => figures).join(', ') };
    },
  },
  {
    name: 'rolled-back',
    forceable: true,
    refusal: ({ wasRolledBack }) => (wasRolledBack ? { sentence: `${rolledBackRefusal}.` } : null),
  },
];

/**
 * Runs every check.
 * @returns the sentences of the checks that refuse the version, none if it may be published; and the names of the checks that an
 *   operator may overrule, with their figures
 */
export function runChecks(
  checked: Checked,
  { force }: { force: boolean },
): { readonly refusals: readonly string[]; readonly despite: readonly string[] } {
  const refusals: string[] = [];
  const despite: string[] = [];
  for (const { name, forceable, refusal } of checks) {
    const found = refusal(checked);
    if (!found) continue;
    if (forceable) despite.push(found.figures === undefined ? name : `${name} (${found.figures})`);
    if (!force || !forceable) refusals.push(found.sentence);
    // A list without a valid record fails the other checks, too; they would hide the cause.
    if (!forceable) break;
  }
  return { refusals, despite };
}

/** Returns whether a part exceeds a percentage of the whole; a part exactly at the limit does not. */
export function exceeds(part: number, whole: number, percent: number): boolean {
  return part * 100 > percent * whole * (1 + 1e-12);
}

/** Formats a percentage with one decimal, or with more if one decimal would hide that it exceeds a limit. */
export function percentText(percent: number, limit: number): string {
  let decimals = 1;
  while (decimals < maxDecimals && Number(percent.toFixed(decimals)) <= limit && percent > limit)
    decimals += 1;
  return `${percent.toFixed(decimals)} %`;
}

const maxDecimals = 10;
