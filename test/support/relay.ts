// In: an API. Out: what stands between it and a client, passes everything on, and spoils the answers that a test chooses.

import { request as ask, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Answer } from './upstream-server.ts';

/** An answer of the API on its way. */
export interface RelayedAnswer {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Answers instead of the API where it returns true. */
export type Spoil = (
  response: Parameters<Answer>[0],
  answer: RelayedAnswer,
  request: IncomingMessage,
) => boolean;

/** Answers as the API on a port does, but for what is spoilt. */
export function relaying(port: () => number, spoil: Spoil = () => false): Answer {
  return (response, request) => {
    const { url: path, method, headers } = request;
    const asked = ask({ port: port(), host: '127.0.0.1', path, method, headers, agent: false }, (answer) => {
      answer.toArray().then((chunks) => {
        const body = Buffer.concat(chunks);
        if (spoil(response, { headers: answer.headers, body }, request)) return;
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        response.end(body);
      });
    });
    asked.on('error', () => response.destroy());
    asked.end();
  };
}

/** Sends half of every whole list, and then cuts the connection. */
export const cutInHalf: Spoil = (response, { headers, body }) => {
  if (headers['content-type'] !== 'application/x-ndjson') return false;
  response.writeHead(200, headers);
  response.write(body.subarray(0, body.length / 2), () => response.socket?.destroy());
  return true;
};

/** Sends half of the lines of every whole list, and ends it in order, as a proxy may that hides a cut. */
export const endedInHalf: Spoil = (response, { headers, body }) => {
  if (headers['content-type'] !== 'application/x-ndjson') return false;
  const isGzip = headers['content-encoding'] === 'gzip';
  const lines = (isGzip ? gunzipSync(body) : body).toString().split('\n').slice(0, -1);
  const half = `${lines.slice(0, lines.length / 2).join('\n')}\n`;
  response.writeHead(200, headers);
  response.end(isGzip ? gzipSync(half) : half);
  return true;
};

/** Answers the first request as a service that is away for a moment. */
export function awayAtFirst(): Spoil {
  let requests = 0;
  return (response) => {
    requests += 1;
    if (requests > 1) return false;
    response.writeHead(503, { 'retry-after': '1' }).end();
    return true;
  };
}
