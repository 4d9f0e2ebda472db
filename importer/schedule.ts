// Runs a task on a cron line: on time, never twice at once, and again after a failure. The timer of node-cron would skip runs
// that are due while the process or the machine sleeps.

import { dueTimes } from '../shared/cron.ts';

/** A schedule that runs. */
export interface Schedule {
  /** Returns the time of the next run, a retry included. */
  nextRun(): Date;
  /** Starts a run now, unless one is in progress. */
  runNow(): void;
  /** Starts no more runs, and waits for the one in progress. */
  stop(): Promise<void>;
}

/** How a run ended: for good; failed, to be retried; or locked, because another process runs it. */
export type RunEnd = 'ended' | 'failed' | 'locked';

/** How long a schedule waits before a retry, in ms. */
export interface Waits {
  /** After the first failure; twice as long after each further one. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** While another process holds the lock. */
  readonly lockedMs: number;
}

/** The waits in production. */
export const usualWaits: Waits = Object.freeze({ firstMs: 60_000, longestMs: 3_600_000, lockedMs: 2_000 });

/** A run: when it was due, and how often it has failed since. */
interface Order {
  readonly due: Date;
  readonly failures: number;
}

/** A run that starts this much later than it was due is late, in ms. */
const lateMs = 1_000;

/** A clock that moves back by more than this was wrong; after less, nothing is due again. In ms. */
const wrongClockMs = 60_000;

/** How often the clock is read, in ms: timers stop while a machine sleeps. */
const usuallyLookEveryMs = 20_000;

/**
 * Runs a task each time a cron line is due, in a time zone. If the process or the machine slept over a due time, the task
 * starts once when it wakes (`onLate`). A run is skipped while another is in progress (`onSkipped`). A failed run is retried
 * until it ends or the next one is due (`onRetry`). Tests read the clock more often and wait less.
 */
export function startSchedule({
  cron,
  timezone,
  run,
  onLate,
  onSkipped,
  onRetry,
  lookEveryMs = usuallyLookEveryMs,
  waits = usualWaits,
}: {
  cron: string;
  timezone: string;
  /** Called with the due time, which stays the same for retries. Never rejects. */
  run: (due: Date) => Promise<RunEnd>;
  onLate: (due: Date) => void;
  onSkipped: () => void;
  /** @param tryNumber number of the next attempt: 2 after the first failure */
  onRetry: (at: Date, tryNumber: number) => void;
  lookEveryMs?: number | undefined;
  waits?: Waits | undefined;
}): Schedule {
  const nextDue = dueTimes(cron, timezone);
  let due = nextDue();
  let lookedAt = Date.now();
  let running: Promise<void> | null = null;
  /** The next retry, if it comes before the next due time. */
  let again: (Order & { readonly at: number; readonly waitMs: number }) | null = null;
  let isStopped = false;
  let timer: NodeJS.Timeout;

  const start = (order: Order) => {
    again = null;
    running = run(order.due).then((end) => {
      running = null;
      if (isStopped || end === 'ended') return;
      plan(end === 'failed' ? { ...order, failures: order.failures + 1 } : order, end);
      wait();
    });
  };
  const plan = ({ due: since, failures }: Order, end: 'failed' | 'locked') => {
    const waitMs = end === 'locked' ? waits.lockedMs : waitAfter(failures, waits);
    const at = Date.now() + waitMs;
    if (at >= due.getTime()) return;
    again = { due: since, failures, at, waitMs };
    if (end === 'failed') onRetry(new Date(at), failures + 1);
  };
  const begin = (wasDue: Date, now: number) => {
    if (running) return onSkipped();
    if (now - wasDue.getTime() > lateMs) onLate(wasDue);
    start({ due: wasDue, failures: 0 });
  };
  const look = () => {
    const now = Date.now();
    const wasDue = due;
    const wasWrong = now < lookedAt - wrongClockMs;
    if (now >= wasDue.getTime() || wasWrong) due = nextDue();
    if (again && wasWrong) again = { ...again, at: now + again.waitMs };
    if (now >= wasDue.getTime()) begin(wasDue, now);
    else if (again && now >= again.at) start(again);
    lookedAt = now;
    wait();
  };
  const wait = () => {
    clearTimeout(timer);
    const next = Math.min(due.getTime(), again?.at ?? Number.POSITIVE_INFINITY);
    timer = setTimeout(look, Math.max(0, Math.min(next - Date.now(), lookEveryMs)));
  };
  wait();
  return {
    nextRun: () => (again ? new Date(again.at) : due),
    runNow: () => {
      if (!running && !isStopped) start({ due: new Date(), failures: 0 });
    },
    stop: async () => {
      isStopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}

/** Returns the wait after a number of failures, from 1, in ms. */
function waitAfter(failures: number, { firstMs, longestMs }: Waits): number {
  return Math.min(firstMs * 2 ** (failures - 1), longestMs);
}
