// medref serve: runs the API in this process or in several, and the admin listener.

import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { ServiceErrorLog } from '../../api/admin/logs.ts';
import { createMetrics, type MetricValues, WorkerMetrics } from '../../api/admin/metrics.ts';
import {
  type AdminServer,
  createAdminServer,
  type DashboardSources,
  type ScrapedMetrics,
} from '../../api/admin/server.ts';
import { VersionComparison } from '../../api/read/compared-versions.ts';
import {
  addressOf,
  drainMs,
  openReads,
  type Reads,
  startDataListener,
  type Watchers,
} from '../../api/service.ts';
import { isWorker, joinPrimary, WorkerPool } from '../../api/workers.ts';
import type { Settings } from '../../config/settings.ts';
import { settingWarnings } from '../../config/settings.ts';
import { readCollectionStates } from '../../shared/collection-status.ts';
import { servedCollections } from '../../shared/collections/collections.ts';
import { historyCap } from '../../shared/import-history.ts';
import { readImporters } from '../../shared/importer-heartbeats.ts';
import { describeServer } from '../../shared/redis/server-url.ts';
import { listActiveClients } from '../../shared/store/client-versions.ts';
import { type CommandContext, exitCodes } from '../context.ts';
import { type OutputOptions, print } from '../output.ts';
import { packageVersion } from '../package-version.ts';
import { aborted, createLogger } from '../session.ts';

/** Serves until SIGTERM. Starts even if Redis is unavailable. @returns the exit code */
export async function serveCommand(context: CommandContext, options: OutputOptions): Promise<number> {
  const logger = createLogger(context);
  const watchers = { logger, metrics: createMetrics(), serviceErrors: new ServiceErrorLog(logger) };
  if (context.settings.workers > 1 && isWorker()) return serveAsWorker(context, watchers);
  for (const warning of settingWarnings(context.settings)) logger.warn(warning);
  const serve = context.settings.workers > 1 ? serveByWorkers : serveAlone;
  return serve(context, watchers, options);
}

async function serveAlone(context: CommandContext, watchers: Watchers, options: OutputOptions) {
  const { settings } = context;
  const signal = context.stopSignal();
  const reads = openReads(settings, watchers);
  try {
    const api = await startDataListener(settings, reads, watchers);
    const admin = await startAdmin(context, { reads, watchers, scraped: watchers.metrics.registry });
    tellAddress(context, api.address, options);
    await aborted(signal);
    await Promise.all([api.stop(), admin?.stop({ timeout: drainMs })]);
    return exitCodes.done;
  } finally {
    reads.close();
  }
}

/** Runs the admin listener, and the API in other processes. */
async function serveByWorkers(context: CommandContext, watchers: Watchers, options: OutputOptions) {
  const { settings } = context;
  const { logger, metrics } = watchers;
  const signal = context.stopSignal();
  const scraped = new WorkerMetrics(metrics.registry, () => pool.collectMetrics());
  const pool = new WorkerPool({
    count: settings.workers,
    logger,
    signal,
    onMetrics: (worker, metrics) => scraped.set(worker, metrics),
    onExit: (worker) => scraped.end(worker),
  });
  signal.addEventListener('abort', () => pool.stop(), { once: true });
  const reads = openReads(settings, watchers);
  try {
    const started = await pool.start();
    if ('code' in started) return started.code;
    const admin = await startAdmin(context, { reads, watchers, scraped });
    tellAddress(context, started.address, options);
    await aborted(signal);
    await Promise.all([pool.stop(), admin?.stop({ timeout: drainMs })]);
    return exitCodes.done;
  } finally {
    await pool.stop();
    reads.close();
  }
}

async function serveAsWorker(context: CommandContext, watchers: Watchers) {
  const metrics = async () => (await watchers.metrics.registry.getMetricsAsJSON()) as MetricValues;
  const primary = joinPrimary(metrics);
  const signal = AbortSignal.any([context.stopSignal(), primary.signal]);
  const reads = openReads(context.settings, watchers);
  try {
    const api = await startDataListener(context.settings, reads, watchers);
    await primary.report({ address: api.address });
    await aborted(signal);
    await api.stop();
    await primary.report({ metrics: await metrics() });
    return exitCodes.done;
  } finally {
    reads.close();
    primary.leave();
  }
}

function tellAddress(context: CommandContext, address: string, options: OutputOptions): void {
  print(context, { address }, options, () => `The API listens at ${address}`);
}

/** The dependencies of the admin listener. */
interface AdminNeeds {
  readonly reads: Reads;
  readonly watchers: Watchers;
  readonly scraped: ScrapedMetrics;
}

/** Starts the admin listener. @returns `null` if it cannot listen; the API serves anyway */
async function startAdmin(
  { settings }: CommandContext,
  { reads, watchers, scraped }: AdminNeeds,
): Promise<AdminServer | null> {
  const { adminHost: host, adminPort: port, adminToken: token, keyPrefix } = settings;
  const { logger, metrics } = watchers;
  const { redis } = reads;
  metrics.addCollections(async () => ({
    states: await readCollectionStates({ redis, keyPrefix, served: servedCollections, imports: historyCap }),
    importers: await readImporters(redis, keyPrefix),
    clients: await listActiveClients(redis, keyPrefix, servedCollections),
  }));
  const onWrongPassword = (message: string) => logger.warn(message);
  const dashboard = { sources: dashboardSources(settings, reads), token, onWrongPassword };
  const admin = await createAdminServer({ scraped, dashboard, host, port });
  try {
    await admin.start();
    logger.info(
      { address: addressOf(admin.listener.address() as AddressInfo) },
      'The admin listener is ready.',
    );
    return admin;
  } catch (error) {
    const reason = (error as Error).message;
    logger.error(
      `Cannot listen on ${host}:${port}: ${reason}. Metrics and dashboard are unavailable. Set ADMIN_HOST or ADMIN_PORT.`,
    );
    return null;
  }
}

function dashboardSources(
  { keyPrefix, defaultRate, upstreams, redisUrl }: Settings,
  { redis, readModel }: Reads,
): DashboardSources {
  const instance = { release: packageVersion(), host: hostname(), redis: describeServer(redisUrl) };
  return {
    ...{ instance, redis, keyPrefix, defaultRate, readModel, served: servedCollections },
    comparison: new VersionComparison(readModel),
    isImported: (collection) => upstreams.has(collection),
  };
}
