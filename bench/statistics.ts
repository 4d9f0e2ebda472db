// In: one number a round. Out: the median and the spread, and whether a target is reached.

/** What is asked of a figure. */
export type Target = { readonly atLeast: number } | { readonly atMost: number };

/** A figure over all rounds. */
export interface Summary {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** The middle one, or the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const [lower, upper] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (lower === undefined || upper === undefined) throw new Error('There is no median of nothing.');
  return (lower + upper) / 2;
}

/** The median, and the least and the most of the rounds: with so few of them, quartiles would say less. */
export function summarize(values: readonly number[]): Summary {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}

/** The value below which this share of the sorted values lies (nearest rank). */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  const rank = Math.max(1, Math.ceil(share * sorted.length));
  const value = sorted[rank - 1];
  if (value === undefined) throw new Error('There is no percentile of nothing.');
  return value;
}

/** Whether a figure is what was asked for. */
export function reaches(target: Target, value: number): boolean {
  return 'atLeast' in target ? value >= target.atLeast : value <= target.atMost;
}
