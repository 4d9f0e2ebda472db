// Measures in rounds: the sides of a comparison take turns in a new order each round, so that a disturbance affects all.

import type { Workspace } from './workspace.ts';

/** One run of the bench. */
export interface Run {
  readonly workspace: Workspace;
  readonly rounds: number;
  /** Whether to check only that everything works. */
  readonly quick: boolean;
  say(progress: string): void;
}

/** Measures each side once per round. @returns the samples by side */
export async function inRounds<Side extends string, Sample>(
  rounds: number,
  sides: Readonly<Record<Side, () => Promise<Sample>>>,
): Promise<Record<Side, Sample[]>> {
  const names = Object.keys(sides) as Side[];
  const samples = Object.fromEntries(names.map((name) => [name, [] as Sample[]])) as Record<Side, Sample[]>;
  for (let round = 0; round < rounds; round += 1)
    for (let n = 0; n < names.length; n += 1) {
      const name = names[(n + round) % names.length] as Side;
      samples[name].push(await sides[name]());
    }
  return samples;
}

/** Returns the middle value, or the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return ((sorted[(sorted.length - 1) >> 1] as number) + (sorted[sorted.length >> 1] as number)) / 2;
}

/** Returns the value below which a share of the sorted values lies (nearest rank). */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.max(1, Math.ceil(share * sorted.length)) - 1] as number;
}

/** Writes a median and, if there are several values, the minimum and maximum. */
export function spread(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return values.length === 1
    ? shown(median(values))
    : `**${shown(median(values))}** (${shown(least)} to ${shown(most)})`;
}

/** Writes a number with three significant digits. */
export function shown(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** A table of the page. */
export interface Table {
  /** One or two sentences. */
  readonly text: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Writes a table as Markdown. */
export function tableText({ text, head, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [text, '', line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line), ''].join('\n');
}
