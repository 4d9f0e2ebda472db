// Who sent a request, by which scheme and to which host, if it came by trusted proxies; and what links begin with.

import { IncomingMessage } from 'node:http';
import { type BlockList, isIP, isIPv6 } from 'node:net';
import type { Request } from '@hapi/hapi';

/** How a request left its client, as far as that is known. */
export interface Sender {
  /** `''` where its connection is gone. */
  readonly address: string;
  readonly scheme: 'http' | 'https';
  /** `undefined`: as its `Host` says. */
  readonly host: string | undefined;
}

/** What one proxy says of the request that came to it. */
type Hop = Readonly<Partial<Record<'for' | 'proto' | 'host', string>>>;

/** A request that may have come by a trusted proxy. */
export abstract class ForwardedRequest extends IncomingMessage {
  abstract get sender(): Sender;
}

/** The requests of a listener that believes what these proxies say of who sent them. */
export function forwardedRequests(trusted: BlockList): typeof IncomingMessage {
  return class extends ForwardedRequest {
    #sender: Sender | undefined;

    /** Looked up once, as it is asked for. */
    get sender(): Sender {
      this.#sender ??= senderOf(this.headers, this.socket.remoteAddress ?? '', trusted);
      return this.#sender;
    }
  };
}

/**
 * Goes back from proxy to proxy, for as long as they are trusted. One that does not say from whom it had the request, or
 * hides it (RFC 7239, section 6.3), stands for its clients.
 * @param peer who is at the other end of the connection
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
 * What the proxies say, the nearest one last. With both kinds of headers nothing is known: a proxy that writes one of them
 * passes on the other one as any client may have sent it.
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

/** Proxies that each add to one list, and set another anew, leave one value, which the nearest one has set. */
function told(
  name: 'proto' | 'host',
  values: readonly string[] | undefined,
  { place, of }: { readonly place: number; readonly of: number },
): Hop {
  const value = values?.length === of ? values[place] : place === of - 1 ? values?.at(-1) : undefined;
  return value === undefined ? {} : { [name]: value };
}

/** One pair of `Forwarded`, with what ends it (RFC 7239, section 4); some write addresses without the quotes they need. */
const pair =
  /[ \t]*(?:(?<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"(?<quoted>(?:[^"\\]|\\.)*)"|(?<bare>[^\s;,"]+))[ \t]*)?(?<end>[;,]|$)/y;

/** The elements of `Forwarded`; none where it is malformed. */
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

/** An address with or without a port, as proxies name it; `null` where it is none. */
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

/** An address of IPv4 counts as one where it came as one of IPv6, too; a zone is of no account. */
function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

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

/** The base URL of a request, without a trailing slash. */
export function baseUrlOf({ raw, headers, server }: Request, setting: string | undefined): string {
  if (setting !== undefined) return setting;
  const { scheme, host } = raw.req instanceof ForwardedRequest ? raw.req.sender : direct;
  return `${scheme}://${host ?? headers['host'] ?? `${server.info.host}:${server.info.port}`}`;
}

/** Of a request that came by no proxy, or by one that is not believed. */
const direct = { scheme: 'http', host: undefined };

/** RFC 3986, section 3.2.2 and 3.2.3: a registered name or IPv4 address, or an IPv6 literal, then a port. */
const hostAndPort = /^(?:[A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?$/;

/** The longest host: a name (RFC 1035, section 2.3.4), with a dot at its end and a port. */
const maxHostLength = 253 + '.:65535'.length;

/** Whether a `Host` field has the form of a host, with or without a port. */
export function isHost(text: string): boolean {
  if (text === lastHost) return true;
  if (text.length > maxHostLength || !hostAndPort.test(text) || !URL.canParse(`http://${text}`)) return false;
  lastHost = text;
  return true;
}

/** The host that was asked for last: most often it is the next one too. */
let lastHost: string | undefined;
