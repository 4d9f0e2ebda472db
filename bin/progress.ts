// In: how far an import has come. Out: a line on a terminal that keeps up; elsewhere a line of the log now and then.

import type { ImportProgress } from '../importer/import.ts';
import { age, count, counted } from '../shared/figures.ts';
import type { Logger } from './logger.ts';
import type { CommandContext } from './surroundings.ts';

/** Shows progress. */
export interface Progress {
  show(progress: ImportProgress): void;
  /** Takes the line on the terminal away again. */
  clear(): void;
}

/** Where it is shown. */
export interface ProgressPlaces {
  readonly stderr: CommandContext['stderr'];
  readonly logger: Logger;
  /** How often the log has a line at most, in ms. */
  readonly logEveryMs?: number;
}

/** How often the line on a terminal is written anew at most, in ms. */
const redrawMs = 100;

/** Takes away what stands on the current line of a terminal. */
export const eraseLine = '\r\x1b[K';

/** Progress of one collection's import. */
export function createProgress(
  collection: string,
  { stderr, logger, logEveryMs = 10_000 }: ProgressPlaces,
): Progress {
  const start = performance.now();
  let shownAt = start;
  const everyMs = stderr.isTTY ? redrawMs : logEveryMs;
  const write = (pace: Pace) => {
    // A line that is longer would go on in the next one, which is not taken away again.
    if (stderr.isTTY)
      stderr.write(eraseLine + lineOf(collection, pace).slice(0, stderr.columns || undefined));
    else logger.info({ collection, ...pace }, 'The import goes on.');
  };
  return {
    show: (progress) => {
      const now = performance.now();
      if (now - shownAt < everyMs) return;
      shownAt = now;
      write(paceOf(progress, (now - start) / 1_000));
    },
    clear: () => {
      if (stderr.isTTY && shownAt > start) stderr.write(eraseLine);
    },
  };
}

/** How fast it goes, and how long it will take. */
interface Pace {
  readonly read: number;
  readonly perSecond: number;
  /** Both are absent where it is not known how much there is. */
  readonly percent?: number;
  readonly secondsLeft?: number;
}

function paceOf({ read, arrival }: ImportProgress, seconds: number): Pace {
  const pace = { read, perSecond: Math.round(read / seconds) };
  if (!arrival?.of) return pace;
  const share = arrival.bytes / arrival.of;
  return { ...pace, percent: Math.floor(share * 100), secondsLeft: Math.round(seconds / share - seconds) };
}

const barWidth = 20;

function lineOf(collection: string, { read, perSecond, percent, secondsLeft }: Pace): string {
  const figures = `${counted(read, 'record')}, ${count(perSecond)}/s`;
  if (percent === undefined || secondsLeft === undefined) return `${collection}: ${figures}`;
  const done = '='.repeat(Math.floor((percent * barWidth) / 100)).padEnd(barWidth);
  return `${collection}: [${done}] ${percent} %, ${figures}, ${age(secondsLeft)} left`;
}
