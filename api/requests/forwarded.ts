// In: a request that came by a proxy, and which proxies are trusted. Out: who sent it, by which scheme and to which host.

import { IncomingMessage } from 'node:http';
import { type BlockList, isIP, isIPv6 } from 'node:net';
import { isHost } from './host.ts';

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
