// medref rollback and medref resume: publishes an older content again and pauses scheduled imports, and resumes them.

import { liftHold, type RolledBack, rollBack, VersionRequiredError } from '../../importer/rollback.ts';
import { createWebhook } from '../../importer/webhook.ts';
import { count } from '../../shared/format.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { importedCollectionNamed } from '../arguments.ts';
import {
  type CommandContext,
  createLogger,
  exitCodes,
  LockedError,
  operator,
  UsageError,
  withRedis,
} from '../context.ts';
import { type OutputOptions, print, wrapped } from '../output.ts';

/** Publishes the content of a kept version again. @returns the exit code */
export async function rollbackCommand(
  context: CommandContext,
  name: string,
  { to, dryRun = false, ...options }: OutputOptions & { to?: number; dryRun?: boolean },
): Promise<number> {
  const collection = importedCollectionNamed(name, 'rollback');
  const { settings } = context;
  const logger = createLogger(context).child({ by: operator(), collection: name });
  logger.info({ to: to ?? null, dryRun }, 'A rollback begins.');
  const result = await withRedis(settings, (redis) =>
    rollBack(collection, { redis, keyPrefix: settings.keyPrefix, to: to ?? null, dryRun }),
  ).catch((error: Error) => {
    throw error instanceof VersionRequiredError ? new UsageError(error.message) : error;
  });
  const { outcome } = result;
  if (result.outcome === 'locked') {
    logger.info({ outcome }, 'The rollback has ended.');
    const { holder, since } = result.lock;
    throw new LockedError(
      `The lock of ${name} is held by ${holder} since ${since}. Try again when it has ended.`,
    );
  }
  if (result.outcome === 'unchanged') {
    const { version } = result;
    logger.info({ outcome, version }, 'The rollback has ended.');
    print(
      context,
      { collection: name, outcome, version },
      options,
      () => `${name}: version ${version} is live and has that content already; nothing was done`,
    );
    return exitCodes.done;
  }
  const { report, contentOf, totalCount, previousTotalCount } = result;
  const { version, previousVersion, added, changed, removed, warnings } = report;
  logger.info({ outcome, version, previousVersion, contentOf }, 'The rollback has ended.');
  for (const warning of warnings) logger.warn(warning);
  const webhook = createWebhook(settings, logger);
  if (!dryRun) webhook.tell(report);
  const versions = { version, contentOf, previousVersion };
  const counts = { previousTotalCount, totalCount, added, changed, removed };
  print(context, { collection: name, outcome, ...versions, ...counts }, options, () =>
    rollbackText(name, result),
  );
  await webhook.finish();
  return exitCodes.done;
}

/** Returns from what to what it went, what changed, and how the pause ends, as lines for people. */
function rollbackText(
  name: string,
  { report, contentOf, totalCount, previousTotalCount }: RolledBack,
): string {
  const { version, previousVersion, added, changed, removed, warnings } = report;
  const diff = `${count(added)} added, ${count(changed)} changed, ${count(removed)} removed`;
  const from = `from ${previousVersion} (${count(previousTotalCount)} records)`;
  const to = `to the content of ${contentOf} (${count(totalCount)} records)`;
  const sentences =
    version === null
      ? [`dry run: would roll back ${from} ${to}: ${diff}. Nothing was changed.`]
      : [
          `rolled back ${from} ${to}, now served as ${version}: ${diff}.`,
          ...warnings.map((warning) => `warning: ${warning}`),
          `Scheduled imports are paused; "medref resume ${name}" resumes them.`,
        ];
  return sentences.map((sentence) => wrapped(`${name}: ${sentence}`, '  ', '')).join('\n');
}

/** Resumes the scheduled imports of a collection. @returns the exit code */
export async function resumeCommand(
  context: CommandContext,
  name: string,
  options: OutputOptions,
): Promise<number> {
  const keys = collectionKeys(context.settings.keyPrefix, importedCollectionNamed(name, 'resume'));
  const wasPaused = await withRedis(context.settings, (redis) => liftHold(redis, keys));
  createLogger(context).info({ by: operator(), collection: name, wasPaused }, 'The schedule was resumed.');
  print(context, { collection: name, wasPaused }, options, () =>
    wasPaused ? `${name}: scheduled imports are resumed` : `${name}: scheduled imports were not paused`,
  );
  return exitCodes.done;
}
