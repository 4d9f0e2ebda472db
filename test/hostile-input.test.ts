// Tests that the cost of hostile text grows with its length, not with the square of its length.

import { request as httpRequest } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { products as productCollection } from '../shared/collections/products.ts';
import { useApi } from './support/api.ts';
import { importFrom, importRecords } from './support/importing.ts';
import { product, products } from './support/records.ts';
import { useRedis } from './support/redis-server.ts';
import { startUpstreamServer } from './support/upstream-server.ts';

const small = 1_024;
const large = 16 * small;

/** How many times as long sixteen times as much text may take; with the square it would be 256 times. */
const mostGrowth = 40;

/** Returns a text of repeated filling, with another beginning and end. */
const filled = (size: number, filling: string, end = 'x', begin = '') =>
  begin + filling.repeat(Math.ceil((size - begin.length - end.length) / filling.length)) + end;

/** Returns the shortest time of several runs, in ms. */
async function bestOf(run: () => Promise<unknown>): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 7; n += 1) {
    const start = performance.now();
    await run();
    best = Math.min(best, performance.now() - start);
  }
  return best;
}

describe('the cost of a hostile request is linear in its length', function () {
  this.timeout(60_000);
  const server = useRedis();
  const api = useApi(server);
  before(() => importRecords(products(3), productCollection, { redisUrl: server().url }));

  /** The length that fits, next to the other headers, into the 16 KiB of a request. */
  const largest = large - 512;

  const requests: [
    what: string,
    of: (size: number) => { path?: string; headers?: Record<string, string> },
  ][] = [
    ['the name', (size) => ({ path: `/products?name=x${filled(size, '+')}` })],
    [
      'a name of marks',
      (size) => ({ path: `/products?name=${filled(size / 2, '%CC%81', '')}${filled(size / 2, '%CC%A3')}` }),
    ],
    ['the path', (size) => ({ path: filled(size, '/', '', '/products') })],
    ['a path of dots', (size) => ({ path: filled(size, '/..', '', '/products') })],
    ['a path of escapes', (size) => ({ path: filled(size, '%41', '', '/products/') })],
    ['an address as a proxy gets it', (size) => ({ path: filled(size, 'a9', '/products', 'http://xn--') })],
    ['the parameters', (size) => ({ path: filled(size, '&page=1', '', '/products?page=1') })],
    ['Accept', (size) => ({ headers: { accept: filled(size, 'a', 'a', 'application/x-ndjson,') } })],
    ['Accept-Encoding', (size) => ({ headers: { 'accept-encoding': filled(size, 'a;q=0.5,') } })],
    ['If-None-Match', (size) => ({ headers: { 'if-none-match': filled(size, '"') } })],
    ['If-Modified-Since', (size) => ({ headers: { 'if-modified-since': filled(size, 'a  ') } })],
    ['Authorization: spaces', (size) => ({ headers: { authorization: filled(size, ' ', '"', 'Bearer ') } })],
    ['Authorization: a key', (size) => ({ headers: { authorization: filled(size, '=', '"', 'Bearer a') } })],
    ['Cookie', (size) => ({ headers: { cookie: filled(size, 'a=";') } })],
    ['Content-Type', (size) => ({ headers: { 'content-type': filled(size, ' ', 'x', 'a/b') } })],
    ['Expect', (size) => ({ headers: { expect: filled(size, '100-') } })],
    ['Host', (size) => ({ headers: { host: filled(size, 'a9', '', 'xn--') } })],
    ['Origin', (size) => ({ headers: { origin: filled(size, 'a9', '', 'http://xn--') } })],
    ['X-Forwarded-For', (size) => ({ headers: { 'x-forwarded-for': filled(size, ' ,', '1') } })],
    ['Referer', (size) => ({ headers: { referer: filled(size, '/', 'x', 'http://') } })],
  ];
  for (const [what, of] of requests) {
    it(`for ${what}`, async () => {
      const ask = ({ path = '/products', headers = {} }: ReturnType<typeof of>) =>
        new Promise<void>((resolve, reject) => {
          const { hostname, port } = new URL(api().origin);
          const sent = httpRequest(
            {
              ...{ hostname, port, path, agent: false },
              headers: { authorization: `Bearer ${api().key}`, ...headers },
            },
            (response) => response.resume().on('end', resolve),
          );
          sent.on('error', reject).end();
        });
      const [short, long] = [of(small), of(largest)];
      let least = Number.POSITIVE_INFINITY;
      for (let tries = 0; tries < 3 && least > mostGrowth; tries += 1) {
        const first = await bestOf(() => ask(short));
        least = Math.min(least, (await bestOf(() => ask(long))) / first);
      }
      expect(least).to.be.below(mostGrowth);
    });
  }
});

describe('the cost of a hostile upstream is linear in the length of its text', function () {
  this.timeout(60_000);
  const redis = useRedis();

  /** The CPU time that an import may use, in ms; with the square of these lengths it would be minutes. */
  const mostCpuMs = 3_000;
  const long = 240 * 1_024;

  /** Imports a body from an upstream. @param pieces how many pieces upstream sends @returns the CPU time in ms */
  async function cpuOfImport(
    body: string,
    headers: Record<string, string> = {},
    pieces = 1,
  ): Promise<number> {
    const server = await startUpstreamServer(async (response) => {
      response.writeHead(200, headers);
      const length = Math.ceil(body.length / pieces);
      for (let from = 0; from < body.length && !response.destroyed; from += length) {
        response.write(body.slice(from, from + length));
        await nextTurn();
      }
      response.end();
    });
    try {
      const from = process.cpuUsage();
      await importFrom(server.url(), productCollection, { redisUrl: redis().url });
      const { user, system } = process.cpuUsage(from);
      return (user + system) / 1_000;
    } finally {
      await server.close();
    }
  }

  const listOf = (...records: unknown[]) => JSON.stringify({ data: records });
  const named = (name: string) => listOf(product(1, { product: { id: 1, name } }));
  /** Returns combining marks of two classes, which normalization puts into another order. */
  const marks = (size: number) => filled(size / 2, '\u0301', '') + filled(size / 2, '\u0323', 'x');

  const bodies: [what: string, body: string, pieces?: number][] = [
    ['a name of marks', named(marks(10_000))],
    ['a name of white space', named(filled(10_000, ' '))],
    ['a name of invisible characters', named(filled(10_000, '\u200b', ''))],
    ['a name of marks that is too long', named(marks(long))],
    ['a name of escapes', `{"data":[{"product":{"id":1,"name":"${filled(long, '\\u00e9', '')}"}}]}`],
    ['an unknown member', listOf({ ...product(1), [filled(long, 'a', ' ')]: 1 })],
    ['a barcode', listOf(product(1, { barcodes: [{ barcode: filled(long, '1'), skrsStatus: null }] }))],
    ['a number of zeros', `{"data":[1.${filled(long, '0', '1')}]}`],
    ['a number with an exponent', `{"data":[1.${filled(long, '0', 'e0')}]}`],
    ['white space before the list', filled(long, ' ', '[]')],
    ['arrays within arrays', `{"data":[[${filled(long, '[0],', '0')}]]}`],
    ['records in small pieces', `[${filled(long, '{"a":[0],"a":1},', '0]')}`, 5_000],
    ['a string in small pieces', `["${filled(long, 'a', '"]')}`, 5_000],
    ['a link to a next page', `{"data":[],"_links":{"next":{"href":"${filled(long, '../', '')}"}}}`],
    [
      'a link to a host of Punycode',
      `{"data":[],"_links":{"next":{"href":"http://xn--${filled(long, 'a9', '')}"}}}`,
    ],
  ];
  for (const [what, body, pieces] of bodies) {
    it(`for ${what}`, async () => {
      expect(await cpuOfImport(body, {}, pieces)).to.be.below(mostCpuMs);
    });
  }

  const headers: Record<string, string> = {
    'content-encoding': filled(large - 512, ' ', 'x', 'gzip,'),
    'content-type': filled(large - 512, ' ', 'x', 'application/ndjson'),
    etag: filled(large - 512, '"'),
    'last-modified': filled(large - 512, '(', 'x', 'Sat, 21 Nov 2026 '),
  };
  for (const [name, value] of Object.entries(headers)) {
    it(`for ${name}`, async () => {
      expect(await cpuOfImport('[]', { [name]: value })).to.be.below(mostCpuMs);
    });
  }
});
