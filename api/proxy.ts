// The client's address, scheme and host, also through trusted proxies; and the base URL of links.

import { IncomingMessage } from 'node:http';
import { type BlockList, isIP, isIPv6 } from 'node:net';
import type { Request } from '@hapi/hapi';

/** How a client sent its request, as far as known. */
export interface Sender {
  /** `''` if the connection is closed. */
  readonly address: string;
  readonly scheme: 'http' | 'https';
  /** `undefined`: the `Host` field is right. */
  readonly host: string | undefined;
}

/** What one proxy reports about a request. */
type Hop = Readonly<Partial<Record<'for' | 'proto' | 'host', string>>>;

/** A request that may have come by a trusted proxy. */
export abstract class ForwardedRequest extends IncomingMessage {
  abstract get sender(): Sender;
}

/** Returns the request class of a listener that trusts the forwarding headers of these proxies. */
export function forwardedRequests(trusted: BlockList): typeof IncomingMessage {
  return class extends ForwardedRequest {
    #sender: Sender | undefined;

    /** Computed once, on first use. */
    get sender(): Sender {
      this.#sender ??= senderOf(this.headers, this.socket.remoteAddress ?? '', trusted);
      return this.#sender;
    }
  };
}

/**
 * Walks back from proxy to proxy while they are trusted. A proxy that hides its client (RFC 7239, section 6.3) stands for it.
 * @param peer the address of the other end of the connection
 */
export function senderOf(headers: IncomingMessage['headers'], peer: string, trusted: BlockList): Sender {
  let sender: Sender = { address: peer, scheme: 'http', host: undefined };
  if (!isIn(trusted, peer)) return sender;
  for (const hop of hopsOf(headers).reverse()) {
    const address = addressOf(hop.for ?? '');
    sender = {
      address: address ?? sender.address,
      scheme: schemeOf(hop.proto) ?? sender.scheme,
      host: hop.host !== undefined && isHost(hop.host) ? hop.host : sender.host,
    };
    if (address === null || !isIn(trusted, address)) break;
  }
  return sender;
}

/**
 * Returns the reports of the proxies, the nearest one last. Returns nothing if both kinds of headers are present:
 * a proxy that writes one kind passes on the other kind unchecked from the client.
 */
function hopsOf({ forwarded, ...headers }: IncomingMessage['headers']): Hop[] {
  const [addresses, protos, hosts] = ['for', 'proto', 'host'].map((name) => {
    const sent = headers[`x-forwarded-${name}`];
    return sent === undefined
      ? undefined
      : String(sent)
          .split(',')
          .map((it) => it.trim());
  });
  const some = addresses ?? protos ?? hosts;
  if (forwarded !== undefined) return some === undefined ? forwardedHops(forwarded) : [];
  if (some === undefined) return [];
  const hops: readonly (string | undefined)[] = addresses ?? [undefined];
  return hops.map((address, place) => ({
    ...(address !== undefined && { for: address }),
    ...told('proto', protos, { place, of: hops.length }),
    ...told('host', hosts, { place, of: hops.length }),
  }));
}

/** Returns one value per proxy. If proxies replace a field instead of appending to it, the value is of the nearest one. */
function told(
  name: 'proto' | 'host',
  values: readonly string[] | undefined,
  { place, of }: { readonly place: number; readonly of: number },
): Hop {
  const value = values?.length === of ? values[place] : place === of - 1 ? values?.at(-1) : undefined;
  return value === undefined ? {} : { [name]: value };
}

/** A pair of `Forwarded` with its separator (RFC 7239, section 4). Some proxies omit the quotes around addresses. */
const pair =
  /[ \t]*(?:(?<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"(?<quoted>(?:[^"\\]|\\.)*)"|(?<bare>[^\s;,"]+))[ \t]*)?(?<end>[;,]|$)/y;

/** Returns the elements of `Forwarded`; none if the field is malformed. */
function forwardedHops(text: string): Hop[] {
  const hops: Record<string, string>[] = [{}];
  pair.lastIndex = 0;
  for (;;) {
    const { name, quoted, bare, end } = pair.exec(text)?.groups ?? {};
    if (end === undefined) return [];
    const hop = hops.at(-1) as Record<string, string>;
    if (name !== undefined) {
      if (Object.hasOwn(hop, name.toLowerCase())) return [];
      hop[name.toLowerCase()] = bare ?? (quoted as string).replace(/\\(.)/g, '$1');
    }
    if (end === '') return hops;
    if (end === ',') hops.push({});
  }
}

/** Returns the address in a text, which may have a port; `null` if there is none. */
function addressOf(text: string): string | null {
  const [, bracketed, bare] =
    /^(?:\[([0-9A-Fa-f:.]+)\]|(\d+(?:\.\d+){3}))(?::(?:\d{1,5}|_[\w.-]+))?$/.exec(text) ?? [];
  const address = bracketed ?? bare ?? text;
  const version = isIP(address);
  return version === 0 || address.includes('%') || (version === 4 && bracketed !== undefined)
    ? null
    : address;
}

function schemeOf(proto: string | undefined): Sender['scheme'] | null {
  const scheme = proto?.toLowerCase();
  return scheme === 'http' || scheme === 'https' ? scheme : null;
}

/** Returns whether a list has an address. IPv4 addresses in IPv6 form match, and zones are ignored. */
function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/** Returns the address of the client, also through trusted proxies; `''` if the connection is closed. */
export function clientAddressOf(request: IncomingMessage): string {
  return request instanceof ForwardedRequest ? request.sender.address : (request.socket.remoteAddress ?? '');
}

/** Returns whether a trusted proxy reports that the client used TLS. */
export function cameByTls(request: IncomingMessage): boolean {
  return request instanceof ForwardedRequest && request.sender.scheme === 'https';
}

/** Returns an IPv4 address, or the first 64 bits of an IPv6 address: one client has all the others. */
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

/** The base URL of a request, without a trailing slash. */
export function baseUrlOf({ raw, headers, server }: Request, setting: string | undefined): string {
  if (setting !== undefined) return setting;
  const { scheme, host } = raw.req instanceof ForwardedRequest ? raw.req.sender : direct;
  return `${scheme}://${host ?? headers['host'] ?? `${server.info.host}:${server.info.port}`}`;
}

/** A request without a trusted proxy. */
const direct = { scheme: 'http', host: undefined };

/** RFC 3986, sections 3.2.2 and 3.2.3: a registered name, IPv4 address or IPv6 literal, then a port. */
const hostAndPort = /^(?:[A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?$/;

/** The longest host: a name (RFC 1035, section 2.3.4) with a final dot and a port. */
const maxHostLength = 253 + '.:65535'.length;

/** Returns whether a `Host` field is a valid host, with or without a port. */
export function isHost(text: string): boolean {
  if (text === lastHost) return true;
  if (text.length > maxHostLength || !hostAndPort.test(text) || !URL.canParse(`http://${text}`)) return false;
  lastHost = text;
  return true;
}

/** A cache of one entry: the next host is usually the same. */
let lastHost: string | undefined;
