// What a thousand processes cost one Redis at a publication, measured on loopback. Out: CPU time of Redis for each of them,
// by what it does for them: the announcement, the pointer, and the first page of the changes.

import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPrivateRedis } from '../../demo/private-redis.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';

/** How many processes there are, and how often each thing is measured. */
const processes = 1_000;
const rounds = 40;

/** What is read for a page of changes: a change set, and records, each as long as those of the real list. */
const changes = { entries: 250, entryLength: 83, records: 200, recordLength: 261 };
/** A version's document is about as long. */
const documentLength = 600;

/** A thing that Redis does for each process. */
export interface FanOut {
  readonly what: string;
  /** CPU time of Redis for one process, in µs. */
  readonly cpuMicros: number;
  /** What Redis sends to one process, in bytes. */
  readonly bytes: number;
}

/** Measures on a Redis of its own. */
export async function measureFanOut(): Promise<FanOut[]> {
  const dataFolder = await mkdtemp(join(tmpdir(), 'medref-fan-out-'));
  const server = await startPrivateRedis({ dataFolder });
  const redis = await connectForWriting(server.url);
  const clients = await connectAll(server.port);
  try {
    await fill(redis);
    const measured = (what: string, commands: string) =>
      measure(what, { redis, clients, ask: () => clients.ask(commands) });
    const pointer = await measured('the pointer is read', resp('GET', 'pointer'));
    const entries = resp('HGETALL', 'changes');
    const records = resp('HMGET', 'records', ...fields(changes.records));
    const page = await measured('the changes are read', entries + records);
    await clients.subscribe();
    const publish = () => redis.publish('published', '20261122030000');
    return [await measure('the announcement', { redis, clients, ask: publish }), pointer, page];
  } finally {
    clients.close();
    redis.disconnect();
    await server.stop();
    await rm(dataFolder, { recursive: true, force: true });
  }
}

interface Measuring {
  readonly redis: Redis;
  readonly clients: Clients;
  readonly ask: () => unknown;
}

async function measure(what: string, { redis, clients, ask }: Measuring): Promise<FanOut> {
  // How long a reply is: what one round brings to the first client.
  clients.expect(Number.POSITIVE_INFINITY);
  ask();
  const bytes = await clients.quiet();
  const cpuBefore = await cpuOf(redis);
  for (let round = 0; round < rounds; round += 1) {
    const all = clients.expect(bytes);
    ask();
    await all;
  }
  const cpuMicros = ((await cpuOf(redis)) - cpuBefore) / rounds / processes;
  return { what, cpuMicros, bytes };
}

/** CPU time of the server so far, in µs. */
async function cpuOf(redis: Redis): Promise<number> {
  const info = await redis.info('cpu');
  const seconds = (name: string) => Number(new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]);
  return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6;
}

const fields = (count: number) => Array.from({ length: count }, (_, n) => String(n + 1));

async function fill(redis: Redis): Promise<void> {
  await redis.set('pointer', 'x'.repeat(documentLength));
  const hash = (count: number, length: number) =>
    Object.fromEntries(fields(count).map((it) => [it, 'x'.repeat(length)]));
  await redis.hset('changes', hash(changes.entries, changes.entryLength));
  await redis.hset('records', hash(changes.records, changes.recordLength));
}

/** A command as it is sent. */
function resp(...words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((it) => `$${Buffer.byteLength(it)}\r\n${it}\r\n`).join('')}`;
}

/** Connections without a client library, so that the replies cost as little as they can here. */
class Clients {
  readonly #sockets: readonly Socket[];
  readonly #got: Float64Array;
  #expected = Number.POSITIVE_INFINITY;
  #missing = 0;
  #done: () => void = () => undefined;

  constructor(sockets: readonly Socket[]) {
    this.#sockets = sockets;
    this.#got = new Float64Array(sockets.length);
    for (const [n, socket] of sockets.entries()) socket.on('data', ({ length }) => this.#take(n, length));
  }

  /** Begins anew. @returns when each has got so many bytes */
  expect(bytes: number): Promise<void> {
    this.#got.fill(0);
    [this.#expected, this.#missing] = [bytes, this.#sockets.length];
    return new Promise((resolve) => {
      this.#done = resolve;
    });
  }

  ask(commands: string): void {
    for (const socket of this.#sockets) socket.write(commands);
  }

  async subscribe(): Promise<void> {
    this.expect(Number.POSITIVE_INFINITY);
    this.ask(resp('SUBSCRIBE', 'published'));
    await this.quiet();
  }

  /** Waits until nothing comes any more. @returns how many bytes the first one has got */
  async quiet(): Promise<number> {
    const sum = () => this.#got.reduce((all, it) => all + it, 0);
    for (let before = -1; before !== sum() || before === 0; ) {
      before = sum();
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    return this.#got[0] as number;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #take(n: number, length: number): void {
    const before = this.#got[n] as number;
    this.#got[n] = before + length;
    if (before >= this.#expected || before + length < this.#expected) return;
    this.#missing -= 1;
    if (this.#missing === 0) this.#done();
  }
}

async function connectAll(port: number): Promise<Clients> {
  const sockets = Array.from({ length: processes }, () => connect(port, '127.0.0.1').setNoDelay());
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
  return new Clients(sockets);
}
