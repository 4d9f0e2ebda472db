// One importer process that imports again and again. In: by messages, until how many imports; Redis and upstream by
// arguments. Out: by messages, how many there were and what memory the process has after its garbage was collected.

import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { pino } from 'pino';
import { importCollection } from '../../importer/import.ts';
import { products } from '../../shared/collections/product.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';

// What V8 compiles as code gets hot lies in the heap, and grows for thousands of imports though no object is left over.
setFlagsFromString('--no-opt');

const [redisUrl = '', upstreamUrl = ''] = process.argv.slice(2);

/** What the process tells of itself. */
export interface ImporterMemory {
  readonly imports: number;
  readonly rss: number;
  readonly heap: number;
}

const redis = await connectForWriting(redisUrl);
const logger = pino({ level: 'silent' });
let imports = 0;

process.on('message', async (until: number) => {
  while (imports < until) await importOnce();
  process.send?.(await memory());
});
process.on('disconnect', () => redis.disconnect());

async function importOnce(): Promise<void> {
  const { outcome, reason } = await importCollection(products, {
    ...{ redis, keyPrefix: 'medref', keepVersions: 3, logger, maxNumberWaitMs: 0 },
    upstream: { url: new URL(upstreamUrl), token: undefined },
    ...{ maxShrinkPercent: 20, maxRejectPercent: 1, maxChangePercent: 100 },
    ...{ force: false, dryRun: false, scheduled: false },
  });
  if (outcome !== 'published') throw new Error(`Import ${imports + 1}: ${outcome}, ${reason}`);
  imports += 1;
}

/** What is only waiting to be collected does not count; some of it is let go of a turn later. */
async function memory(): Promise<ImporterMemory> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await sleep(100);
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { imports, rss, heap: heapUsed };
}
