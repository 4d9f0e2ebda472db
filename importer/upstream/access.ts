// The limits of requests to upstream, refused addresses, and the error that names a failure.

import { BlockList, isIPv6, type LookupFunction } from 'node:net';
import { truncate } from '../../shared/text.ts';

/** Limits on requests to upstream. */
export interface UpstreamLimits {
  /** How often a document is requested, including the first time. */
  readonly attempts: number;
  /** Time from the first attempt to the headers of the response, in ms: all waits, timeouts and redirects. */
  readonly requestMs: number;
  /** Time to connect, in ms. */
  readonly connectMs: number;
  /** Time from the request to the headers of its response, in ms. */
  readonly headersMs: number;
  /** Wait before the second attempt, in ms; doubled for each further one, minus a random part. */
  readonly backoffMs: number;
  /** Redirects per attempt. */
  readonly redirects: number;
  /** Silence during a body, in ms. */
  readonly idleMs: number;
  /** The importer gives up below this rate of a body, in bytes per second, measured over {@link slowMs}. */
  readonly slowBytesPerSecond: number;
  /** Time spent waiting for the body, without backpressure, after which its rate is checked, in ms. */
  readonly slowMs: number;
  /** Size of a decoded body, in bytes. */
  readonly bodyBytes: number;
}

/** The limits in production. */
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

/** How an import reaches its upstream. */
export interface Access {
  readonly limits: UpstreamLimits;
  readonly token: string | undefined;
  readonly signal: AbortSignal;
  /** Resolves host names; tests use their own names. */
  readonly lookup?: LookupFunction | undefined;
  /** Certificates to trust instead of Node's, for tests. */
  readonly ca?: string | undefined;
}

/** A failure of upstream. Its message is one sentence and becomes the reason of the import. */
export class UpstreamError extends Error {
  override name = 'UpstreamError';
}

/** How many characters of upstream's text a reason shows. */
const maxQuotedLength = 200;

/** Returns text from upstream as reasons quote it. */
export function quoted(text: string): string {
  return truncate(text, maxQuotedLength);
}

/** Returns a URL for messages: without credentials, and without the query, which may hold a secret. */
export function urlText(url: URL): string {
  return quoted(`${url.protocol}//${url.host}${url.pathname}`);
}

/** Returns the code of an error that Node or a library set. */
export function codeOf(error: unknown): string {
  return (error as { code?: string } | null)?.code ?? (error instanceof Error ? error.name : 'unknown');
}

/** Returns a duration for messages. */
export function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 100) / 10} s`;
}

/** Advice for an upstream that is slow or fails. */
export const slowAdvice = 'Contact the operator of the upstream, or import again later.';

/** Longer URLs are not requested: all servers should support this length (RFC 9110, section 4.1). */
export const maxUrlLength = 8_000;

/** Resolves a URL that upstream names; `null` if it is no URL, or too long. */
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
 * Makes connections refuse link-local addresses. It checks the address that is connected to, so a name cannot change between
 * two lookups.
 */
export function refusingLinkLocal(lookup: LookupFunction): LookupFunction {
  return (host, options, callback) =>
    lookup(host, options, (error, found, family) => {
      const all = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address);
      if (error === null && all.some(isLinkLocal)) callback(new LinkLocalError(host), found, family);
      else callback(error, found, family);
    });
}
