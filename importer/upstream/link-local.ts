// Refuses link-local addresses, at which clouds serve secrets of a machine: only the operator's own URL may name one.

import { BlockList, isIPv6, type LookupFunction } from 'node:net';

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
