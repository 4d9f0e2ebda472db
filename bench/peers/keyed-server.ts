// In: Redis with API keys. Out: a hapi server with this service's own authentication and no routes yet, for peers.

import type { AddressInfo } from 'node:net';
import { server as hapiServer, type Server } from '@hapi/hapi';
import { bearerKeys } from '../../api/plugins/bearer-keys.ts';
import { ApiKeyring } from '../../api/reads/keyring.ts';
import { connectForServing, type Redis } from '../../shared/redis/connections.ts';

/** What every keyed peer is started with. */
export interface PeerArguments {
  readonly redisUrl: string;
  readonly keyPrefix: string;
  /** What it answers from: the list, or the answers themselves. */
  readonly file: string;
  /** The folder of PostgreSQL's socket, for the peer that uses it. */
  readonly socketFolder: string;
}

/** The arguments, which come as one JSON document. */
export function readPeerArguments(): PeerArguments {
  return JSON.parse(process.argv[2] ?? '{}') as PeerArguments;
}

/** Builds a server whose routes all want a key. */
export async function keyedServer({
  redisUrl,
  keyPrefix,
  compression,
}: {
  redisUrl: string;
  keyPrefix: string;
  /** Whether hapi compresses each answer. */
  compression: boolean;
}): Promise<Server & { app: { redis?: Redis } }> {
  const redis = connectForServing(redisUrl);
  await new Promise((resolve) => redis.once('ready', resolve));
  const server = hapiServer({
    host: '127.0.0.1',
    port: 0,
    ...(compression ? {} : { compression: false as const }),
    routes: { response: { ranges: false }, state: { parse: false, failAction: 'ignore' } },
    debug: false,
  });
  await server.register({
    plugin: bearerKeys,
    options: { keyring: new ApiKeyring({ redis, keyPrefix, onDamage: () => undefined }) },
  });
  return server;
}

/** Tells who started the peer that it is ready. */
export function tellAddress(server: Server): void {
  const { port } = server.listener.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ address: `http://127.0.0.1:${port}` })}\n`);
}
