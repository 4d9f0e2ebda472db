// Addresses at which machines and clouds tell secrets of themselves: nobody but the operator leads an import there.

import { BlockList, isIPv6, type LookupFunction } from 'node:net';

const addresses = new BlockList();
addresses.addSubnet('169.254.0.0', 16, 'ipv4'); // RFC 3927
addresses.addSubnet('fe80::', 10, 'ipv6'); // RFC 4291, section 2.5.6
addresses.addAddress('fd00:ec2::254', 'ipv6'); // metadata of EC2
addresses.addAddress('100.100.100.200', 'ipv4'); // metadata of Alibaba Cloud

/** A proxy would look it up where we do not see it. */
const names = /^metadata\.(google\.internal|goog)\.?$/i;

/** What a name stands for is such an address. */
export class LinkLocalError extends Error {
  readonly code = 'ERR_LINK_LOCAL';
}

/** Whether the host of a URL, or an address, is one of them. */
export function isLinkLocal(host: string): boolean {
  const address = host.replace(/^\[|\]$/g, '');
  return names.test(host) || addresses.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/**
 * Looks names up for connections: the very address that is found good is the one that is connected to, so that no name can
 * be another one between two look-ups.
 */
export function refusingLinkLocal(lookup: LookupFunction): LookupFunction {
  return (host, options, callback) =>
    lookup(host, options, (error, found, family) => {
      const all = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address);
      if (error === null && all.some(isLinkLocal)) callback(new LinkLocalError(host), found, family);
      else callback(error, found, family);
    });
}
