// What a Redis is asked while something runs, by MONITOR.

import type { Redis } from '../../shared/redis/connections.ts';
import { oneServer } from './one-server.ts';

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
