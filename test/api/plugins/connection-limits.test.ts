// What one connection may cost the service: requests that nobody takes the answers of, and clients that stand still.

import { randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting } from '../../../shared/redis/connections.ts';
import { useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { company, product } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { exchange, send } from '../../support/wire.ts';

const stallMs = 1_500;

describe('a connection', function () {
  this.timeout(20_000);
  const redis = useRedis();
  const api = useApi(redis);
  const impatient = useApi(redis, { stallMs });
  const count = 2_000;
  const records = Array.from({ length: count }, (_, i) =>
    product(i + 1, { drugform: { id: 1, name: randomBytes(2_700).toString('base64') } }),
  );
  /** A page of them is 16 MB, in one write: more than the kernel takes for a client that reads nothing. */
  const long = Array.from({ length: 200 }, (_, i) =>
    company(i + 1, { address: randomBytes(60_000).toString('base64') }),
  );
  before(async () => {
    await importRecords(records, productCollection, { redisUrl: redis().url });
    await importRecords(long, companyCollection, { redisUrl: redis().url });
  });

  const opened: Socket[] = [];
  afterEach(() => {
    for (const socket of opened.splice(0)) socket.destroy();
  });

  type Api = ReturnType<typeof api>;
  const requestOf = ({ key }: Api, path: string, fields = '') =>
    `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n${fields}\r\n`;

  /** A client that takes nothing of what it is sent, until it is told to. */
  async function openUnread(asked: Api, bytes: string): Promise<Socket> {
    const socket = connect(asked.port, '127.0.0.1');
    opened.push(socket.on('error', () => undefined));
    await once(socket, 'connect');
    socket.pause().write(bytes);
    return socket;
  }

  /** How long it takes until the service lets go of a connection, in ms, counted from now. */
  async function untilLetGo(asked: Api, socket: Socket): Promise<number> {
    const from = performance.now();
    while (asked.isOpen(socket) && performance.now() - from < 10 * stallMs) await sleep(10);
    return performance.now() - from;
  }

  it('costs little when it asks for much and takes nothing, and others are answered at once', async () => {
    const page = requestOf(api(), '/products?per-page=13');
    const before = process.memoryUsage();
    await Promise.all(Array.from({ length: 10 }, () => openUnread(api(), page.repeat(600))));
    let slowest = 0;
    for (let n = 0; n < 15; n += 1) {
      const from = performance.now();
      await send(api(), '/products/1');
      slowest = Math.max(slowest, performance.now() - from);
      await sleep(100);
    }
    const { arrayBuffers, heapUsed } = process.memoryUsage();
    const grown = arrayBuffers + heapUsed - before.arrayBuffers - before.heapUsed;
    // All that was asked for is 300 MB.
    expect(grown / 1e6, 'MB').to.be.below(100);
    // It was 6 s without a limit; a busy machine takes its time.
    expect(slowest, 'ms for a request of another client').to.be.below(5_000);
  });

  it('is not read from while its requests wait', async () => {
    const socket = await openUnread(api(), '');
    const page = requestOf(api(), '/products');
    let sent = 0;
    while (sent < 100_000_000 && socket.write(page.repeat(10_000))) sent += page.length * 10_000;
    await sleep(700);
    expect(socket.writableLength, 'bytes of requests that the service has not taken').to.be.above(0);
    expect(api().bytesRead(socket), 'bytes of requests that the service has taken').to.be.below(200_000);
  });

  it('begins nothing more while much of its answers is not taken', async () => {
    const connection = await connectForWriting(redis().url);
    const reads = async () =>
      Number(/cmdstat_hmget:calls=(\d+)/.exec(await connection.info('commandstats'))?.[1]);
    const page = requestOf(api(), '/companies');
    const socket = await openUnread(api(), page);
    await sleep(1_000);
    const before = await reads();
    socket.write(page);
    await sleep(500);
    expect(await reads(), 'reads for a request that has to wait').to.equal(before);
    socket.resume();
    for (const until = Date.now() + 5_000; Date.now() < until && (await reads()) === before; )
      await sleep(20);
    expect(await reads()).to.be.above(before);
    connection.disconnect();
  });

  it('gets every answer, in order, when it asks for many at once and takes them', async () => {
    const ids = Array.from({ length: 1_500 }, (_, i) => (i % count) + 1);
    const requests = ids.map((id) =>
      requestOf(api(), id % 50 === 0 ? `/products?per-page=13&page=${id}` : `/products/${id}`),
    );
    requests.push(requestOf(api(), '/products/7', 'Connection: close\r\n'));
    const answers = await exchange(api(), requests.join(''));
    expect(answers.length).to.equal(1_501);
    for (const [n, id] of ids.entries()) {
      const { status, body } = answers[n] as (typeof answers)[number];
      const { data, _meta } = JSON.parse(body.toString());
      expect([status, _meta?.currentPage ?? data.product.id]).to.deep.equal([200, id]);
    }
  });

  it('goes on where it stood when a client that took nothing takes more', async () => {
    const requests =
      requestOf(api(), '/products?per-page=33').repeat(100) +
      requestOf(api(), '/products/7', 'Connection: close\r\n');
    const socket = await openUnread(api(), requests);
    await sleep(500);
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString('latin1');
    expect(text.match(/HTTP\/1\.1 200 OK/g)?.length).to.equal(101);
  });

  it('answers a bad request after all the good ones that still wait', async () => {
    const good = requestOf(api(), '/products/1');
    const answers = await exchange(api(), `${good.repeat(40)}garbage\r\n\r\n`);
    expect(answers.map(({ status }) => status)).to.deep.equal([...Array(40).fill(200), 400]);
  });

  const stalled: [what: string, path: string, fields: string, times: number][] = [
    ['a page', '/products', '', 60],
    ['a page in gzip', '/products', 'Accept-Encoding: gzip\r\n', 60],
    ['lines', '/products', 'Accept: application/x-ndjson\r\n', 1],
    ['lines in gzip', '/products', 'Accept: application/x-ndjson\r\nAccept-Encoding: gzip\r\n', 1],
  ];
  for (const [what, path, fields, times] of stalled) {
    it(`is given up when its client takes nothing of ${what} for the time that is documented, not for twice as long`, async function () {
      this.retries(1); // A machine that stands still for as long as a client may would fail it.
      const socket = await openUnread(impatient(), requestOf(impatient(), path, fields).repeat(times));
      expect(await untilLetGo(impatient(), socket)).to.be.within(stallMs - 100, 1.95 * stallMs);
    });
  }

  it('leaves nothing behind once it is closed', async () => {
    const ends: WeakRef<Socket>[] = [];
    const note = (message: unknown) => {
      const { socket } = message as { socket: Socket };
      if (socket.localPort === api().port) ends.push(new WeakRef(socket));
    };
    subscribe('net.server.socket', note);
    for (let n = 0; n < 20; n += 1) expect((await send(api(), '/products/1')).status).to.equal(200);
    unsubscribe('net.server.socket', note);
    expect(ends).to.have.length(20);
    const left = () => ends.filter((end) => end.deref() !== undefined).length;
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    for (let tries = 0; tries < 50 && left() > 2; tries += 1) {
      await sleep(20);
      collectGarbage();
    }
    expect(left(), 'of those that were closed').to.be.at.most(2);
  });

  it('is not given up while its client takes a little now and then', async () => {
    const socket = await openUnread(impatient(), requestOf(impatient(), '/companies').repeat(8));
    let taken = 0;
    socket.on('data', ({ length }: Buffer) => {
      taken += length;
      if (taken >= 1_000_000) socket.pause();
    });
    for (const until = performance.now() + 3 * stallMs; performance.now() < until; ) {
      socket.pause();
      await sleep(stallMs / 4);
      taken = 0;
      socket.resume();
      await sleep(stallMs / 8);
    }
    expect(impatient().isOpen(socket)).to.equal(true);
  });
});
