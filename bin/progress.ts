// Shows the progress of an import: a line on a terminal that is redrawn, or a line of the log now and then.

import type { Logger } from 'pino';
import type { ImportProgress } from '../importer/import.ts';
import { age, count, counted } from '../shared/format.ts';
import type { CommandContext } from './context.ts';

/** Shows progress. */
export interface Progress {
  show(progress: ImportProgress): void;
  /** Erases the line on the terminal. */
  clear(): void;
}

/** Where it is shown. */
export interface ProgressPlaces {
  readonly stderr: CommandContext['stderr'];
  readonly logger: Logger;
  /** The shortest time between two lines of the log, in ms. */
  readonly logEveryMs?: number;
}

/** The shortest time between two redraws on a terminal, in ms. */
const redrawMs = 100;

/** Erases the current line of a terminal. */
export const eraseLine = '\r\x1b[K';

/** Returns what shows the progress of one collection's import. */
export function createProgress(
  collection: string,
  { stderr, logger, logEveryMs = 10_000 }: ProgressPlaces,
): Progress {
  const start = performance.now();
  let shownAt = start;
  const everyMs = stderr.isTTY ? redrawMs : logEveryMs;
  const write = (pace: Pace) => {
    // A longer line would continue on the next one, which is not erased.
    if (stderr.isTTY)
      stderr.write(eraseLine + lineOf(collection, pace).slice(0, stderr.columns || undefined));
    else logger.info({ collection, ...pace }, 'The import is in progress.');
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

/** How fast it is, and how long it will take. */
interface Pace {
  readonly read: number;
  readonly perSecond: number;
  /** Both are absent if the length is not known. */
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
  const numbers = `${counted(read, 'record')}, ${count(perSecond)}/s`;
  if (percent === undefined || secondsLeft === undefined) return `${collection}: ${numbers}`;
  const done = '='.repeat(Math.floor((percent * barWidth) / 100)).padEnd(barWidth);
  return `${collection}: [${done}] ${percent} %, ${numbers}, ${age(secondsLeft)} left`;
}
