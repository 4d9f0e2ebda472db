// Parses REDIS_URL: one server by address or socket, Sentinels, or nodes of a Cluster.

import { isIP } from 'node:net';

/** An address of a server; an IPv6 address without brackets. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** A URL of one server, which ioredis parses. */
export interface OneServer {
  readonly kind: 'one';
  readonly url: string;
}

/** A server on this machine, by its socket. */
export interface SocketServer {
  readonly kind: 'socket';
  readonly path: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly db: number;
}

/** A URL of several servers. */
interface SeveralServers {
  readonly hosts: readonly HostPort[];
  readonly hasTls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** Sentinels, and the name of the primary that they watch. */
export interface SentinelServers extends SeveralServers {
  readonly kind: 'sentinel';
  readonly master: string;
}

/** Some nodes of a Cluster; they know the others. */
export interface ClusterServers extends SeveralServers {
  readonly kind: 'cluster';
}

export type Servers = OneServer | SocketServer | SentinelServers | ClusterServers;

const defaultPorts = { sentinel: 26_379, cluster: 6_379 } as const;

/** Credentials may contain separators in percent-encoded form (RFC 3986, section 3.2.1). */
const severalPattern =
  /^(?<scheme>rediss?)\+(?<kind>sentinel|cluster):\/\/(?:(?<credentials>[^/?#]*)@)?(?<hosts>[^@/?#]+)(?:\/(?<master>[^/?#]*))?$/i;

/** `unix:/path` or `unix://user:password@/path`, optionally with `?db=1`. */
const socketPattern =
  /^unix:(?:\/\/(?:(?<credentials>[^/?#]*)@)?)?(?<path>\/[^/?#][^?#]*)(?:\?db=(?<db>\d{1,9}))?$/i;

/** Parses a REDIS_URL. @throws Error if it is invalid */
export function parseServers(url: string): Servers {
  const socket = socketPattern.exec(url)?.groups;
  if (socket) {
    return {
      kind: 'socket',
      path: decodeURIComponent(socket['path'] as string),
      ...credentialsIn(socket['credentials']),
      db: Number(socket['db'] ?? 0),
    };
  }
  const found = severalPattern.exec(url)?.groups;
  if (!found) return { kind: 'one', url: oneServer(url) };
  const kind = found['kind']?.toLowerCase() as 'sentinel' | 'cluster';
  const several: SeveralServers = {
    hosts: (found['hosts'] as string).split(',').map((text) => parseHost(text, defaultPorts[kind])),
    hasTls: found['scheme']?.toLowerCase() === 'rediss',
    ...credentialsIn(found['credentials']),
  };
  const master = decodeURIComponent(found['master'] ?? '');
  if (kind === 'sentinel') {
    if (master === '' || /[\s/]/.test(master)) throw new Error('no name of a master');
    return { kind, ...several, master };
  }
  if (master !== '') throw new Error('a Cluster has one database, and no name'); // A Cluster has only database 0.
  return { kind, ...several };
}

function credentialsIn(text = ''): Pick<SeveralServers, 'username' | 'password'> {
  const [user = '', ...password] = text.split(':');
  return {
    username: decodeURIComponent(user) || undefined,
    password: decodeURIComponent(password.join(':')) || undefined,
  };
}

/** Returns the location of Redis without credentials and spaces. */
export function describeServer(url: string): string {
  const servers = parseServers(url);
  if (servers.kind === 'one') return new URL(servers.url).host;
  if (servers.kind === 'socket') return encodeURI(servers.path);
  const hosts = servers.hosts.map(({ host, port }) => `${isIP(host) === 6 ? `[${host}]` : host}:${port}`);
  return hosts.join(',') + (servers.kind === 'sentinel' ? `/${servers.master}` : '');
}

/** Normalizes a URL of one server. @throws Error if it is invalid */
function oneServer(text: string): string {
  const { protocol, host, pathname, search, hash, href } = new URL(text);
  const isIt = ['redis:', 'rediss:'].includes(protocol) && /^\/?\d*$/.test(pathname);
  if (!isIt || host.includes(',') || search !== '' || hash !== '' || /[?#]$/.test(href))
    throw new Error('not such a URL');
  return href;
}

function parseHost(text: string, defaultPort: number): HostPort {
  const [, v6, name, digits] =
    /^(?:\[([^\]]+)\]|([a-z\d](?:[a-z\d._-]*[a-z\d])?))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const port = digits === undefined ? defaultPort : Number(digits);
  const host = v6 ?? name;
  if (host === undefined || port < 1 || port > 65_535 || (v6 !== undefined && isIP(v6) !== 6))
    throw new Error('not an address');
  return { host, port };
}
