// In: what several processes count. Out: all of it as one process would tell it. Counts of a process that has ended stay in the
// sums: a counter never falls.

import {
  AggregatorRegistry,
  type MetricObjectWithValues,
  type MetricValue,
  type Registry,
} from 'prom-client';

/** What one process counts, as the metrics of it are told between processes. */
export type Counted = MetricObjectWithValues<MetricValue<string>>[];

/** The metrics of processes that serve together. */
export class GatheredMetrics implements Pick<Registry, 'contentType' | 'metrics'> {
  readonly contentType: Registry['contentType'];
  readonly #own: Registry;
  readonly #ask: () => Promise<void>;
  readonly #last = new Map<number, Counted>();
  #ended: Counted = [];

  /**
   * @param own those of this process
   * @param ask has each of the others tell what it counts now; whoever does not in time counts as it told last
   */
  constructor(own: Registry, ask: () => Promise<void>) {
    this.contentType = own.contentType;
    this.#own = own;
    this.#ask = ask;
  }

  /** Takes what a process counts, by the number of the process. */
  take(process: number, counted: Counted): void {
    this.#last.set(process, counted);
  }

  /** A process has ended: its counts stay, and what it was at goes. */
  end(process: number): void {
    const last = this.#last.get(process);
    if (!last) return;
    this.#last.delete(process);
    const counts = last.filter(({ type }) => ['counter', 'histogram'].includes(String(type)));
    // What it makes of them has all that they had; to be asked for it, as a registry is, it would take another turn.
    const joined = AggregatorRegistry.aggregate([this.#ended, counts]).getMetricsAsArray();
    this.#ended = joined as unknown as Counted;
  }

  async metrics(): Promise<string> {
    await this.#ask();
    const own = (await this.#own.getMetricsAsJSON()) as Counted;
    return AggregatorRegistry.aggregate(
      [own, this.#ended, ...this.#last.values()].map(byTheSlowest),
    ).metrics();
  }
}

/** How late event loops are is told of the latest one: the mean with idle processes would hide it. */
function byTheSlowest(counted: Counted): Counted {
  return counted.map((it) =>
    it.name.startsWith('nodejs_eventloop_lag_') ? { ...it, aggregator: 'max' as const } : it,
  );
}
