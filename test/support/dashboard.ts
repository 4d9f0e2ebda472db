// Starts a real admin listener with a dashboard on a free port, and stores data with hostile names for it.

import type { AddressInfo } from 'node:net';
import { createMetrics } from '../../api/admin/metrics.ts';
import { createAdminServer } from '../../api/admin/server.ts';
import { VersionComparison } from '../../api/read/compared-versions.ts';
import { LiveVersions } from '../../api/read/live-versions.ts';
import { ReadModel } from '../../api/read/read-model.ts';
import { importedCollections, servedCollections } from '../../shared/collections/collections.ts';
import { companies as companyCollection } from '../../shared/collections/companies.ts';
import { type Product, products as productCollection } from '../../shared/collections/products.ts';
import { connectForListening, connectForServing, type Redis } from '../../shared/redis/connections.ts';
import { createApiKey } from '../../shared/store/api-keys.ts';
import { importRecords } from './importing.ts';
import { companies, product, products } from './records.ts';
import { asUser } from './redis-users.ts';

export interface TestDashboard {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  readonly port: number;
  stop(): Promise<void>;
}

/** Options that differ from those of the usual dashboard. */
export interface TestDashboardOptions {
  readonly token?: string;
  readonly host?: string;
  /** How many records the comparison of members reads. */
  readonly most?: number;
  readonly isImported?: boolean;
  /** How long a page may take, in ms. */
  readonly withinMs?: number;
  readonly onWrongPassword?: (message: string) => void;
}

/** Starts an admin listener; the caller calls `stop`. */
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
        instance: { release: '1.2.3', host: 'host', redis: '127.0.0.1:6379' },
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

/** Declares one admin listener for a mocha suite, on the suite's Redis. It starts before the tests and stops after them. */
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

/** Names with markup, characters that change the direction of a line, control characters, and very long names. */
export const hostileNames = {
  markup: `<script>alert(1)</script>"><img src=x onerror=alert(1)>'&amp;`,
  direction: '\u202eTELBAT \u2067abc\u200f\u061c',
  controls: 'A\u0000B\u001b[31mC\u007f\u0085D\nE\tF\u2028G\ud800H',
  long: `L${'O'.repeat(9_998)}G`,
  combining: `Z${'\u0301\u0327'.repeat(400)}`,
} as const;

/** The two published versions, in order of publication. */
export interface DashboardData {
  readonly first: number;
  readonly second: number;
}

/** How many products the first version has. In the second version, the first products have the hostile names. */
export const productCount = 60;

/** Publishes two versions of products and one of companies, runs an import that is refused, and creates keys. */
export async function fillDashboard(redis: Redis, redisUrl: string): Promise<DashboardData> {
  const list = products(productCount);
  const options = { redisUrl, keyPrefix: 'medref' };
  const first = await importRecords(list, productCollection, options);
  const names = Object.values(hostileNames);
  const renamed = list.map((it, n): Product => {
    const name = names[n];
    return name === undefined ? it : { ...it, product: { ...it.product, name } };
  });
  const flaws = [
    {
      ...product(901),
      barcodes: [
        { barcode: '8690000000901', skrsStatus: null },
        { barcode: '<b>12</b>', skrsStatus: 'Aktif' },
      ],
    },
    { ...product(902), product: { id: 902, name: '\u202e \u0000' } },
    renamed[0],
  ];
  const second = await importRecords(
    [...renamed.slice(0, -2), product(61), product(62), ...flaws],
    productCollection,
    {
      ...options,
      maxRejectPercent: 50,
    },
  );
  await importRecords(companies(3), companyCollection, options);
  await importRecords([...list.slice(0, 20), ...flaws], productCollection, {
    ...options,
    maxRejectPercent: 50,
  });
  await createApiKey(redis, 'medref', { client: 'Pharmacy 7', expiresAt: null, rate: '10/s' });
  await createApiKey(redis, 'medref', { client: hostileNames.markup, expiresAt: new Date(0), rate: null });
  return { first: first.version as number, second: second.version as number };
}
