// The limits of an upstream: bytes, pages, depth and time.

import { expect } from 'chai';
import { products } from '../../../shared/collections/products.ts';
import { type ImportChanges, importFrom } from '../../support/importing.ts';
import { product } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { type Answer, refusing, sending, upstreamServers } from '../../support/upstream-server.ts';

describe('the limits of an upstream', () => {
  const redis = useRedis();
  const start = upstreamServers();

  async function importWith(limits: Pick<ImportChanges, 'upstreamLimits' | 'readerLimits'>, answer: Answer) {
    const server = await start(answer);
    const options = { redisUrl: redis().url, force: true, dryRun: true, ...limits };
    return importFrom(server.url(), products, options);
  }

  const list = JSON.stringify([product(1), product(2), product(3)]);

  it('are its bytes', async () => {
    const it = await importWith({ upstreamLimits: { bodyBytes: 1000 } }, sending(list.padEnd(1_001)));
    expect(it.reason).to.include('is larger than 1000 bytes');
    expect(
      (await importWith({ upstreamLimits: { bodyBytes: 1000 } }, sending(list.padEnd(1_000)))).reason,
    ).to.equal(null);
  });

  it('are its pages', async () => {
    const pages: Answer = (response, request, nth) => {
      const links = nth < 3 ? { next: { href: `?page=${nth + 1}` } } : {};
      sending(JSON.stringify({ data: [product(nth)], _links: links }))(response, request, nth);
    };
    expect((await importWith({ readerLimits: { pages: 2 } }, pages)).reason).to.include(
      'for more than 2 pages',
    );
    expect((await importWith({ readerLimits: { pages: 3 } }, pages)).reason).to.equal(null);
  });

  it('are the levels of its records, in an array and in lines', async () => {
    const deep = { ...product(1), more: [[[[[1]]]]] };
    const forms = [
      sending(JSON.stringify([deep])),
      sending(`${JSON.stringify(deep)}\n`, { 'content-type': 'application/x-ndjson' }),
    ];
    for (const form of forms) {
      expect((await importWith({ readerLimits: { depth: 5 } }, form)).rejected).to.equal(1);
      expect((await importWith({ readerLimits: { depth: 6 } }, form)).rejected).to.equal(0);
    }
  });

  it('are the seconds until it has begun to answer', async () => {
    const reason = (
      await importWith({ upstreamLimits: { requestMs: 1_000 } }, refusing(503, { 'retry-after': '2' }))
    ).reason;
    expect(reason).to.match(/asks to wait 2 s \(Retry-After\), longer than the (1|0\.\d) s that are left/);
  });
});
