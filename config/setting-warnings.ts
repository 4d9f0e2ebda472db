// Warnings about settings that are accepted, but probably not meant so.

import { BlockList, isIP } from 'node:net';
import { parseServers } from '../shared/redis/server-url.ts';
import type { Settings } from './settings.ts';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Returns what an operator should look at in the settings, as sentences. */
export function settingWarnings(
  settings: Pick<Settings, 'apiHost' | 'baseUrl' | 'trustedProxies' | 'readFrom' | 'redisUrl'>,
): string[] {
  return [...linkWarnings(settings), ...replicaWarnings(settings)];
}

function replicaWarnings({ readFrom, redisUrl }: Pick<Settings, 'readFrom' | 'redisUrl'>): string[] {
  if (readFrom === 'master' || !['one', 'socket'].includes(parseServers(redisUrl).kind)) return [];
  return [
    'READ_FROM is replica, and REDIS_URL names one server: contents are read from that server. Name Sentinels or the nodes of ' +
      'a Cluster instead, which know the replicas.',
  ];
}

function linkWarnings({
  apiHost,
  baseUrl,
  trustedProxies,
}: Pick<Settings, 'apiHost' | 'baseUrl' | 'trustedProxies'>): string[] {
  if (baseUrl !== undefined || trustedProxies !== undefined || isLoopback(apiHost)) return [];
  return [
    `BASE_URL is not set, and API_HOST is ${apiHost}: all links begin with "http://" and the Host of the request, ` +
      'even behind a proxy with TLS. Set BASE_URL to the public address of the API, such as https://medref.example.',
  ];
}

function isLoopback(host: string): boolean {
  const version = isIP(host);
  return version === 0
    ? host.toLowerCase() === 'localhost'
    : loopback.check(host, version === 4 ? 'ipv4' : 'ipv6');
}
