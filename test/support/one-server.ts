// A connection of the product as one to a single server, and the commands that a server receives.

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

/** A command: its name in lower case, its first key, and the rest. */
export interface AskedCommand {
  readonly name: string;
  readonly key: string;
  readonly others: readonly string[];
}

/** The commands that reach a Redis while something runs, of all its clients. */
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
