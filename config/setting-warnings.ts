// In: settings, each of them right. Out: what is odd about them together, as sentences for an operator.

import { BlockList, isIP } from 'node:net';
import type { Settings } from './settings.ts';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** What an operator should look at in the settings; none where nothing is odd. */
export function settingWarnings({ apiHost, baseUrl }: Pick<Settings, 'apiHost' | 'baseUrl'>): string[] {
  if (baseUrl !== undefined || isLoopback(apiHost)) return [];
  return [
    `BASE_URL is not set, and API_HOST is ${apiHost}: the links of all answers begin with "http://" and the Host of the ` +
      'request, also where a proxy ends TLS. Set BASE_URL to the public address of the API, such as https://medref.example.',
  ];
}

function isLoopback(host: string): boolean {
  const version = isIP(host);
  return version === 0
    ? host.toLowerCase() === 'localhost'
    : loopback.check(host, version === 4 ? 'ipv4' : 'ipv6');
}
