// By which address a client came, and the network that counts as one client.

import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { ForwardedRequest } from './forwarded.ts';

/** The address of who sent a request, also by proxies that are trusted; `''` where its connection is gone. */
export function clientAddressOf(request: IncomingMessage): string {
  return request instanceof ForwardedRequest ? request.sender.address : (request.socket.remoteAddress ?? '');
}

/** Whether a client sent its request by TLS, as a proxy that is trusted says. */
export function cameByTls(request: IncomingMessage): boolean {
  return request instanceof ForwardedRequest && request.sender.scheme === 'https';
}

/** An address of IPv4 as it is; of IPv6 its first 64 bits, since a client has all of the others for itself. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = address.split('::') as [string, string?];
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - after.length;
  const all = [...groups, ...Array<string>(missing).fill('0'), ...after];
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
