import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { products as productCollection } from '../../shared/collections/products.ts';
import { importRecords } from '../support/importing.ts';
import { bundled, createKey, startMedref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { send } from '../support/wire.ts';
import { isFull, note } from './proof.ts';

/** The clients, and the requests that each sends at once; a response has about 40 KB. A client that is cut off connects again. */
const clients = 100;
const requestsEach = 500;
const floodMs = isFull ? 30_000 : 3_000;

const maxRssMb = 300;

describe(`${clients} clients that pipeline ${requestsEach} requests each and never read`, function () {
  this.timeout(isFull ? 120_000 : 30_000);
  const server = useRedis();

  it(`keep the process below ${maxRssMb} MB, and other clients get responses`, async function () {
    if (process.platform !== 'linux') this.skip(); // The memory of the process is read from /proc.
    await importRecords(products(2_000), productCollection, { redisUrl: server().url });
    const [key, floodKey] = [await createKey(server().url), await createKey(server().url)];
    const settings = { REDIS_URL: server().url, API_PORT: '0', ACCESS_LOG: 'off' };
    const program = await bundled('bin/medref.ts');
    const api = startMedref(['serve', '--json'], settings, { program });
    const sockets = new Set<Socket>();
    let isOver = false;
    try {
      const [, origin = ''] = await api.line(/"address":"([^"]+)"/);
      const port = Number(new URL(origin).port);
      const request = `GET /products HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${floodKey}\r\n\r\n`;
      const flood = () => {
        if (isOver) return;
        const socket = connect(port, '127.0.0.1', () => socket.write(request.repeat(requestsEach)));
        sockets.add(socket.pause());
        // A client whose connection is closed connects again.
        socket
          .on('error', () => undefined)
          .once('close', () => {
            sockets.delete(socket);
            setTimeout(flood, 100);
          });
      };
      for (let n = 0; n < clients; n += 1) flood();

      let mostMb = 0;
      let slowestMs = 0;
      for (const end = Date.now() + floodMs; Date.now() < end; await sleep(50)) {
        const from = performance.now();
        expect((await send({ origin, port, key }, '/products/1')).status).to.equal(200);
        slowestMs = Math.max(slowestMs, performance.now() - from);
        mostMb = Math.max(mostMb, await rssMb(api.process.pid as number));
      }
      note(`at most ${mostMb} MB; the slowest response to another client took ${slowestMs.toFixed(0)} ms`);
      expect(mostMb).to.be.within(1, maxRssMb);
      // In `npm test`, other tests use the same processors.
      if (isFull) expect(slowestMs).to.be.below(2_000);
    } finally {
      isOver = true;
      for (const socket of sockets) socket.destroy();
      api.process.kill('SIGTERM');
      await api.ended;
    }
  });
});

async function rssMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1_024);
}
