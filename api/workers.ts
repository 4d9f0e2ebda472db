// Several API processes on one port (node:cluster): the primary starts, restarts and stops them.

import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { MetricValues } from './admin/metrics.ts';

/** A worker that has not ended this long after the order to stop is killed, in ms; its last responses may take 10 s. */
export const workerStopMs = 13_000;

/** A worker that does not serve this long after its start is killed, in ms. */
const defaultStartMs = 30_000;

/** How long a scrape waits for the metrics of the workers, in ms. */
const metricsMs = 1_000;

/** A worker with a shorter life than this has ended early, in ms. */
const earlyMs = 60_000;

/** Pauses before workers that end early are restarted, in ms: they double up to the longest. */
const pauses = { first: 1_000, longest: 60_000 };

/** An order from the primary to a worker. */
type Order = 'stop' | 'report metrics';

/** A report of a worker: its address, once; its metrics, on request and at its end. */
type Report = { readonly address: string } | { readonly metrics: MetricValues };

export interface WorkerPoolOptions {
  readonly count: number;
  readonly logger: Logger;
  /** No worker is restarted after this signal. */
  readonly signal: AbortSignal;
  readonly startMs?: number;
  readonly stopMs?: number;
  readonly onMetrics: (worker: number, metrics: MetricValues) => void;
  readonly onExit: (worker: number) => void;
}

/** One run of a worker. */
interface Run {
  readonly worker: Worker;
  readonly startedAt: number;
  /** The address at which it serves; `null` if it ended before. */
  readonly address: Promise<string | null>;
  /** Its exit code, after its last report was received. */
  readonly exited: Promise<number>;
}

/** The workers of one process, which serves no data itself. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #running = new Set<Run>();
  #stopping: Promise<void> | undefined;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  /**
   * Starts the first worker, then all others, so that a common error is reported once.
   * @returns the address, or the exit code of a worker that could not start
   */
  async start(): Promise<{ readonly address: string } | { readonly code: number }> {
    const { count, signal } = this.#options;
    const first = this.#run();
    const address = await first.address;
    if (address === null) return { code: await first.exited };
    const others = Array.from({ length: signal.aborted ? 0 : count - 1 }, () => this.#run());
    for (const run of others) if ((await run.address) === null) return { code: await run.exited };
    for (const run of [first, ...others]) this.#keepRunning(run);
    return { address };
  }

  /** Collects the metrics of the workers, for at most one second. */
  async collectMetrics(): Promise<void> {
    const signal = AbortSignal.timeout(metricsMs);
    const reports = [...this.#running].map(({ worker }) => {
      tell(worker, 'report metrics');
      return once(worker, 'message', { signal });
    });
    await Promise.allSettled(reports);
  }

  /** Stops all workers gracefully. A second call has no further effect. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const { stopMs = workerStopMs } = this.#options;
    const stopped = [...this.#running].map(({ worker, exited }) => {
      tell(worker, 'stop');
      this.#killAfter(stopMs, worker, exited, 'An API process did not end in time; killing it.');
      return exited;
    });
    await Promise.all(stopped);
  }

  #run(): Run {
    const { startMs = defaultStartMs, onMetrics, onExit } = this.#options;
    const worker = cluster.fork();
    // Its last report may arrive after its exit.
    const exited = Promise.all([once(worker, 'exit'), once(worker, 'disconnect')]).then(
      ([[code]]) => code ?? 1,
    );
    const serves = new Promise<string>((resolve) => {
      worker.on('message', (report: Report) => {
        if ('address' in report) resolve(report.address);
        else onMetrics(worker.id, report.metrics);
      });
    });
    const address = Promise.race([serves, exited.then(() => null)]);
    const run: Run = { worker, startedAt: performance.now(), address, exited };
    this.#running.add(run);
    exited.then(() => {
      this.#running.delete(run);
      onExit(worker.id);
    });
    this.#killAfter(startMs, worker, address, 'An API process did not start to serve in time; killing it.');
    return run;
  }

  /** Restarts a worker each time it ends; after a pause if it ended early twice. */
  async #keepRunning(first: Run): Promise<void> {
    const { logger, signal } = this.#options;
    for (let run = first, early = 0; ; run = this.#run()) {
      await run.exited;
      if (signal.aborted) return;
      early = performance.now() - run.startedAt < earlyMs ? early + 1 : 1;
      const pauseMs = early < 2 ? 0 : Math.min(pauses.first * 2 ** (early - 2), pauses.longest);
      const { pid, exitCode, signalCode } = run.worker.process;
      logger.error(
        { worker: pid, code: exitCode, signal: signalCode, pauseMs },
        'An API process has ended; starting a new one.',
      );
      await sleep(pauseMs, null, { signal }).catch(() => undefined);
      if (signal.aborted) return;
    }
  }

  #killAfter(ms: number, { process }: Worker, unless: Promise<unknown>, message: string): void {
    const timer = setTimeout(() => {
      this.#options.logger.error({ worker: process.pid }, message);
      process.kill('SIGKILL');
    }, ms);
    unless.then(() => clearTimeout(timer));
  }
}

/** Sends an order to a worker. If the worker is gone, its end is noticed elsewhere. */
function tell(worker: Worker, order: Order): void {
  if (worker.isConnected()) worker.send(order, () => undefined);
}

/** Returns whether this process is a worker. */
export function isWorker(): boolean {
  return cluster.isWorker;
}

/** The process that started this worker. If it dies, Node ends this one at once. */
export interface Primary {
  /** Is aborted when the primary asks this process to stop. */
  readonly signal: AbortSignal;
  report(report: Report): Promise<void>;
  /** Disconnects from it, so that this process can end. */
  leave(): void;
}

/** Connects this worker to its primary. @param metrics returns the metrics on request */
export function joinPrimary(metrics: () => Promise<MetricValues>): Primary {
  const stopping = new AbortController();
  const report = (report: Report) =>
    // An error means that the primary is gone.
    new Promise<void>((resolve) => process.send?.(report, undefined, undefined, () => resolve()));
  process.on('message', (order: Order) => {
    if (order === 'stop') stopping.abort(new Error('Stopped by the process that started it.'));
    else metrics().then((metrics) => report({ metrics }));
  });
  return { signal: stopping.signal, report, leave: () => void cluster.worker?.disconnect() };
}
