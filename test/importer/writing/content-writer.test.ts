// The largest records that are taken, as a content: staged in commands that Redis takes in its stride.

import { expect } from 'chai';
import { products as productCollection } from '../../../shared/collections/product.ts';
import { startApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { product } from '../../support/records.ts';
import { startRedisProxy } from '../../support/redis-proxy.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('the content of the largest records', function () {
  this.timeout(60_000);
  const server = useRedis();

  it('is staged in commands of some MB at most, and found by each barcode with the name', async () => {
    const proxy = await startRedisProxy(server().port);
    const largest = [1, 2].map((id) =>
      product(id, {
        product: { id, name: 'A'.repeat(10_000) },
        barcodes: Array.from({ length: 1_000 }, (_, n) => ({
          barcode: String(8_690_000_000_000 + id * 1_000 + n),
          skrsStatus: null,
        })),
      }),
    );
    const report = await importRecords(largest, productCollection, { redisUrl: proxy.url });
    await proxy.close();
    expect([report.outcome, report.rejected], report.reason ?? '').to.deep.equal(['published', 0]);
    // 126 pages of 32 entries: 40 MB, nearly.
    expect(proxy.commands.filter((name) => name === 'stage-pages').length).to.be.above(20);
    const api = await startApi({ redisUrl: server().url });
    try {
      const answer = await api.get(`/products?name=${'a'.repeat(200)}&barcode=8690000002999`);
      const { data } = answer.json<{ data: unknown }>();
      expect(data).to.deep.equal([largest[1]]);
    } finally {
      await api.stop();
    }
  });
});
