// A connection of the product as what it is in most tests: to one server.

import { Cluster, type Redis as OneServer } from 'ioredis';
import type { Redis } from '../../shared/redis/connections.ts';

/** The same connection, which can then do what only one to a single server can. @throws Error where it is to a Cluster */
export function oneServer(redis: Redis): OneServer {
  if (redis instanceof Cluster) throw new Error('This is a connection to a Cluster.');
  return redis;
}

/** The servers that have the data: the masters of a Cluster. */
export function masters(redis: Redis): OneServer[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}
