// In: who is asked what. Out: the CPU time that one process takes for a request, in a burst of requests that is over before
// the machine has changed much. The clock plays no part.

import { connect, type Socket } from 'node:net';
import { connections, type LoadRequest } from './load.ts';
import { threadMicros } from './process-usage.ts';

/** Who is asked, and what, in turn. */
export interface BurstTarget {
  readonly origin: string;
  readonly requests: readonly LoadRequest[];
  readonly serverPid: number;
}

/** Makes a function that asks a target for some ms, and gives the CPU time of its process for a request, in µs. */
export function burstsOn({ origin, requests, serverPid }: BurstTarget): (ms: number) => Promise<number> {
  const { hostname, port, host } = new URL(origin);
  const texts = requests.map((request) => requestText(host, request));
  let sent = 0;
  const next = () => texts[sent++ % texts.length] as Buffer;
  return async (ms) => {
    const sockets = await Promise.all(
      Array.from({ length: connections }, () => connected(Number(port), hostname)),
    );
    try {
      const before = threadMicros(serverPid);
      const until = performance.now() + ms;
      const counts = await Promise.all(sockets.map((socket) => askUntil(socket, until, next)));
      const after = threadMicros(serverPid);
      if (before === null || after === null) throw new Error('Nothing tells the CPU time of the process.');
      return (after - before) / counts.reduce((sum, count) => sum + count, 0);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  };
}

function requestText(host: string, { path, headers }: LoadRequest): Buffer {
  const fields = Object.entries({ Host: host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${fields.join('')}\r\n`);
}

function connected(port: number, host: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host, noDelay: true }, () => resolve(socket.off('error', reject)));
    socket.once('error', reject);
  });
}

/** Asks one thing after the other on a connection until it is time. @returns how many answers came */
function askUntil(socket: Socket, until: number, next: () => Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    let count = 0;
    let received: Buffer[] = [];
    let length = 0;
    let wanted = 0;
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('A connection ended within a burst.')));
    socket.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (wanted === 0) {
        received.push(chunk);
        wanted = lengthOf(Buffer.concat(received));
        if (Number.isNaN(wanted))
          return reject(new Error('An answer within a burst was none of 200 with a length.'));
      }
      if (wanted === 0 || length < wanted) return;
      count += 1;
      [received, length, wanted] = [[], 0, 0];
      if (performance.now() < until) socket.write(next());
      else resolve(count);
    });
    socket.write(next());
  });
}

const headEnd = '\r\n\r\n';

/** Of an answer, head and body; 0 where its head is not there yet, NaN where it is no answer that was expected. */
function lengthOf(begin: Buffer): number {
  const end = begin.indexOf(headEnd);
  if (end === -1) return 0;
  const head = begin.toString('latin1', 0, end);
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(head) ?? [];
  return head.startsWith('HTTP/1.1 200 ') ? end + headEnd.length + Number(length) : Number.NaN;
}
