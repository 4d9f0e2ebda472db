// In: a cron line and what to do. Out: it is done on time, never twice at once; the only place that knows node-cron.

import { schedule } from 'node-cron';

/** A schedule that runs. */
export interface Schedule {
  /** When it is due next. */
  nextRun(): Date | null;
  stop(): Promise<void>;
}

/**
 * Does something each time a cron line is due, in a time zone. A run that is due while the one before still goes
 * on is skipped, and `onSkipped` is told.
 */
export function startSchedule({
  cron,
  timezone,
  run,
  onSkipped,
}: {
  cron: string;
  timezone: string;
  run: () => Promise<void>;
  onSkipped: () => void;
}): Schedule {
  const task = schedule(cron, run, { timezone, noOverlap: true, logger: silent });
  task.on('execution:overlap', onSkipped);
  return { nextRun: () => task.getNextRun(), stop: async () => task.destroy() };
}

/** What node-cron would print by itself is told by its events. */
const silent = { info() {}, warn() {}, error() {}, debug() {} };
