// What a process that serves counts of itself and of what it serves, for Prometheus (prom-client).

import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { AnsweredRequest } from '../answers/traced-response.ts';
import { type TroubleCause, troubleCauses } from '../reads/trouble.ts';
import { type CollectionMetricsSources, collectionMetrics } from './collection-metrics.ts';
import { requestMetrics } from './request-metrics.ts';
import { talliedHistogram } from './tallied-histogram.ts';

/** Upper ends of round trips, in s. */
const roundTripBuckets = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 2];

/** The metrics of one process. */
export interface Metrics {
  readonly registry: Registry;
  /** Counts one request as its answer ends. */
  countRequest(request: AnsweredRequest): void;
  /** Notes how long Redis took to reply to a command, in ms. */
  timeRedis(ms: number): void;
  /** Adds what each scrape reads from Redis. */
  addCollections(sources: CollectionMetricsSources): void;
  /** Adds how many requests wait for a publication. */
  addWaiting(count: () => number): void;
  /** Counts one read that met something in Redis that is not as it was stored. */
  countDamage(): void;
  /** Counts one answer of 500 or 503. */
  countUnavailable(cause: TroubleCause): void;
  /** Counts requests that Redis could not hold against their rate, once for each turn of the event loop. */
  countUncounted(): void;
  /** Counts one answer of 401. */
  countUnauthorized(): void;
}

/** Makes the metrics; those of the collections are added when there is a connection to read them by. */
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
  const uncounted = new Counter({
    name: 'medref_uncounted_rates_total',
    help: 'Times that Redis refused to count requests against the rate of their key; they were answered.',
    registers: [registry],
  });
  const timeRedis = talliedHistogram(registry, {
    name: 'medref_redis_round_trip_seconds',
    help: 'From a command to Redis to its reply, of one command in eight.',
    buckets: roundTripBuckets,
  });
  return {
    registry,
    timeRedis: (ms) => timeRedis('', ms / 1000),
    addCollections: (sources) => collectionMetrics(registry, sources),
    addWaiting: (count) => waitingMetric(registry, count),
    countRequest: requestMetrics(registry),
    countDamage: () => damage.inc(),
    countUnavailable: (cause) => unavailable.inc({ cause }),
    countUncounted: () => uncounted.inc(),
    countUnauthorized: () => unauthorized.inc(),
  };
}

function waitingMetric(registry: Registry, count: () => number): void {
  new Gauge({
    name: 'medref_waiting_requests',
    help: 'Requests that wait for a publication (wait=). At a bound, further ones are answered with 503.',
    registers: [registry],
    collect() {
      this.set(count());
    },
  });
}
