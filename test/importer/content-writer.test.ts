// The largest records that are taken, as a content: staged in commands that Redis takes in its stride.

import { expect } from 'chai';
import { products as productCollection } from '../../shared/collections/products.ts';
import { startApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { product } from '../support/records.ts';
import { startRedisProxy } from '../support/redis-proxy.ts';
import { useRedis } from '../support/redis-server.ts';

describe('the content of the largest records', function () {
  this.timeout(60_000);
  const server = useRedis();

  it('is found by a barcode together with the name', async () => {
    const proxy = await startRedisProxy(server().port);
    const largest = Array.from({ length: 400 }, (_, n) =>
      product(n + 1, { product: { id: n + 1, name: `${n + 1} ${'A'.repeat(9_990)}` } }),
    );
    const report = await importRecords(largest, productCollection, { redisUrl: proxy.url });
    await proxy.close();
    expect([report.outcome, report.rejected], report.reason ?? '').to.deep.equal(['published', 0]);
    const api = await startApi({ redisUrl: server().url });
    try {
      const answer = await api.get(`/products?name=400%20${'a'.repeat(190)}&barcode=8690000000400`);
      const { data } = answer.json<{ data: unknown }>();
      expect(data).to.deep.equal([largest[399]]);
    } finally {
      await api.stop();
    }
  });
});
