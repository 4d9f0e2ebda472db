// In: each request that was answered. Out: how many, how fast and how large, by route, by status and by client.

import { Counter, Histogram, type Registry } from 'prom-client';
import type { AnsweredRequest } from '../answers/traced-response.ts';

/** Clients that are told apart, those that came first; a series for each name that there is would have no bound. */
const maxClients = 100;

/** Upper ends of times, in s: a page takes under a millisecond, and no answer begins after more than two seconds. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

/** What a request is counted under that has no route, no valid key, or no answer. */
const none = 'none';

/** Numbers under two labels, added up until a scrape asks for them: a metric's own labels cost a µs for each request. */
class Tally {
  readonly #numbers = new Map<string, Map<string | number, number>>();

  add(first: string, second: string | number, by = 1): void {
    let under = this.#numbers.get(first);
    if (!under) {
      under = new Map();
      this.#numbers.set(first, under);
    }
    under.set(second, (under.get(second) ?? 0) + by);
  }

  /** Hands over what was added since it was last asked. */
  take(into: (first: string, second: string | number, by: number) => void): void {
    for (const [first, under] of this.#numbers) for (const [second, by] of under) into(first, second, by);
    this.#numbers.clear();
  }
}

/** Makes the metrics of requests. @returns what counts a request as its answer ends */
export function requestMetrics(registry: Registry): (request: AnsweredRequest) => void {
  const registers = [registry];
  const [byRoute, ofClients, sent] = [new Tally(), new Tally(), new Tally()];
  new Counter({
    name: 'medref_http_requests_total',
    help: 'Requests of the data listener that were answered, by route and status.',
    labelNames: ['route', 'status'],
    registers,
    collect() {
      byRoute.take((route, status, by) => this.inc({ route, status }, by));
    },
  });
  new Counter({
    name: 'medref_http_client_requests_total',
    help: 'The same by client, that is whom the key was issued to, and status.',
    labelNames: ['client', 'status'],
    registers,
    collect() {
      ofClients.take((client, status, by) => this.inc({ client, status }, by));
    },
  });
  const duration = new Histogram({
    name: 'medref_http_request_duration_seconds',
    help: 'From the arrival of the head of a request to the beginning of its answer, by route.',
    labelNames: ['route'],
    buckets,
    registers,
  });
  new Counter({
    name: 'medref_http_response_bytes_total',
    help: 'Bytes of the bodies of answers, as they were sent, by route.',
    labelNames: ['route'],
    registers,
    collect() {
      sent.take((route, _all, by) => this.inc({ route }, by));
    },
  });
  const cut = new Counter({
    name: 'medref_http_cut_answers_total',
    help: 'Answers that ended before they were whole: the client went, took nothing, or the list could not go on.',
    registers,
  });
  const clients = new Set<string>();
  const labelOf = (client: string | null) => {
    if (client === null) return none;
    if (clients.has(client)) return client;
    if (clients.size >= maxClients) return 'other';
    clients.add(client);
    return client;
  };
  return (it) => {
    const route = it.route ?? none;
    const status = it.status ?? none;
    byRoute.add(route, status);
    ofClients.add(labelOf(it.client), status);
    if (it.beganMs !== null) duration.observe({ route }, it.beganMs / 1000);
    if (it.bytes > 0) sent.add(route, '', it.bytes);
    if (!it.isWhole) cut.inc();
  };
}
