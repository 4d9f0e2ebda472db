// Clients that follow a list, each on a connection of its own, as one process: each asks again as soon as it is answered. In: by
// arguments, where and with which key; by messages, how many. Out: by messages, when all were told of a version, and after how long.

import { connect, type Socket } from 'node:net';
import { connectForListening } from '../../shared/redis/connections.ts';
import { productKeys } from '../support/keys.ts';

/** What the process is told: how many are to follow from now on, and since which version. */
export interface FollowOrder {
  readonly clients: number;
  readonly since: number;
}

/** What it tells as soon as all have been told of a version. */
export interface Told {
  /** From the announcement of the publication to the last byte of each answer, in ms. */
  readonly ms: readonly number[];
  /** Answers that were not 200, by their status, since it was told last. */
  readonly others: Readonly<Record<string, number>>;
}

const [port = '', key = '', redisUrl = ''] = process.argv.slice(2);

/** How many connections are made at once: a listener's queue has an end. */
const atOnce = 100;

let announcedAt = 0;
const listener = connectForListening(redisUrl);
listener.on('message', () => {
  announcedAt = performance.now();
});
await listener.subscribe(productKeys.announcements);

let ms: number[] = [];
let others: Record<string, number> = {};
const clients: Client[] = [];

/** One client: an answer is whole when its head and as many bytes as it says have come. */
class Client {
  readonly #socket: Socket;
  #since: string;
  #head = '';
  #left = -1;

  constructor(socket: Socket, since: number) {
    this.#socket = socket;
    this.#since = String(since);
    socket.setNoDelay().on('data', (bytes: Buffer) => this.#take(bytes));
    this.#ask();
  }

  #ask(): void {
    const target = `/products/changes?since=${this.#since}&wait=60`;
    this.#socket.write(
      `GET ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nAccept-Encoding: gzip\r\n\r\n`,
    );
  }

  #take(bytes: Buffer): void {
    if (this.#left === -1) {
      this.#head += bytes.toString('latin1');
      const end = this.#head.indexOf('\r\n\r\n');
      if (end === -1) return;
      this.#left =
        Number(/content-length: (\d+)/i.exec(this.#head)?.[1] ?? 0) - (this.#head.length - end - 4);
    } else this.#left -= bytes.length;
    if (this.#left > 0) return;
    const head = this.#head;
    this.#head = '';
    this.#left = -1;
    this.#answered(head);
  }

  #answered(head: string): void {
    const status = head.slice(9, 12);
    const version = /medref-version: (\d+)/i.exec(head)?.[1] ?? this.#since;
    if (status !== '200') others[status] = (others[status] ?? 0) + 1;
    if (version !== this.#since) told(performance.now() - announcedAt);
    this.#since = version;
    if (status === '200') this.#ask();
    else setTimeout(() => this.#ask(), 1_000);
  }
}

function told(after: number): void {
  if (ms.push(after) < clients.length) return;
  process.send?.({ ms, others } satisfies Told);
  ms = [];
  others = {};
}

process.on('message', async ({ clients: wanted, since }: FollowOrder) => {
  while (clients.length < wanted) {
    const some = Array.from({ length: Math.min(atOnce, wanted - clients.length) }, () => open(since));
    clients.push(...(await Promise.all(some)));
  }
});
process.on('disconnect', () => process.exit());

function open(since: number): Promise<Client> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => resolve(new Client(socket, since)));
    socket.on('error', reject);
  });
}
