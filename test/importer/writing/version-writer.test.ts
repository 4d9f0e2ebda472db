// The version writer beside a Redis that is slow.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { RecordBatch } from '../../../importer/parse/pages.ts';
import { VersionWriter } from '../../../importer/writing/version-writer.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { begun, useLockedRedis } from '../../shared/store/locked-redis.ts';
import { oneServer } from '../../support/one-server.ts';
import { product } from '../../support/records.ts';

describe('the version writer', () => {
  const redis = useLockedRedis();

  it('lets Redis be eight batches behind and no more, so that memory does not grow with the list', async () => {
    const writer = new VersionWriter(redis(), begun(1), productCollection);
    await writer.write(batchFrom(1));
    await writer.flush();
    // What this connection sends after what waits would wait, too.
    const other = oneServer(redis()).duplicate();
    await other.call('CLIENT', 'PAUSE', '60000', 'WRITE');
    let taken = 0;
    const writing = (async () => {
      for (let n = 1; n <= 30; n++) {
        await writer.write(batchFrom(n * 100 + 1));
        taken = n;
      }
    })();
    const soon = performance.now() + 10_000;
    while (taken < 8 && performance.now() < soon) await sleep(20);
    await sleep(200);
    expect(taken, 'while Redis stands still').to.equal(8);
    await other.call('CLIENT', 'UNPAUSE');
    other.disconnect();
    await writing;
    await writer.flush();
    expect(taken).to.equal(30);
    expect(writer.counts).to.deep.equal({ read: 3_100, written: 3_100, rejected: 0 });
  });

  it('settles once all that was written is there, and also where that failed', async () => {
    const writer = new VersionWriter(redis(), begun(2), productCollection);
    const other = oneServer(redis()).duplicate();
    await other.call('CLIENT', 'PAUSE', '60000', 'WRITE');
    for (let n = 0; n < 3; n++) await writer.write(batchFrom(n * 100 + 1));
    let isSettled = false;
    const settling = writer.settle().then(() => {
      isSettled = true;
    });
    await sleep(200);
    expect(isSettled).to.equal(false);
    await other.call('CLIENT', 'UNPAUSE');
    await settling;
    expect(await other.hlen(begun(2).keys.content(2).records)).to.equal(300);
    await other.del(begun(2).keys.lock);
    await writer.write(batchFrom(301));
    await writer.settle();
    const { message } = await writer.flush().then(
      () => new Error('nothing failed'),
      (error: Error) => error,
    );
    expect(message).to.match(/lost its lock/);
    other.disconnect();
  });
});

/** A hundred records, as many as are written at once. */
function batchFrom(position: number): RecordBatch {
  const records = Array.from({ length: 100 }, (_, i) => {
    const value = product(position + i);
    return { position: position + i, value, flaw: null, raw: () => JSON.stringify(value) };
  });
  return { records, bytes: 20_000, page: 1, arrival: { bytes: 0, of: null } };
}
