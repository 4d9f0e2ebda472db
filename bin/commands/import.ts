// medref import: imports collections now, one after the other.

import { type Settings, urlSetting } from '../../config/settings.ts';
import { importCollection } from '../../importer/import-cycle.ts';
import { type ImportOutcome, type ImportReport, startReport } from '../../importer/job/import-report.ts';
import { serverWarnings } from '../../importer/server-warnings.ts';
import type { Collection } from '../../shared/collections/collection.ts';
import { importedCollections } from '../../shared/collections/collections.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { isRedisUnavailable, plainReason, RedisUnavailableError } from '../../shared/redis/failures.ts';
import { printable } from '../escapes.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { giveWay } from '../give-way.ts';
import { createLogger, type Logger } from '../logger.ts';
import { createProgress } from '../progress.ts';
import { stopSignal } from '../stop-signal.ts';
import { importedCollectionNamed } from './collection-argument.ts';
import { count, type OutputOptions, print } from './output.ts';

/** Imports the named collections, or all that have a URL. @returns the exit code */
export async function importCommand(
  settings: Settings,
  names: readonly string[],
  { force = false, dryRun = false, ...options }: OutputOptions & { force?: boolean; dryRun?: boolean },
): Promise<number> {
  const chosen = chooseCollections(settings, names);
  const imports = await importChosen(settings, chosen, { force, dryRun });
  print({ imports }, options, () => imports.map(describe).join('\n'));
  return exitCodeOf(imports);
}

/** Without Redis every import fails, and is reported like any other that failed. */
async function importChosen(
  settings: Settings,
  chosen: readonly Collection[],
  how: { force: boolean; dryRun: boolean },
): Promise<ImportReport[]> {
  const logger = createLogger(settings.logLevel);
  const signal = stopSignal();
  let redis: Redis | undefined;
  try {
    redis = await connectForWriting(settings.redisUrl);
    for (const warning of await serverWarnings(redis)) logger.warn(warning);
    return await importCollections({ ...how, chosen, settings, redis, logger, signal });
  } catch (error) {
    if (!(error instanceof RedisUnavailableError || isRedisUnavailable(error))) throw error;
    const reason = plainReason(error as Error);
    return chosen.map(({ name }) => startReport(name).end('failed', { reason }));
  } finally {
    redis?.disconnect();
  }
}

/** Imports collections one after the other; stops before the next when asked to. */
export async function importCollections({
  chosen,
  settings,
  redis,
  logger,
  signal,
  force = false,
  dryRun = false,
  scheduled = false,
}: {
  chosen: readonly Collection[];
  settings: Settings;
  redis: Redis;
  logger: Logger;
  signal: AbortSignal;
  force?: boolean;
  dryRun?: boolean;
  scheduled?: boolean;
}): Promise<ImportReport[]> {
  const reports: ImportReport[] = [];
  giveWay();
  for (const collection of chosen) {
    const upstream = settings.upstreams.get(collection.name);
    if (!upstream)
      throw new UsageError(
        `${urlSetting(collection.name)} is not set, so ${collection.name} cannot be imported.`,
      );
    if (signal.aborted) {
      reports.push(startReport(collection.name).end('failed', { reason: 'It was stopped before it began.' }));
      continue;
    }
    const progress = createProgress(collection.name, process.stderr);
    const report = await importCollection(collection, {
      ...settings,
      ...{ redis, logger, signal, upstream, force, dryRun, scheduled, onProgress: progress.show },
    });
    progress.clear();
    logger[levelOf(report)](report, `Import of ${collection.name}: ${report.outcome}.`);
    reports.push(report);
  }
  return reports;
}

/** What an operator should look at is a warning. */
function levelOf({ outcome }: ImportReport): 'info' | 'warn' {
  return ['published', 'unchanged', 'dry-run'].includes(outcome) ? 'info' : 'warn';
}

function chooseCollections(settings: Settings, names: readonly string[]): Collection[] {
  if (names.length > 0) {
    const chosen = [...new Set(names)].map((name) => importedCollectionNamed(name, 'import'));
    for (const { name } of chosen) {
      if (!settings.upstreams.has(name))
        throw new UsageError(`${urlSetting(name)} is not set, so ${name} cannot be imported.`);
    }
    return chosen;
  }
  const chosen = importedCollections.filter(({ name }) => settings.upstreams.has(name));
  if (chosen.length > 0) return chosen;
  throw new UsageError(
    `There is nothing to import: set ${importedCollections.map(({ name }) => urlSetting(name)).join(' or ')}.`,
  );
}

/** Of several collections: the first that applies of failed, refused, locked, done. */
function exitCodeOf(imports: readonly ImportReport[]): number {
  const ended = (outcome: ImportOutcome) => imports.some((report) => report.outcome === outcome);
  if (ended('failed')) return exitCodes.failed;
  const wouldBeRefused = imports.some(({ outcome, reason }) => outcome === 'dry-run' && reason !== null);
  if (ended('refused') || wouldBeRefused) return exitCodes.refused;
  if (ended('locked')) return exitCodes.locked;
  return exitCodes.done;
}

/** A report as a line for people. */
export function describe(report: ImportReport): string {
  const { collection, outcome, version, previousVersion, reason, warnings } = report;
  const counts = `${count(report.read)} read, ${count(report.written)} written, ${count(report.rejected)} rejected`;
  const diff = `${count(report.added)} added, ${count(report.changed)} changed, ${count(report.removed)} removed`;
  const ended = {
    published: `published as version ${version}${previousVersion ? ` after ${previousVersion}` : ''}: ${counts}; ${diff}`,
    unchanged: `unchanged, version ${version} stays live: ${counts}`,
    refused: `refused, ${previousVersion ? `version ${previousVersion} stays live` : 'nothing is live'}: ${reason} (${counts})`,
    failed: `failed${previousVersion ? `, version ${previousVersion} stays live` : ''}: ${reason}`,
    locked: `not started: ${reason}`,
    held: `left alone: ${reason} "medref resume ${collection}" lifts the hold`,
    'dry-run': `dry run, ${reason === null ? 'it would pass' : `it would be refused: ${reason}`}: ${counts}; ${diff}`,
    'rolled-back': `rolled back to an older content as version ${version} after ${previousVersion}: ${diff}`,
  }[outcome];
  const lines = [
    `${collection}: ${ended}`,
    ...warnings.map((warning) => `${collection}: warning: ${warning}`),
  ];
  if (report.rejected > 0 && outcome !== 'dry-run')
    lines.push(`${collection}: see "medref rejects ${collection}" for what was rejected`);
  return lines.map(printable).join('\n');
}
