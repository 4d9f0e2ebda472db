// In: a request. Out: the answer as it is on the wire, body not decoded, for peers that send the same and for checks.

import { get, type IncomingHttpHeaders } from 'node:http';
import { gunzipSync } from 'node:zlib';
import type { LoadRequest } from './load.ts';

export interface WireAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** As sent: gzip where `content-encoding` says so. */
  readonly body: Buffer;
}

/** Sends one request on a connection of its own. */
export function ask(origin: string, { path, headers }: LoadRequest): Promise<WireAnswer> {
  return new Promise((resolve, reject) => {
    const request = get(`${origin}${path}`, { headers, agent: false, timeout: 30_000 }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    request.on('timeout', () => request.destroy(new Error(`${path} was not answered within 30 s`)));
    request.on('error', reject);
  });
}

/** The body of an answer as text. */
export function textOf({ headers, body }: WireAnswer): string {
  return (headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString();
}

/** Sends some of the requests, spread over all of them. */
export async function askSome(
  origin: string,
  requests: readonly LoadRequest[],
  count = 15,
): Promise<WireAnswer[]> {
  const chosen = Array.from(
    { length: Math.min(count, requests.length) },
    (_, i) => requests[Math.floor((i * requests.length) / Math.min(count, requests.length))] as LoadRequest,
  );
  const answers: WireAnswer[] = [];
  for (const request of chosen) answers.push(await ask(origin, request));
  return answers;
}

/** The answer whose body is neither large nor small among these. */
export function typicalOf(answers: readonly WireAnswer[]): WireAnswer {
  const sorted = [...answers].sort((a, b) => a.body.length - b.body.length);
  const typical = sorted[sorted.length >> 1];
  if (typical === undefined) throw new Error('There is no typical one among no answers.');
  return typical;
}
