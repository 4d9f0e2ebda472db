// Tests that records go from Redis to the client as bytes: the API never parses or rebuilds them.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { product, products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('a record in a response', () => {
  const server = useRedis();
  const api = useApi(server);
  const mark = 'ONLY RECORDS SAY THIS';
  const marked = (count: number) =>
    products(count).map((it) => ({ ...it, drugform: { id: 1, name: `${mark} ${it.product.id}` } }));
  let first: number;
  before(async () => {
    const report = await importRecords(marked(450), productCollection, { redisUrl: server().url });
    first = report.version as number;
    await importRecords([...marked(450), product(451)], productCollection, { redisUrl: server().url });
    while ((await api().get('/products/451')).status !== 200) await sleep(20);
  });

  /** Returns the texts that pass through JSON.parse and JSON.stringify during `run`. The API runs in this process too. */
  async function callsDuring(run: () => Promise<unknown>): Promise<string[]> {
    const { parse, stringify } = JSON;
    const calls: string[] = [];
    JSON.parse = (text, ...rest) => {
      calls.push(String(text));
      return parse(text, ...rest);
    };
    JSON.stringify = (value: unknown, ...rest: never[]) => {
      const text = stringify(value, ...rest);
      calls.push(text);
      return text;
    };
    try {
      await run();
    } finally {
      Object.assign(JSON, { parse, stringify });
    }
    return calls;
  }

  for (const [what, path, accept] of [
    ['in a page of blocks', '/products?page=2'],
    ['in a page that does not fall on blocks', '/products?page=3&per-page=30'],
    ['in a short page', '/products?per-page=5'],
    ['by its id', '/products/7'],
    ['in a search', '/products?name=drug&per-page=20'],
    ['by its barcode', '/products?barcode=8690000000007'],
    ['in a list of changes', '/products/changes?since=FIRST'],
    ['as a line', '/products', 'application/x-ndjson'],
  ] as const) {
    it(`is neither parsed nor stringified ${what}`, async () => {
      for (const encoding of ['gzip', 'identity']) {
        const { origin, key } = api();
        const headers = {
          ...{ 'accept-encoding': encoding, accept: accept ?? '*/*' },
          authorization: `Bearer ${key}`,
        };
        let text = '';
        const calls = await callsDuring(async () => {
          // Does not use `get`, because it parses responses to check them against the document.
          const response = await fetch(`${origin}${path.replace('FIRST', String(first))}`, { headers });
          text = await response.text();
        });
        expect(text).to.include('"product":{"id":');
        expect(calls.filter((call) => call.includes(mark) || call.includes('"drugform"'))).to.deep.equal([]);
      }
    });
  }
});
