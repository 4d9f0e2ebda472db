// In: each request that was answered. Out: how many, how fast and how large, by route, by status and by client.

import { Counter, Histogram, type Registry } from 'prom-client';
import type { AnsweredRequest } from '../answers/traced-response.ts';

/** Clients that are told apart, those that came first; a series for each name that there is would have no bound. */
const maxClients = 100;

/** Upper ends of times, in s: a page takes under a millisecond, and no answer begins after more than two seconds. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

/** What a request is counted under that has no route, no valid key, or no answer. */
const none = 'none';

/** Makes the metrics of requests. @returns what counts a request as its answer ends */
export function requestMetrics(registry: Registry): (request: AnsweredRequest) => void {
  const registers = [registry];
  const requests = new Counter({
    name: 'medref_http_requests_total',
    help: 'Requests of the data listener that were answered, by route and status.',
    labelNames: ['route', 'status'],
    registers,
  });
  const byClient = new Counter({
    name: 'medref_http_client_requests_total',
    help: 'The same by client, that is whom the key was issued to, and status.',
    labelNames: ['client', 'status'],
    registers,
  });
  const duration = new Histogram({
    name: 'medref_http_request_duration_seconds',
    help: 'From the arrival of the head of a request to the beginning of its answer, by route.',
    labelNames: ['route'],
    buckets,
    registers,
  });
  const bytes = new Counter({
    name: 'medref_http_response_bytes_total',
    help: 'Bytes of the bodies of answers, as they were sent, by route.',
    labelNames: ['route'],
    registers,
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
    requests.inc({ route, status });
    byClient.inc({ client: labelOf(it.client), status });
    if (it.beganMs !== null) duration.observe({ route }, it.beganMs / 1000);
    if (it.bytes > 0) bytes.inc({ route }, it.bytes);
    if (!it.isWhole) cut.inc();
  };
}
