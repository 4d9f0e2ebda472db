// The metrics of a process that serves, and their sum over several processes, for Prometheus (prom-client).

import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';
import { type ServiceErrorCause, serviceErrorCauses } from '../errors.ts';
import type { CompletedRequest } from '../http.ts';
import { collectionMetrics, type ReadStates } from './collection-metrics.ts';

/** Upper ends of the buckets of round trips and of requests, in s. */
const roundTripBuckets = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 2];
const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

/** The first clients get a series of their own, the others share one: a series for every name would have no limit. */
const maxClients = 100;

/** The label of requests without a route, a valid key, or a response. */
const none = 'none';

/** The metrics of one process. */
export interface Metrics {
  readonly registry: Registry;
  /** Counts one request when its response ends. */
  countRequest(request: CompletedRequest): void;
  /** Records the round trip of a Redis command, in ms. */
  timeRedis(ms: number): void;
  /** Adds the gauges of the collections. */
  addCollections(read: ReadStates): void;
  /** Adds the number of requests that wait for a publication. */
  addWaiting(count: () => number): void;
  /** Counts one read that found damage in Redis. */
  countDamage(): void;
  /** Counts one response of 500 or 503. */
  countUnavailable(cause: ServiceErrorCause): void;
  /** Counts requests whose rate Redis could not count, once for each turn of the event loop. */
  countUncounted(): void;
  /** Counts one response of 401. */
  countUnauthorized(): void;
}

/** Creates the metrics of a process. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const damage = new Counter({
    name: 'medref_damaged_reads_total',
    help: 'Reads that found damage in Redis; the log has the details.',
    registers,
  });
  const unavailable = new Counter({
    name: 'medref_unavailable_total',
    help: 'Responses of 500 and 503 by cause; the log has the details.',
    labelNames: ['cause'],
    registers,
  });
  // Each series exists from the start, so the first response shows as an increase.
  for (const cause of serviceErrorCauses) unavailable.inc({ cause }, 0);
  const unauthorized = new Counter({
    name: 'medref_unauthorized_total',
    help: 'Responses of 401: requests without a valid key.',
    registers,
  });
  const uncounted = new Counter({
    name: 'medref_uncounted_rates_total',
    help: 'Times that Redis refused to count requests against the rate of their key; they were allowed.',
    registers,
  });
  const roundTrips = new Histogram({
    name: 'medref_redis_round_trip_seconds',
    help: 'Time from a Redis command to its reply, for one command in eight.',
    buckets: roundTripBuckets,
    registers,
  });
  return {
    registry,
    countRequest: requestMetrics(registry),
    timeRedis: (ms) => roundTrips.observe(ms / 1000),
    addCollections: (read) => collectionMetrics(registry, read),
    addWaiting: (count) => {
      new Gauge({
        name: 'medref_waiting_requests',
        help: 'Requests that wait for a publication (wait=). At a limit, further requests get 503.',
        registers,
        collect() {
          this.set(count());
        },
      });
    },
    countDamage: () => damage.inc(),
    countUnavailable: (cause) => unavailable.inc({ cause }),
    countUncounted: () => uncounted.inc(),
    countUnauthorized: () => unauthorized.inc(),
  };
}

/** Registers the metrics of requests. @returns a function that counts a request when its response ends */
export function requestMetrics(registry: Registry): (request: CompletedRequest) => void {
  const registers = [registry];
  const requests = new Counter({
    name: 'medref_http_requests_total',
    help: 'Requests of the data listener by route and status.',
    labelNames: ['route', 'status'],
    registers,
  });
  const byClient = new Counter({
    name: 'medref_http_client_requests_total',
    help: 'Requests of the data listener by client, as named by its key, and status.',
    labelNames: ['client', 'status'],
    registers,
  });
  const duration = new Histogram({
    name: 'medref_http_request_duration_seconds',
    help: 'Time from the head of a request to the start of its response, by route.',
    labelNames: ['route'],
    buckets: requestBuckets,
    registers,
  });
  const bytes = new Counter({
    name: 'medref_http_response_bytes_total',
    help: 'Bytes of response bodies as sent, by route.',
    labelNames: ['route'],
    registers,
  });
  const cut = new Counter({
    name: 'medref_http_truncated_responses_total',
    help: 'Responses that ended early: the client disconnected or stopped reading, or the list could not go on.',
    registers,
  });
  const clients = new Set<string>();
  const labelOf = (client: string | null) => {
    if (client === null || clients.has(client)) return client ?? none;
    if (clients.size >= maxClients) return 'other';
    clients.add(client);
    return client;
  };
  return (request) => {
    const route = request.route ?? none;
    const status = String(request.status ?? none);
    requests.inc({ route, status });
    byClient.inc({ client: labelOf(request.client), status });
    if (request.beganMs !== null) duration.observe({ route }, request.beganMs / 1000);
    if (request.bytes > 0) bytes.inc({ route }, request.bytes);
    if (!request.isWhole) cut.inc();
  };
}

/** The metrics of one process as processes exchange them. */
export type MetricValues = MetricObjectWithValues<MetricValue<string>>[];

/** The metrics of processes that serve together. The counts of an ended process stay, so that no counter falls. */
export class WorkerMetrics implements Pick<Registry, 'contentType' | 'metrics'> {
  readonly contentType: Registry['contentType'];
  readonly #own: Registry;
  readonly #collect: () => Promise<void>;
  readonly #last = new Map<number, MetricValues>();
  #ended: MetricValues = [];

  /**
   * @param own the metrics of this process
   * @param collect asks the other processes; the last values stay for a process that does not reply in time
   */
  constructor(own: Registry, collect: () => Promise<void>) {
    this.contentType = own.contentType;
    this.#own = own;
    this.#collect = collect;
  }

  /** Stores the metrics of a process. */
  set(worker: number, values: MetricValues): void {
    this.#last.set(worker, values);
  }

  /** Keeps the counts of a process that has ended, and forgets its gauges. */
  end(worker: number): void {
    const last = this.#last.get(worker);
    if (!last) return;
    this.#last.delete(worker);
    const counts = last.filter(({ type }) => ['counter', 'histogram'].includes(String(type)));
    // At once, not by getMetricsAsJSON: a scrape in between would miss the counts.
    const sum = AggregatorRegistry.aggregate([this.#ended, counts]).getMetricsAsArray();
    this.#ended = sum as unknown as MetricValues;
  }

  async metrics(): Promise<string> {
    await this.#collect();
    const own = (await this.#own.getMetricsAsJSON()) as MetricValues;
    const all = [own, this.#ended, ...this.#last.values()].map(withSlowestLag);
    return AggregatorRegistry.aggregate(all).metrics();
  }
}

/** The event-loop lag is the slowest process's: idle processes would hide it in a mean. */
function withSlowestLag(values: MetricValues): MetricValues {
  return values.map((it) =>
    it.name.startsWith('nodejs_eventloop_lag_') ? { ...it, aggregator: 'max' as const } : it,
  );
}
