// What a process that serves counts of itself and of what it serves, for Prometheus (prom-client).

import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { ServedCollection } from '../../shared/collections/collection.ts';
import type { Version } from '../../shared/versions.ts';
import type { AnsweredRequest } from '../answers/traced-response.ts';
import type { ReadModel } from '../reads/read-model.ts';
import { type TroubleCause, troubleCauses } from '../reads/trouble.ts';
import { requestMetrics } from './request-metrics.ts';

/** The metrics of one process. */
export interface Metrics {
  readonly registry: Registry;
  /** Counts one request as its answer ends. */
  countRequest(request: AnsweredRequest): void;
  /** Counts one read that met something in Redis that is not as it was stored. */
  countDamage(): void;
  /** Counts one answer of 500 or 503. */
  countUnavailable(cause: TroubleCause): void;
  /** Counts one answer of 401. */
  countUnauthorized(): void;
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
  const unavailable = new Counter({
    name: 'medref_unavailable_total',
    help: 'Answers of 500 and 503, by their cause; the log says more.',
    labelNames: ['cause'],
    registers: [registry],
  });
  // There from the start, so that the first one shows as an increase.
  for (const cause of troubleCauses) unavailable.inc({ cause }, 0);
  const unauthorized = new Counter({
    name: 'medref_unauthorized_total',
    help: 'Answers of 401: requests without a valid key.',
    registers: [registry],
  });
  return {
    registry,
    countRequest: requestMetrics(registry),
    countDamage: () => damage.inc(),
    countUnavailable: (cause) => unavailable.inc({ cause }),
    countUnauthorized: () => unauthorized.inc(),
  };
}

/** Adds which versions are live; a scrape while Redis is away has none. */
export function addVersionMetrics(
  { registry }: Metrics,
  collections: readonly ServedCollection[],
  readModel: ReadModel,
): void {
  let asking: ReturnType<ReadModel['liveVersions']> | undefined;
  /** Asks once for all gauges of a scrape. */
  const ask = () => {
    asking ??= readModel
      .liveVersions(collections)
      .catch(() => new Map<string, null>())
      .finally(() => {
        asking = undefined;
      });
    return asking;
  };
  const gauge = (name: string, help: string, figureOf: (version: Version) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['collection'],
      registers: [registry],
      // Each sets itself: what one of them sets in another is not seen before the next scrape.
      async collect() {
        const live = await ask();
        this.reset();
        for (const [collection, version] of live) if (version) this.set({ collection }, figureOf(version));
      },
    });
  gauge('medref_live_records', 'Records of the live version.', ({ totalCount }) => totalCount);
  gauge('medref_live_version', 'Number of the live version.', ({ version }) => version);
}
