// Ten thousand clients wait for a publication on one API process, each on its own connection. All must get a response within
// two seconds of each announcement, and other readers must not wait meanwhile.

import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { type Product, products as productCollection } from '../../shared/collections/products.ts';
import { connectForListening } from '../../shared/redis/connections.ts';
import { importRecords } from '../support/importing.ts';
import { productKeys } from '../support/keys.ts';
import { createKey, type RunningCommand, startMedref } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { startTestRedis, type TestRedis } from '../support/redis-server.ts';
import { closedPort } from '../support/upstream-server.ts';
import { type Asked, send } from '../support/wire.ts';
import { isFull, note } from './proof.ts';

const clients = isFull ? 10_000 : 1_000;
const rounds = isFull ? 10 : 2;

/** The length of the list, and how many of its records change with each publication. */
const size = 5_000;
const changedEach = 250;

/** The longest time from the announcement to the last byte of the last response, and of another client's read, in ms. */
const allowed = { answerMs: 2_000, readerMs: 500 };

/** A client that repeatedly waits for the changes since a version. */
class WaitingClient {
  readonly #socket: Socket;
  readonly #onVersion: (status: string, version: string) => void;
  readonly #key: string;
  #head = '';
  #left = -1;

  constructor({ port, key }: Asked, since: string, onVersion: (status: string, version: string) => void) {
    this.#key = key;
    this.#onVersion = onVersion;
    this.#socket = connect(port, '127.0.0.1', () => this.#wait(since)).setNoDelay();
    this.#socket.on('data', (bytes) => this.#take(bytes)).on('error', () => onVersion('no response', ''));
  }

  close(): void {
    this.#socket.destroy();
  }

  #wait(since: string): void {
    const fields = `Host: a\r\nAuthorization: Bearer ${this.#key}\r\nAccept-Encoding: gzip\r\n\r\n`;
    this.#socket.write(`GET /products/changes?since=${since}&wait=60 HTTP/1.1\r\n${fields}`);
  }

  /** Reads bytes. A response is complete when its head has arrived, and as many bytes as the head names. */
  #take(bytes: Buffer): void {
    if (this.#left === -1) {
      this.#head += bytes.toString('latin1');
      const end = this.#head.indexOf('\r\n\r\n');
      if (end === -1) return;
      const length = Number(/content-length: (\d+)/i.exec(this.#head)?.[1] ?? 0);
      this.#left = length - (this.#head.length - end - 4);
    } else this.#left -= bytes.length;
    if (this.#left > 0) return;
    const version = /medref-version: (\d+)/i.exec(this.#head)?.[1] ?? '';
    this.#onVersion(this.#head.slice(9, 12), version);
    this.#head = '';
    this.#left = -1;
    this.#wait(version);
  }
}

describe(`${clients.toLocaleString('en')} clients that wait for a publication`, function () {
  this.timeout(0);
  let server: TestRedis;
  let api: RunningCommand;
  let asked: Asked;
  let adminPort: number;
  let records: Product[] = products(size);
  const crowd: WaitingClient[] = [];

  before(async () => {
    server = await startTestRedis();
    const port = await closedPort();
    adminPort = await closedPort();
    const settings = { REDIS_URL: server.url, API_PORT: `${port}`, ADMIN_PORT: `${adminPort}` };
    api = startMedref(['serve', '--json'], settings);
    await api.line(/"address"/);
    asked = { origin: `http://127.0.0.1:${port}`, port, key: await createKey(server.url) };
  });
  after(async () => {
    for (const client of crowd) client.close();
    api?.process.kill('SIGTERM');
    await api?.ended;
    await server?.stop();
  });

  /** Publishes a changed list. @returns the number of the version */
  async function publish(): Promise<number> {
    const drugform = { id: 1, name: `FORM ${Math.random()}` };
    records = records.map((it, n) => (n < changedEach ? product(it.product.id, { drugform }) : it));
    const report = await importRecords(records, productCollection, { redisUrl: server.url });
    expect(report.outcome, report.reason ?? '').to.equal('published');
    return report.version as number;
  }

  async function allWait(): Promise<void> {
    for (const deadline = Date.now() + 60_000; ; await sleep(500)) {
      const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
      const waiting = Number(/^medref_waiting_requests (\d+)$/m.exec(metrics)?.[1]);
      if (waiting >= clients) return;
      expect(Date.now(), `only ${waiting} clients wait`).to.be.below(deadline);
    }
  }

  /** Reads a record every 5 ms. @returns a function that stops it and returns the longest time of a read, in ms */
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

  it(`all get a response within ${allowed.answerMs} ms of each of ${rounds} publications`, async () => {
    let since = await publish();
    while ((await send(asked, '/products/1')).status !== 200) await sleep(50);
    let announcedAt = 0;
    const listener = connectForListening(server.url);
    listener.on('message', () => {
      announcedAt = performance.now();
    });
    await listener.subscribe(productKeys.announcements);

    let ms: number[] = [];
    let onAll = () => {};
    const failures: string[] = [];
    const answered = (status: string, version: string) => {
      if (status !== '200') failures.push(status);
      else if (version !== String(since)) ms.push(performance.now() - announcedAt);
      if (ms.length + failures.length >= clients) onAll();
    };
    while (crowd.length < clients) {
      crowd.push(new WaitingClient(asked, String(since), answered));
      if (crowd.length % 100 === 0) await sleep(20);
    }
    for (let round = 1; round <= rounds; round += 1) {
      await allWait();
      const all = new Promise<void>((resolve) => {
        onAll = resolve;
      });
      const stopReader = startReader();
      const version = await publish();
      await all;
      since = version;
      const readerMs = await stopReader();
      const sorted = ms.toSorted((a, b) => a - b);
      ms = [];
      const at = (part: number) => (sorted[Math.floor(part * (sorted.length - 1))] as number).toFixed(0);
      note(`p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, last ${at(1)} ms; a reader ${readerMs.toFixed(0)} ms`);
      expect(failures, 'responses other than 200').to.deep.equal([]);
      expect(sorted.at(-1)).to.be.below(allowed.answerMs);
      expect(readerMs, 'the longest read').to.be.below(allowed.readerMs);
    }
    listener.disconnect();
  });
});
