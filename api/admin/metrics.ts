// What a process that serves counts of itself and of what it serves, for Prometheus (prom-client).

import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { ServedCollection } from '../../shared/collections/collection.ts';
import type { ReadModel } from '../reads/read-model.ts';

/** The metrics of one process. */
export interface Metrics {
  readonly registry: Registry;
  /** Counts one read that met something in Redis that is not as it was stored. */
  countDamage(): void;
}

/** Makes the metrics; those of the read model are asked for when they are read. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const damage = new Counter({
    name: 'medref_damaged_reads_total',
    help: 'Reads that met something in Redis that is not as it was stored; the log says what.',
    registers: [registry],
  });
  return { registry, countDamage: () => damage.inc() };
}

/** Adds which versions are live; a scrape while Redis is away has none. */
export function addVersionMetrics(
  { registry }: Metrics,
  collections: readonly ServedCollection[],
  readModel: ReadModel,
): void {
  const records = new Gauge({
    name: 'medref_live_records',
    help: 'Records of the live version.',
    labelNames: ['collection'],
    registers: [registry],
  });
  new Gauge({
    name: 'medref_live_version',
    help: 'Number of the live version.',
    labelNames: ['collection'],
    registers: [registry],
    async collect() {
      this.reset();
      records.reset();
      const live = await readModel.liveVersions(collections).catch(() => new Map());
      for (const [collection, version] of live) {
        if (!version) continue;
        this.set({ collection }, version.version);
        records.set({ collection }, version.totalCount);
      }
    },
  });
}
