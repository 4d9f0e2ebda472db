// Ten thousand clients wait for a publication on one API process, each on its own connection. All must be answered within
// two seconds of each announcement, and other readers must not wait meanwhile.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type Product, products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { createApiKey } from '../../shared/store/api-keys.ts';
import { importRecords } from '../support/importing.ts';
import { type RunningCommand, startMedref } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { startTestRedis, type TestRedis } from '../support/redis-server.ts';
import { closedPort } from '../support/upstream-server.ts';
import { send } from '../support/wire.ts';
import { isFull, note } from './proof.ts';
import type { FollowOrder, Told } from './waiting-clients.ts';

const clients = isFull ? 10_000 : 1_000;
const rounds = isFull ? 10 : 2;

/** A list, and how many of its records change with each publication. */
const size = 5_000;
const changedEach = 250;

/** From the announcement to the last byte of the last response, and the longest that another reader may wait, in ms. */
const allowed = { answerMs: 2_000, readerMs: 500 };

describe(`${clients.toLocaleString('en')} clients that wait for a publication`, function () {
  this.timeout(0);
  let server: TestRedis;
  let api: RunningCommand;
  let crowd: ChildProcess;
  let asked: { origin: string; port: number; key: string };
  let adminPort: number;
  let records: Product[] = products(size);

  before(async () => {
    server = await startTestRedis();
    const redis = await connectForWriting(server.url);
    const { key } = await createApiKey(redis, 'medref', { client: 'waiting', expiresAt: null, rate: null });
    redis.disconnect();
    await publish();
    const port = await closedPort();
    adminPort = await closedPort();
    const settings = { REDIS_URL: server.url, API_PORT: `${port}`, ADMIN_PORT: `${adminPort}` };
    api = startMedref(['serve', '--json'], settings);
    await api.line(/"address"/);
    asked = { origin: `http://127.0.0.1:${port}`, port, key };
    const entry = fileURLToPath(new URL('waiting-clients.ts', import.meta.url));
    crowd = fork(entry, [String(port), key, server.url], { execArgv: ['--import', 'tsx'] });
  });
  after(async () => {
    crowd?.kill('SIGKILL');
    api?.process.kill('SIGTERM');
    await api?.ended;
    await server?.stop();
  });

  async function publish(): Promise<void> {
    const form = { id: 1, name: `FORM ${Math.random()}` };
    records = records.map((it, n) => (n < changedEach ? product(it.product.id, { drugform: form }) : it));
    const { outcome, reason } = await importRecords(records, productCollection, { redisUrl: server.url });
    expect(outcome, reason ?? '').to.equal('published');
  }

  async function allWait(): Promise<void> {
    for (const deadline = Date.now() + 60_000; ; await sleep(500)) {
      const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
      const waiting = Number(/^medref_waiting_requests (\d+)$/m.exec(metrics)?.[1]);
      if (waiting >= clients) return;
      expect(Date.now(), `only ${waiting} clients wait`).to.be.below(deadline);
    }
  }

  /** Reads a record every 5 ms until it is stopped. @returns what stops it and gives the longest time of a read, in ms */
  function startReader(): () => Promise<number> {
    let isOver = false;
    const reading = (async () => {
      let longest = 0;
      while (!isOver) {
        const from = performance.now();
        expect((await send(asked, '/products/1')).status).to.equal(200);
        longest = Math.max(longest, performance.now() - from);
        await sleep(5);
      }
      return longest;
    })();
    return () => {
      isOver = true;
      return reading;
    };
  }

  it(`are all answered within ${allowed.answerMs} ms of each of ${rounds} publications`, async () => {
    const live = Number((await send(asked, '/products?per-page=1')).headers['medref-version']);
    crowd.send({ clients, since: live } satisfies FollowOrder);
    for (let round = 1; round <= rounds; round += 1) {
      await allWait();
      const answered = once(crowd, 'message') as Promise<[Told]>;
      const stopReader = startReader();
      await publish();
      const [{ ms, others }] = await answered;
      const readerMs = await stopReader();
      const sorted = ms.toSorted((a, b) => a - b);
      const at = (part: number) => (sorted[Math.floor(part * (sorted.length - 1))] as number).toFixed(0);
      note(`p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, last ${at(1)} ms; a reader ${readerMs.toFixed(0)} ms`);
      expect(others, 'responses other than 200').to.deep.equal({});
      expect(sorted.at(-1)).to.be.below(allowed.answerMs);
      expect(readerMs, 'the longest read').to.be.below(allowed.readerMs);
    }
  });
});
