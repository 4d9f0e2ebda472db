// Connections of the product as connections to a single server, and the commands that a server receives.

import { Cluster, type Redis as OneServer } from 'ioredis';
import type { Redis } from '../../shared/redis/connections.ts';

/** Returns the same connection with the type of one to a single server. @throws Error if it is to a Cluster */
export function oneServer(redis: Redis): OneServer {
  if (redis instanceof Cluster) throw new Error('This is a connection to a Cluster.');
  return redis;
}

/** Returns the servers that accept writes: the primaries of a Cluster, or the only server. */
export function masters(redis: Redis): OneServer[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/** A command: its name in lower case, its first key, and its other arguments. */
export interface AskedCommand {
  readonly name: string;
  readonly key: string;
  readonly others: readonly string[];
}

/** Returns the commands that a Redis receives from all its clients while a function runs. */
export async function commandsDuring(redis: Redis, run: () => Promise<unknown>): Promise<AskedCommand[]> {
  const monitor = await oneServer(redis).monitor();
  const asked: AskedCommand[] = [];
  const end = 'all before has run';
  const isOver = new Promise<void>((resolve) => {
    monitor.on('monitor', (_time: string, [name = '', key = '', ...others]: string[]) => {
      if (key === end) resolve();
      else asked.push({ name: name.toLowerCase(), key, others });
    });
  });
  try {
    await run();
    await redis.echo(end);
    await isOver;
    return asked;
  } finally {
    monitor.disconnect();
  }
}
