// Tests the documented restart of two API processes behind nginx: with its waits, no request fails.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { products as productCollection } from '../../shared/collections/products.ts';
import { importRecords } from '../support/importing.ts';
import { beginMedref, medref } from '../support/medref.ts';
import { freePort, startProxy, type TestProxy, whyNoNginx } from '../support/nginx.ts';
import { read } from '../support/project-files.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';

const suite = whyNoNginx === null ? describe : describe.skip;

suite(`a restart of two processes behind nginx${whyNoNginx ? ` (left out: ${whyNoNginx})` : ''}`, function () {
  this.timeout(60_000);
  const server = useRedis();
  const ports: number[] = [];
  const processes: ReturnType<typeof beginMedref>[] = [];
  let proxy: TestProxy;
  let key = '';

  /** Starts a process, and waits until it is ready. */
  async function start(n: number): Promise<void> {
    processes[n] = beginMedref(['serve', '--json'], {
      ...{ REDIS_URL: server().url, BASE_URL: 'https://medref.test' },
      ...{ API_PORT: String(ports[n]), ADMIN_PORT: '0' },
    });
    await processes[n].line(/"address":"([^"]+)"/);
    for (let isReady = false; !isReady; await sleep(50))
      isReady = await fetch(`http://127.0.0.1:${ports[n]}/health/ready`).then(({ ok }) => ok);
  }

  before(async () => {
    await importRecords(products(450), productCollection, { redisUrl: server().url });
    const made = await medref(['keys', 'create', '--client', 'a', '--json'], { REDIS_URL: server().url });
    key = made.json<{ key: string }>().key;
    ports.push(await freePort(), await freePort());
    await Promise.all([start(0), start(1)]);
    const [apiPort = 0, second = 0] = ports;
    proxy = await startProxy({ port: await freePort(), apiPort, further: [second] });
  });
  after(async () => {
    await proxy?.stop();
    await Promise.all(processes.map((it) => it.stop()));
  });

  it('answers every request, with the waits of the systemd template', async () => {
    const [, seconds = ''] =
      /^ExecStartPost=.*sleep (\d+)$/m.exec(read('deploy/systemd/medref-api@.service')) ?? [];
    const statuses: (number | undefined)[] = [];
    const asked: Promise<unknown>[] = [];
    const load = setInterval(() => {
      const answer = proxy.open('/products?per-page=200', { headers: { authorization: `Bearer ${key}` } });
      asked.push(answer.then((it) => statuses.push(it.resume().statusCode)));
    }, 20);
    try {
      for (const n of [0, 1]) {
        await sleep(200);
        await processes[n]?.stop();
        await start(n);
        await sleep(Number(seconds) * 1_000);
      }
    } finally {
      clearInterval(load);
    }
    await Promise.all(asked);
    expect(statuses.length).to.be.above(100);
    expect(statuses.filter((status) => status !== 200)).to.deep.equal([]);
  });
});
