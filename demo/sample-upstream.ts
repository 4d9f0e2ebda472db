// A loopback HTTP server with the sample catalogue: one JSON document per collection, written as the client reads it, so no
// list is completely in memory.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import type { Company } from '../shared/collections/companies.ts';
import { catalogueDocument, sampleCompanies, sampleProducts } from './sample-catalogue.ts';

export interface SampleUpstreamOptions {
  seed: number;
  /** The number of products. */
  products: number;
  /** The number of companies. */
  companies: number;
}

/** The running server. */
export interface SampleUpstream {
  readonly productsUrl: string;
  readonly companiesUrl: string;
  /** An earlier list of companies: some were added, changed or removed since. */
  readonly formerCompaniesUrl: string;
  /** A list without most companies, as a faulty upstream would send it. */
  readonly shrunkenCompaniesUrl: string;
  /** Stops it with all responses in progress. */
  stop(): Promise<void>;
}

/** A document: how to write it, and its tag. */
interface Document {
  pieces(): Iterable<string>;
  etag: string;
}

/** Starts the server on a free loopback port. */
export async function startSampleUpstream(options: SampleUpstreamOptions): Promise<SampleUpstream> {
  const { seed } = options;
  const documents = new Map([
    ['/products', documentOf((count) => sampleProducts({ seed, count }), options.products)],
    ['/companies', documentOf((count) => withFlaws(sampleCompanies({ seed, count })), options.companies)],
    ['/former-companies', documentOf((count) => formerCompanies(seed, count), options.companies)],
    [
      '/shrunken-companies',
      documentOf(
        (count) => withFlaws(sampleCompanies({ seed, count: Math.ceil(count / 3) })),
        options.companies,
      ),
    ],
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
    formerCompaniesUrl: `${origin}/former-companies`,
    shrunkenCompaniesUrl: `${origin}/shrunken-companies`,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** How many companies were added and removed since, and one in how many others changed. */
const CAME = 5;
const WENT = 4;
const CHANGED_EVERY = 25;

/** Yields the earlier list. */
function* formerCompanies(seed: number, count: number): Generator<Company, void> {
  let index = 0;
  for (const company of sampleCompanies({ seed, count: count + WENT })) {
    index += 1;
    if (index > count - CAME && index <= count) continue;
    const isOther = index % CHANGED_EVERY === 0;
    yield isOther ? { ...company, phone: null, officialName: `${company.name} LTD. ŞTİ.` } : company;
  }
}

/** Yields a list with two invalid records: too few for a refusal. */
function* withFlaws(companies: Iterable<Company>): Generator<unknown, void> {
  let first: Company | undefined;
  for (const company of companies) {
    first ??= company;
    yield company;
  }
  yield { ...first, id: 9_000_001, city: ['İSTANBUL', 'ANKARA'] };
  yield { ...first, id: '9000002' };
}

/** Builds a document. Its tag covers the first records and the count, which change with the generator. */
function documentOf(sample: (count: number) => Iterable<unknown>, count: number): Document {
  const hash = createHash('sha256');
  for (const piece of catalogueDocument(sample(Math.min(count, 500)))) hash.update(piece);
  // Weak, because gzip and identity share it.
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
    return void response.writeHead(404).end('Available: /products and /companies.\n');
  if (request.method !== 'GET') return void response.writeHead(405, { Allow: 'GET' }).end();

  response.setHeader('ETag', document.etag);
  response.setHeader('Vary', 'Accept-Encoding');
  if (request.headers['if-none-match'] === document.etag) return void response.writeHead(304).end();

  response.setHeader('Content-Type', 'application/json');
  const pieces = Readable.from(document.pieces());
  if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return pipeline(pieces, response);
  response.setHeader('Content-Encoding', 'gzip');
  // On loopback, speed matters more than size.
  return pipeline(pieces, createGzip({ level: constants.Z_BEST_SPEED }), response);
}
