// What an import may request from upstream: limits, refused addresses, and the error that names what failed.

import { BlockList, isIPv6, type LookupFunction } from 'node:net';
import { truncate } from '../../shared/text.ts';

/** What the importer allows an upstream. */
export interface UpstreamLimits {
  /** How often a document is requested, the first time included. */
  readonly attempts: number;
  /** From the first attempt to the headers of the response: waits, timeouts and redirects together. */
  readonly requestMs: number;
  /** Until a connection is made. */
  readonly connectMs: number;
  /** From the request to the headers of its response. */
  readonly headersMs: number;
  /** Wait before the second attempt; doubled for each further one, less a random part. */
  readonly backoffMs: number;
  /** Redirects followed in one attempt. */
  readonly redirects: number;
  /** Silence in the middle of a body. */
  readonly idleMs: number;
  /** Mean rate of a body below which the import gives up, over {@link slowMs} of waiting for it. */
  readonly slowBytesPerSecond: number;
  /** Time spent waiting for the body, backpressure not counted, after which its rate is checked. */
  readonly slowMs: number;
  /** Size of a decoded body. */
  readonly bodyBytes: number;
}

/** The limits that hold outside of tests. */
export const upstreamLimits: UpstreamLimits = Object.freeze({
  attempts: 4,
  requestMs: 60_000,
  connectMs: 10_000,
  headersMs: 15_000,
  backoffMs: 500,
  redirects: 5,
  idleMs: 30_000,
  slowBytesPerSecond: 1024,
  slowMs: 60_000,
  bodyBytes: 4 * 1024 ** 3,
});

/** What one import reaches its upstream with. */
export interface Access {
  readonly limits: UpstreamLimits;
  readonly token: string | undefined;
  readonly signal: AbortSignal;
  /** Looks up host names; tests have names of their own. */
  readonly lookup?: LookupFunction | undefined;
  /** Certificates to trust instead of those that Node trusts, for tests. */
  readonly ca?: string | undefined;
}

/** A failure of the upstream; its message is one plain sentence, with which the import ends. */
export class UpstreamError extends Error {
  override name = 'UpstreamError';
}

/** How much a reason shows of one text that upstream sent. */
const maxQuotedLength = 200;

/** Returns text that upstream sent, as reasons repeat it. */
export function quoted(text: string): string {
  return truncate(text, maxQuotedLength);
}

/** Returns a URL as reasons name it: without credentials and without the query, which may hold a secret. */
export function urlText(url: URL): string {
  return quoted(`${url.protocol}//${url.host}${url.pathname}`);
}

/** Returns the code of an error, as Node and its libraries set it. */
export function codeOf(error: unknown): string {
  return (error as { code?: string } | null)?.code ?? (error instanceof Error ? error.name : 'unknown');
}

/** Returns a time as reasons name it. */
export function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 100) / 10} s`;
}

/** What to do about an upstream that is slow or fails. */
export const slowAdvice = 'Ask who runs the upstream, or import again later.';

/** A longer URL is not requested: all servers should support this length (RFC 9110, section 4.1). */
export const maxUrlLength = 8_000;

/** Returns the URL that upstream names, relative to where it names it; null if it is no URL, or too long. */
export function namedUrl(text: string, base: URL): URL | null {
  return text.length <= maxUrlLength && URL.canParse(text, base.href) ? new URL(text, base) : null;
}

const addresses = new BlockList();
addresses.addSubnet('169.254.0.0', 16, 'ipv4'); // RFC 3927
addresses.addSubnet('fe80::', 10, 'ipv6'); // RFC 4291, section 2.5.6
addresses.addAddress('fd00:ec2::254', 'ipv6'); // metadata of EC2
addresses.addAddress('100.100.100.200', 'ipv4'); // metadata of Alibaba Cloud

/** Refused by name, because a proxy would resolve it. */
const names = /^metadata\.(google\.internal|goog)\.?$/i;

/** A host name resolves to such an address. */
export class LinkLocalError extends Error {
  readonly code = 'ERR_LINK_LOCAL';
}

/** Returns whether the host of a URL, or an address, is link-local. */
export function isLinkLocal(host: string): boolean {
  const address = host.replace(/^\[|\]$/g, '');
  return names.test(host) || addresses.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/**
 * Makes the lookup of connections refuse link-local addresses. The address that is checked is the one that is connected
 * to, so that a name cannot change between two lookups.
 */
export function refusingLinkLocal(lookup: LookupFunction): LookupFunction {
  return (host, options, callback) =>
    lookup(host, options, (error, found, family) => {
      const all = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address);
      if (error === null && all.some(isLinkLocal)) callback(new LinkLocalError(host), found, family);
      else callback(error, found, family);
    });
}
