// A real admin listener on a free port, over a real Redis, with a dashboard.

import type { AddressInfo } from 'node:net';
import { createAdminServer } from '../../api/admin/admin-server.ts';
import { createMetrics } from '../../api/admin/metrics.ts';
import { VersionComparison } from '../../api/reads/compared-versions.ts';
import { LiveVersions } from '../../api/reads/live-versions.ts';
import { ReadModel } from '../../api/reads/read-model.ts';
import { importedCollections, servedCollections } from '../../shared/collections/collections.ts';
import { connectForListening, connectForServing } from '../../shared/redis/connections.ts';
import { asUser } from './redis-users.ts';

export interface TestDashboard {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  readonly port: number;
  stop(): Promise<void>;
}

/** What may differ from the usual dashboard. */
export interface TestDashboardOptions {
  readonly token?: string;
  readonly host?: string;
  /** How many records the comparison of members looks at. */
  readonly most?: number;
  readonly isImported?: boolean;
  /** How long a page may take, in ms. */
  readonly withinMs?: number;
  readonly onWrongPassword?: (message: string) => void;
}

/** Starts an admin listener; whoever calls this calls `stop`. */
export async function startDashboard({
  redisUrl,
  token,
  host = '127.0.0.1',
  most,
  isImported = true,
  withinMs,
  onWrongPassword,
}: TestDashboardOptions & { readonly redisUrl: string }): Promise<TestDashboard> {
  const keyPrefix = 'medref';
  const redis = connectForServing(asUser(redisUrl, 'api'));
  const listener = connectForListening(asUser(redisUrl, 'api'));
  await new Promise((resolve) => redis.once('ready', resolve));
  const live = new LiveVersions({ redis, listener, keyPrefix, sources: importedCollections });
  const readModel = new ReadModel({ redis, live, keyPrefix, onDamage: () => undefined });
  const server = await createAdminServer({
    scraped: createMetrics().registry,
    dashboard: {
      token,
      ...(withinMs !== undefined && { withinMs }),
      ...(onWrongPassword && { onWrongPassword }),
      sources: {
        defaultRate: undefined,
        ...{ redis, keyPrefix, readModel, served: servedCollections, isImported: () => isImported },
        schedule: { cron: '0 3 * * *', timezone: 'UTC' },
        comparison: new VersionComparison(readModel, most === undefined ? {} : { most }),
      },
    },
    host,
    port: 0,
  });
  live.start();
  await server.start();
  const { port } = server.listener.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    async stop() {
      live.stop();
      await server.stop({ timeout: 1_000 });
      redis.disconnect();
      listener.disconnect();
    },
  };
}

/** One admin listener for a mocha suite, on the suite's Redis: started before its tests, stopped after them. */
export function useDashboard(
  redis: () => { readonly url: string },
  options: TestDashboardOptions = {},
): () => TestDashboard {
  let dashboard: TestDashboard | undefined;
  before(async () => {
    dashboard = await startDashboard({ redisUrl: redis().url, ...options });
  });
  after(async () => {
    await dashboard?.stop();
  });
  return () => {
    if (dashboard === undefined)
      throw new Error('The dashboard of a suite is there inside its hooks and tests only.');
    return dashboard;
  };
}
