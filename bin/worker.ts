// One process of several that serve behind one port: what it is told by the process that started it, and what it tells.

import cluster from 'node:cluster';
import type { Counted } from '../api/admin/gathered-metrics.ts';

/** What a worker is told: to end in order, or to tell what it counts. */
export type Order = 'stop' | 'count';

/** What a worker tells: where it answers, from then on; what it counts. */
export type Report = { readonly answersAt: string } | { readonly counted: Counted };

/** Whether this process was started to serve together with others. */
export function isWorker(): boolean {
  return cluster.isWorker;
}

/** The process that started this one. */
export interface Primary {
  /** Is aborted when the primary asks this process to stop, or somebody else does. */
  readonly signal: AbortSignal;
  tell(report: Report): Promise<void>;
  /** Lets go of it, so that this process can end. */
  leave(): void;
}

/**
 * Listens to the process that started this one. Where that has died, this one ends at once: Node sees to that.
 * @param stopSignal aborted where this process itself is asked to stop, as all of a group or of a unit are
 * @param count what is told when it is asked for
 */
export function joinPrimary(stopSignal: AbortSignal, count: () => Promise<Counted>): Primary {
  const told = new AbortController();
  const tell = (report: Report) =>
    // Nobody is there to be told of an error: the primary is gone.
    new Promise<void>((resolve) => process.send?.(report, undefined, undefined, () => resolve()));
  process.on('message', (order: Order) => {
    if (order === 'stop') told.abort(new Error('It was stopped by the process that started it.'));
    else count().then((counted) => tell({ counted }));
  });
  // It asks the primary to replace all workers; it would end one that does not know it.
  process.on('SIGUSR2', () => undefined);
  return {
    ...{ signal: AbortSignal.any([stopSignal, told.signal]), tell },
    leave: () => void cluster.worker?.disconnect(),
  };
}
