// In: the real list. Out: it served: a Redis, an import, a key and an API.

import type { Fsync } from '../demo/private-redis.ts';
import type { BenchRun } from './bench-run.ts';
import { createKey, importProducts, type Store, serve } from './medref.ts';

/** A medref that serves a list. */
export interface Service {
  readonly origin: string;
  readonly key: string;
  readonly pid: number;
  readonly redisPid: number;
  readonly store: Store;
  stop(): Promise<void>;
}

/** Starts everything that serving takes, on the list in a file. @param fsync of Redis; as it is advised unless it is given */
export async function startService(run: BenchRun, file: string, fsync?: Fsync): Promise<Service> {
  const { workspace } = run;
  const redis = await workspace.startRedis(fsync);
  const store = { redisUrl: redis.url, keyPrefix: 'medref' };
  const { read, durationMs } = await importProducts(workspace, store, file);
  run.say(`imported ${read} products in ${(durationMs / 1000).toFixed(1)} s`);
  const key = await createKey(workspace, store);
  const api = await serve(workspace, store);
  return {
    ...{ origin: api.address, key, pid: api.pid, redisPid: redis.pid, store },
    async stop() {
      await api.stop();
      await redis.stop();
    },
  };
}
