// In: a seed and sizes. Out: a loopback HTTP server with the sample catalogue, one JSON document per
// collection, written as it is read: no list is ever whole in memory.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { catalogueDocument, sampleCompanies, sampleProducts } from './sample-catalogue.ts';

export interface SampleUpstreamOptions {
  seed: number;
  /** How many products it lists. */
  products: number;
  /** How many companies it lists. */
  companies: number;
}

/** The server, listening. */
export interface SampleUpstream {
  readonly productsUrl: string;
  readonly companiesUrl: string;
  /** Ends it, and every answer that is under way. */
  stop(): Promise<void>;
}

/** One document: how to write it, and what tells it from another. */
interface Document {
  pieces(): Iterable<string>;
  etag: string;
}

/** Starts the upstream on a free loopback port. */
export async function startSampleUpstream(options: SampleUpstreamOptions): Promise<SampleUpstream> {
  const { seed } = options;
  const documents = new Map([
    ['/products', documentOf((count) => sampleProducts({ seed, count }), options.products)],
    ['/companies', documentOf((count) => sampleCompanies({ seed, count }), options.companies)],
  ]);
  const server = createServer((request, response) => {
    answer(documents.get(request.url ?? ''), request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    productsUrl: `${origin}/products`,
    companiesUrl: `${origin}/companies`,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A change of the generator shows in its first records: the tag is made of these and the count. */
function documentOf(sample: (count: number) => Iterable<unknown>, count: number): Document {
  const hash = createHash('sha256');
  for (const piece of catalogueDocument(sample(Math.min(count, 500)))) hash.update(piece);
  // Weak: the same for gzip and identity.
  return {
    pieces: () => catalogueDocument(sample(count)),
    etag: `W/"${count}-${hash.digest('hex').slice(0, 16)}"`,
  };
}

async function answer(
  document: Document | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (document === undefined)
    return void response.writeHead(404).end('There are /products and /companies here.\n');
  if (request.method !== 'GET') return void response.writeHead(405, { Allow: 'GET' }).end();

  response.setHeader('ETag', document.etag);
  response.setHeader('Vary', 'Accept-Encoding');
  if (request.headers['if-none-match'] === document.etag) return void response.writeHead(304).end();

  response.setHeader('Content-Type', 'application/json');
  const pieces = Readable.from(document.pieces());
  if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return pipeline(pieces, response);
  response.setHeader('Content-Encoding', 'gzip');
  // Over loopback, time is worth more than size.
  return pipeline(pieces, createGzip({ level: constants.Z_BEST_SPEED }), response);
}
