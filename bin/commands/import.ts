// medref import: imports collections now, one after the other.

import type { Settings } from '../../config/settings.ts';
import { type ImportOutcome, type ImportReport, startReport } from '../../importer/report.ts';
import { serverWarnings } from '../../importer/server-warnings.ts';
import { createWebhook } from '../../importer/webhook.ts';
import { importedCollections } from '../../shared/collections/collections.ts';
import type { Collection } from '../../shared/collections/define.ts';
import { urlSetting } from '../../shared/collections/define.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import {
  isRedisUnavailable,
  plainReason,
  RedisUnavailableError,
  refusalKind,
} from '../../shared/redis/failures.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { type Imports, importCollections } from '../import-collections.ts';
import { createLogger } from '../logger.ts';
import { operator } from '../operator.ts';
import type { CommandContext } from '../surroundings.ts';
import { importedCollectionNamed } from './collection-argument.ts';
import { importText } from './import-text.ts';
import { type OutputOptions, print } from './output.ts';

/** Imports the named collections, or all that have a URL. @returns the exit code */
export async function importCommand(
  context: CommandContext,
  names: readonly string[],
  { force = false, dryRun = false, ...options }: OutputOptions & { force?: boolean; dryRun?: boolean },
): Promise<number> {
  const chosen = chooseCollections(context.settings, names);
  const logger = createLogger(context).child({ by: operator() });
  const webhook = createWebhook(context.settings, logger);
  try {
    const imports = await importChosen(context, chosen, { force, dryRun, logger, webhook });
    print(context, { imports }, options, () => imports.map(importText).join('\n'));
    return exitCodeOf(imports);
  } finally {
    await webhook.finish();
  }
}

/** Without Redis every import fails, and is reported like any other that failed. */
async function importChosen(
  context: CommandContext,
  chosen: readonly Collection[],
  { logger, webhook, ...how }: Pick<Imports, 'logger' | 'webhook'> & { force: boolean; dryRun: boolean },
): Promise<ImportReport[]> {
  logger.info({ collections: chosen.map(({ name }) => name), ...how }, 'An import by hand begins.');
  const signal = context.stopSignal();
  let redis: Redis | undefined;
  try {
    redis = await connectForWriting(context.settings.redisUrl);
    for (const warning of await serverWarnings(redis, context.settings.keyPrefix)) logger.warn(warning);
    return await importCollections(context, { ...how, chosen, redis, logger, webhook, signal });
  } catch (error) {
    const isOfRedis =
      error instanceof RedisUnavailableError || isRedisUnavailable(error) || refusalKind(error);
    if (!isOfRedis) throw error;
    const reason = plainReason(error as Error);
    const reports = chosen.map(({ name }) => startReport(name).end('failed', { reason }));
    if (!how.dryRun) for (const report of reports) webhook.tell(report);
    return reports;
  } finally {
    redis?.disconnect();
  }
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
