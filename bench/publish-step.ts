// In: a Redis. Out: how long the step took that made a version live, by Redis' own slow log: all other commands of Redis
// waited for it.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Redis } from '../shared/redis/connections.ts';
import { project } from './project.ts';

/** Shorter commands are not kept, and of the others the last ones: to keep them costs an import nothing that can be measured. */
const [slowerThanMicros, kept] = [20, 1_000];

/** Has Redis keep what takes long. */
export async function watchPublications(redis: Redis): Promise<{ lastMs(): Promise<number | null> }> {
  const script = await readFile(join(project, 'dist', 'shared', 'store', 'publish.lua'), 'utf8');
  await redis.config('SET', 'slowlog-log-slower-than', String(slowerThanMicros));
  await redis.config('SET', 'slowlog-max-len', String(kept));
  await redis.call('SLOWLOG', 'RESET');
  return {
    async lastMs() {
      const entries = (await redis.call('SLOWLOG', 'GET', String(kept))) as [
        number,
        number,
        number,
        string[],
      ][];
      // The last one is first.
      const micros = entries.find(([, , , [, text = '']]) => script.startsWith(text.slice(0, 100)))?.[2];
      return micros === undefined ? null : micros / 1000;
    },
  };
}
