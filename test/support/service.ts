// An empty Redis and a new API for each test of a suite, and functions that publish versions and wait until readers see them.

import { expect } from 'chai';
import type { ImportResult } from '../../importer/report.ts';
import { rollBack } from '../../importer/rollback.ts';
import type { Collection } from '../../shared/collections/define.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { startApi, type TestApi } from './api.ts';
import { type ImportChanges, importRecords } from './importing.ts';
import { useRedis } from './redis-server.ts';

/** Options that differ from those of an import of products that skips all checks. */
export type ImportOptions = ImportChanges & { readonly collection?: Collection };

export interface Service {
  redis(): Redis;
  redisUrl(): string;
  api(): TestApi;
  /** Imports records; returns the report with any outcome. */
  importList(records: readonly unknown[], options?: ImportOptions): Promise<ImportResult>;
  /** Publishes valid records, and waits until readers see them. @returns the new version's number */
  publish(records: readonly unknown[], options?: ImportOptions): Promise<number>;
  /** Rolls back to a version of products, and waits until readers see it. @returns the new version's number */
  goBackTo(version: number): Promise<number>;
  /** Starts a new API, which remembers nothing. */
  restartApi(): Promise<void>;
  /** Waits until readers see a version; fails after one second. */
  awaitLive(version: number, collection?: Collection): Promise<void>;
}

/** Declares one service for a mocha suite; each test starts without data of the test before. */
export function useService(): Service {
  const server = useRedis();
  let redis: Redis;
  let api: TestApi;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    api = await startApi({ redisUrl: server().url });
  });
  afterEach(() => api.stop());

  const service: Service = {
    redis: () => redis,
    redisUrl: () => server().url,
    api: () => api,
    importList: (records, { collection = productCollection, ...changes } = {}) =>
      importRecords(records, collection, { redisUrl: server().url, force: true, ...changes }),
    async publish(records, options = {}) {
      const { outcome, version, reason, rejected } = await service.importList(records, options);
      expect({ outcome, rejected }, reason ?? '').to.deep.equal({ outcome: 'published', rejected: 0 });
      await service.awaitLive(version as number, options.collection);
      return version as number;
    },
    async goBackTo(to) {
      const result = await rollBack(productCollection, {
        redis,
        keyPrefix: 'medref',
        to,
        maxNumberWaitMs: 0,
      });
      if (result.outcome !== 'rolled-back') throw new Error(`The rollback ended as ${result.outcome}.`);
      await service.awaitLive(result.report.version as number);
      return result.report.version as number;
    },
    async restartApi() {
      await api.stop();
      api = await startApi({ redisUrl: server().url });
    },
    async awaitLive(version, { name } = productCollection) {
      const deadline = Date.now() + 1_000;
      while ((await api.get(`/${name}?per-page=1`)).headers.get('medref-version') !== String(version)) {
        expect(Date.now(), `version ${version} is not answered from within a second`).to.be.below(deadline);
      }
    },
  };
  return service;
}
