// In: each request that was answered. Out: how many, how fast and how large, by route, by status and by client.

import { Counter, type Registry } from 'prom-client';
import type { AnsweredRequest } from '../answers/traced-response.ts';
import { talliedHistogram } from './tallied-histogram.ts';

/** Clients that are told apart, those that came first; a series for each name that there is would have no bound. */
const maxClients = 100;

/** Upper ends of times, in s: a page takes under a millisecond, and no answer begins after more than two seconds. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

/** What a request is counted under that has no route, no valid key, or no answer. */
const none = 'none';

/** Makes the metrics of requests. @returns what counts a request as its answer ends */
export function requestMetrics(registry: Registry): (request: AnsweredRequest) => void {
  const registers = [registry];
  const requests = tallied(registry, 'route', {
    name: 'medref_http_requests_total',
    help: 'Requests of the data listener that were answered, by route and status.',
  });
  const byClient = tallied(registry, 'client', {
    name: 'medref_http_client_requests_total',
    help: 'The same by client, that is whom the key was issued to, and status.',
  });
  const duration = talliedHistogram(registry, {
    name: 'medref_http_request_duration_seconds',
    help: 'From the arrival of the head of a request to the beginning of its answer, by route.',
    ...{ label: 'route', buckets },
  });
  const bytes = new Map<string, number>();
  new Counter({
    name: 'medref_http_response_bytes_total',
    help: 'Bytes of the bodies of answers, as they were sent, by route.',
    labelNames: ['route'],
    registers,
    collect() {
      this.reset();
      for (const [route, count] of bytes) this.inc({ route }, count);
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
    requests(route, status);
    byClient(labelOf(it.client), status);
    if (it.beganMs !== null) duration(route, it.beganMs / 1000);
    if (it.bytes > 0) bytes.set(route, (bytes.get(route) ?? 0) + it.bytes);
    if (!it.isWhole) cut.inc();
  };
}

/**
 * Counts by a label and by status, and makes a counter of it when it is scraped: a counter with labels takes several times
 * as long, for each request.
 */
function tallied(
  registry: Registry,
  label: string,
  named: { readonly name: string; readonly help: string },
): (value: string, status: number | string) => void {
  const counts = new Map<string, Map<number | string, number>>();
  new Counter({
    ...{ ...named, labelNames: [label, 'status'], registers: [registry] },
    collect() {
      this.reset();
      for (const [value, byStatus] of counts)
        for (const [status, count] of byStatus) this.inc({ [label]: value, status }, count);
    },
  });
  return (value, status) => {
    const byStatus = counts.get(value) ?? new Map<number | string, number>();
    if (byStatus.size === 0) counts.set(value, byStatus);
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
  };
}
