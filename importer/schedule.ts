// Runs something on a cron line: on time, never twice at once, and again if it failed. The timer of node-cron would drop runs
// that come due while the process or the machine stands still.

import { dueTimes } from '../shared/cron.ts';

/** A schedule that runs. */
export interface Schedule {
  /** Returns when it is due next. */
  nextRun(): Date;
  /** Runs it now, unless it is running. */
  runNow(): void;
  /** Starts no further run, and waits for the run in progress. */
  stop(): Promise<void>;
}

/** How a run ended: finally; or it failed and is retried; or another process runs it, and it is looked at again. */
export type RunEnd = 'ended' | 'failed' | 'locked';

/** How long a schedule waits before a retry, in ms. */
export interface Waits {
  /** After the first failure; twice as long after each further one. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** While another process runs it. */
  readonly lockedMs: number;
}

/** The waits that are used outside of tests. */
export const usualWaits: Waits = Object.freeze({ firstMs: 60_000, longestMs: 3_600_000, lockedMs: 2_000 });

/** A run: when it was due, and how often it has failed since. */
interface Order {
  readonly due: Date;
  readonly failures: number;
}

/** A run that begins later than this after it was due is late, in ms. */
const lateMs = 1_000;

/** A clock that is put back by more than this was wrong; by less, nothing is due again. In ms. */
const wrongClockMs = 60_000;

/** How often the clock is read, in ms: timers stand still while a machine sleeps. */
const usuallyLookEveryMs = 20_000;

/**
 * Runs something each time a cron line is due, in a time zone. A run that came due while the process or the machine stood
 * still starts as soon as it goes on, once however often it was due (`onLate`). A run that is due while the one before is
 * running is skipped (`onSkipped`). A run that failed is retried until it ends otherwise or is due anyway (`onRetry`). Tests
 * read the clock more often and wait less.
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
  /** Called with the time since which it is due, the same at each retry. Never rejects. */
  run: (due: Date) => Promise<RunEnd>;
  onLate: (due: Date) => void;
  onSkipped: () => void;
  /** @param tryNumber of the next attempt: 2 after the first failure */
  onRetry: (at: Date, tryNumber: number) => void;
  lookEveryMs?: number | undefined;
  waits?: Waits | undefined;
}): Schedule {
  const nextDue = dueTimes(cron, timezone);
  let due = nextDue();
  let lookedAt = Date.now();
  let running: Promise<void> | null = null;
  /** A retry, unless it is due before. */
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
    nextRun: () => due,
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

/** Returns how long to wait after so many failures, from 1, in ms. */
function waitAfter(failures: number, { firstMs, longestMs }: Waits): number {
  return Math.min(firstMs * 2 ** (failures - 1), longestMs);
}
