// medref import: imports collections now, one after another.

import type { Logger } from 'pino';
import type { Settings, UpstreamSettings } from '../../config/settings.ts';
import { importCollection } from '../../importer/import.ts';
import {
  type ImportOutcome,
  type ImportReport,
  type ImportResult,
  reportOf,
  startReport,
} from '../../importer/report.ts';
import { serverWarnings } from '../../importer/server-warnings.ts';
import { createWebhook } from '../../importer/webhook.ts';
import { candidateCommands, diffText, nextCommands } from '../../shared/collection-status.ts';
import { importedCollections } from '../../shared/collections/collections.ts';
import { type Collection, urlSetting } from '../../shared/collections/define.ts';
import { causeText } from '../../shared/import-history.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import {
  isRedisUnavailable,
  plainReason,
  RedisUnavailableError,
  refusalKind,
} from '../../shared/redis/failures.ts';
import { count, escapeControls } from '../../shared/text.ts';
import { importedCollectionNamed } from '../arguments.ts';
import { type CommandContext, exitCodes, UsageError } from '../context.ts';
import { commandLines, createProgress, type OutputOptions, print, wrapped } from '../output.ts';
import { createLogger, logOutages, operatorName } from '../session.ts';

/** Imports the named collections, or all that have a URL. @returns the exit code */
export async function importCommand(
  context: CommandContext,
  names: readonly string[],
  { force = false, dryRun = false, ...options }: OutputOptions & { force?: boolean; dryRun?: boolean },
): Promise<number> {
  const { settings } = context;
  const chosen = chooseCollections(settings, names);
  const logger = createLogger(context);
  const collections = chosen.map(({ name }) => name);
  logger.info({ by: operatorName(), collections, force, dryRun }, 'Manual import started.');
  const webhook = createWebhook(settings, logger);
  const signal = context.stopSignal();
  const results: ImportResult[] = [];
  const ended = (result: ImportResult) => {
    results.push(result);
    if (!dryRun) webhook.notify(result);
  };
  try {
    const warnings = await importAll(context, chosen, { logger, signal, force, dryRun, ended });
    const warningText = warnings.map((warning) => wrapped(`warning: ${warning}`, '  ', ''));
    print(context, { imports: results.map(reportOf) }, options, () =>
      [...warningText, ...results.map(importText)].join('\n'),
    );
    return exitCodeOf(results);
  } finally {
    await webhook.finish();
  }
}

/** Imports collections one after another. @returns warnings about Redis */
async function importAll(
  context: CommandContext,
  chosen: readonly Collection[],
  { ended, ...options }: Omit<ImportOneOptions, 'redis'> & { ended: (result: ImportResult) => void },
): Promise<string[]> {
  const { redisUrl, keyPrefix } = context.settings;
  const { logger, signal } = options;
  let redis: Redis | undefined;
  try {
    redis = await connectForWriting(redisUrl);
    const warnings = [...context.settings.misspelt, ...(await serverWarnings(redis, keyPrefix))];
    for (const warning of warnings) logger.warn(warning);
    logOutages(redis, logger);
    for (const collection of chosen) {
      if (signal.aborted)
        ended(startReport(collection.name).end('interrupted', { reason: 'It was stopped before it began.' }));
      else ended(await importOne(context, collection, { ...options, redis }));
    }
    return warnings;
  } catch (error) {
    const isOfRedis =
      error instanceof RedisUnavailableError || isRedisUnavailable(error) || refusalKind(error);
    if (!isOfRedis) throw error;
    // Without Redis every import fails, and the report has the reason.
    const reason = plainReason(error as Error);
    for (const { name } of chosen) ended(startReport(name).end('failed', { reason }));
    return [];
  } finally {
    redis?.disconnect();
  }
}

/** The options of one import. */
export interface ImportOneOptions {
  readonly redis: Redis;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly scheduled?: boolean;
}

/** Imports one collection that has a URL at low priority, with progress and log lines. */
export async function importOne(
  { settings, stderr, lowerPriority }: CommandContext,
  collection: Collection,
  { force = false, dryRun = false, scheduled = false, ...options }: ImportOneOptions,
): Promise<ImportResult> {
  lowerPriority();
  const upstream = settings.upstreams.get(collection.name) as UpstreamSettings;
  const progress = createProgress(collection.name, { stderr, logger: options.logger });
  const by = scheduled ? 'schedule' : operatorName();
  const how = { upstream, force, dryRun, scheduled, by, onProgress: progress.show };
  const report = await importCollection(collection, { ...settings, ...options, ...how });
  progress.clear();
  const isGood = ['published', 'unchanged', 'dry-run'].includes(report.outcome);
  options.logger[isGood ? 'info' : 'warn'](report, `Import of ${collection.name}: ${report.outcome}.`);
  return report;
}

function chooseCollections(settings: Settings, names: readonly string[]): Collection[] {
  if (names.length > 0) {
    const chosen = [...new Set(names)].map((name) => importedCollectionNamed(name, 'import'));
    for (const { name } of chosen) {
      if (!settings.upstreams.has(name))
        throw new UsageError(`${urlSetting(name)} is not set. Set it to import ${name}.`);
    }
    return chosen;
  }
  const chosen = importedCollections.filter(({ name }) => settings.upstreams.has(name));
  if (chosen.length > 0) return chosen;
  throw new UsageError(
    `Nothing to import: set ${importedCollections.map(({ name }) => urlSetting(name)).join(' or ')}.`,
  );
}

/** Returns the exit code: interrupted, else failed, else refused, else locked, else done. */
function exitCodeOf(reports: readonly ImportReport[]): number {
  const ended = (outcome: ImportOutcome) => reports.some((report) => report.outcome === outcome);
  if (ended('interrupted')) return exitCodes.interrupted;
  if (ended('failed')) return exitCodes.failed;
  const wouldBeRefused = reports.some(({ outcome, reason }) => outcome === 'dry-run' && reason !== null);
  if (ended('refused') || wouldBeRefused) return exitCodes.refused;
  if (ended('locked')) return exitCodes.locked;
  return exitCodes.done;
}

/** How many causes of rejects the text shows. */
const maxCauses = 5;

/** Returns a result as text: outcome, what readers get, counts, reason, causes, warnings, and next commands. */
function importText(result: ImportResult): string {
  const { collection, outcome, version, previousVersion, reason, causes, despite, candidate, warnings } =
    result;
  const { read, rejected, isLiveDamaged } = result;
  const stays =
    previousVersion === null
      ? ''
      : isLiveDamaged
        ? `: readers get 503 for parts of ${previousVersion}, which is damaged`
        : `: readers still get ${previousVersion}`;
  const title = {
    published: `published ${version}`,
    unchanged: `unchanged: version ${version} stays live`,
    refused: `REFUSED${stays}`,
    candidate: `candidate ${version} waits for "medref publish"${stays}`,
    failed: `FAILED${stays}`,
    interrupted: `INTERRUPTED${stays}`,
    locked: 'locked by another import',
    paused: 'paused by a rollback',
    'dry-run': reason === null ? 'dry run: would be published' : 'dry run: would be REFUSED',
    'rolled-back': `rolled back, now version ${version}`,
    discarded: 'discarded',
  }[outcome];
  const hasDiff = ['published', 'candidate', 'refused', 'dry-run', 'rolled-back'].includes(outcome);
  const diff = hasDiff ? ` · ${diffText(result)}` : '';
  const details = [
    ...(read > 0 ? [`read ${count(read)} · rejected ${count(rejected)}${diff}`] : []),
    ...(reason === null ? [] : [reason]),
    ...causes.slice(0, maxCauses).map(causeText),
    ...(despite.length > 0 ? [`published despite: ${despite.join(', ')}`] : []),
    ...warnings.map((warning) => `warning: ${warning}`),
  ];
  const hasNext = ['refused', 'candidate', 'published', 'unchanged'].includes(outcome);
  const next = [
    ...(hasNext ? nextCommands(result) : []),
    ...(candidate === null ? [] : candidateCommands(collection, { version: candidate, reason })),
  ];
  const indent = ''.padEnd(11);
  const seconds = (result.durationMs / 1_000).toFixed(1);
  return [
    `${collection.padEnd(10)} ${title}   ${seconds} s`,
    ...details.map((line) => wrapped(escapeControls(line), indent)),
    ...commandLines(next, indent),
  ].join('\n');
}
