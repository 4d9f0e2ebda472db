// Clients that take more than is theirs, as a process that gives way to all others: what it takes of the machine is not what they
// take of the service. In: by its argument, what they do. Out: by a message, what they got, where they come to an end.

import { connect, type Socket } from 'node:net';
import { setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeKeyText } from '../../shared/formats/api-key-text.ts';
import { askSteadily, type SteadyLoad } from './steady-client.ts';

/** What they do. */
export type HostileOrder =
  | ({ readonly kind: 'greedy' } & SteadyLoad)
  /** Half of them send a byte at a time, half take a few bytes at a time; one that is cut off comes again. */
  | { readonly kind: 'slow'; readonly port: number; readonly key: string; readonly clients: number }
  /** Each address of loopback's range has so many connections, each of which asks again as soon as it is answered. */
  | {
      readonly kind: 'flood';
      readonly port: number;
      readonly addresses: number;
      readonly connections: number;
    };

/** How often a slow client does something, in ms; each at its own pace, or they would all come to the end of a request at once. */
const slowMs = () => 100 + Math.random() * 300;

setPriority(19);
const order = JSON.parse(process.argv[2] as string) as HostileOrder;
process.on('disconnect', () => process.exit());

if (order.kind === 'greedy') {
  process.send?.(await askSteadily(order));
  process.disconnect();
} else if (order.kind === 'slow') {
  for (let n = 0; n < order.clients; n += 1) {
    if (n % 2 === 0) drip(order.port, order.key);
    else sip(order.port, order.key);
    if (n % 50 === 49) await sleep(20);
  }
  process.send?.('begun');
} else {
  const statuses: Record<string, number> = {};
  for (let n = 0; n < order.addresses * order.connections; n += 1)
    flood({ port: order.port, address: `127.0.0.${2 + (n % order.addresses)}`, statuses });
  process.send?.('begun');
  process.on('message', () => process.send?.(statuses));
}

/** Sends the head of a request, a byte at a time. */
function drip(port: number, key: string): void {
  const head = `GET /products HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  let sent = 0;
  const socket = again(connect(port, '127.0.0.1'), () => drip(port, key));
  const timer = setInterval(() => socket.write(head[sent++ % head.length] as string), slowMs());
  socket.resume().once('close', () => clearInterval(timer));
}

/** Asks for more than fits into any buffer, and takes a little of it at a time. */
function sip(port: number, key: string): void {
  const request = `GET /products HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  const socket = again(connect(port, '127.0.0.1'), () => sip(port, key));
  socket.once('connect', () => socket.write(request.repeat(50)));
  const timer = setInterval(() => socket.read(1_024), slowMs());
  socket.once('close', () => clearInterval(timer));
}

/** Sends keys of the right form which do not exist. */
function flood({
  port,
  address,
  statuses,
}: {
  port: number;
  address: string;
  statuses: Record<string, number>;
}): void {
  const socket = connect({ port, host: '127.0.0.1', localAddress: address });
  again(socket, () => flood({ port, address, statuses }));
  const ask = () =>
    socket.write(`GET /products HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${makeKeyText()}\r\n\r\n`);
  socket.setNoDelay().once('connect', ask);
  // A refusal is short, and comes in one piece.
  socket.on('data', (answer) => {
    const status = answer.toString('latin1', 9, 12);
    statuses[status] = (statuses[status] ?? 0) + 1;
    ask();
  });
}

/** Comes again a little later where a connection ends. */
function again(socket: Socket, come: () => void): Socket {
  return socket.on('error', () => undefined).once('close', () => setTimeout(come, slowMs()));
}
