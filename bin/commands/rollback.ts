// medref rollback and medref resume: an older content is made live again, and the schedule held until it is lifted.

import {
  liftHold,
  type RollbackResult,
  type RolledBack,
  rollBack,
  VersionRequiredError,
} from '../../importer/rollback.ts';
import { createWebhook } from '../../importer/webhook.ts';
import { count } from '../../shared/figures.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { exitCodes, LockedError, UsageError } from '../exit-codes.ts';
import { createLogger } from '../logger.ts';
import { operator } from '../operator.ts';
import type { CommandContext } from '../surroundings.ts';
import { importedCollectionNamed } from './collection-argument.ts';
import { type OutputOptions, print } from './output.ts';
import { withRedis } from './with-redis.ts';

/** Publishes the content of a kept version again. @returns the exit code */
export async function rollbackCommand(
  context: CommandContext,
  name: string,
  options: OutputOptions & { to?: number; dryRun?: boolean },
): Promise<number> {
  const collection = importedCollectionNamed(name, 'rollback');
  const { keyPrefix } = context.settings;
  const { to = null, dryRun = false } = options;
  const logger = createLogger(context).child({ by: operator(), collection: name });
  logger.info({ to, dryRun }, 'A rollback begins.');
  const result = await withRedis(context.settings, (redis) =>
    rollBack(collection, { redis, keyPrefix, to, dryRun }),
  ).catch((error: Error) => {
    throw error instanceof VersionRequiredError ? new UsageError(error.message) : error;
  });
  logger.info(ended(result), 'The rollback has ended.');
  if (result.outcome === 'locked') {
    const { holder, since } = result.lock;
    throw new LockedError(
      `The lock of ${name} is held by ${holder} since ${since}. Try again when it has ended.`,
    );
  }
  if (result.outcome === 'unchanged') {
    const { version } = result;
    print(
      context,
      { collection: name, outcome: 'unchanged', version },
      options,
      () => `${name}: version ${version} is live and has that content already; nothing was done`,
    );
    return exitCodes.done;
  }
  const { report, outcome } = result;
  for (const warning of report.warnings) logger.warn(warning);
  const { version, previousVersion, added, changed, removed } = report;
  const { contentOf, totalCount, previousTotalCount } = result;
  const counts = { previousTotalCount, totalCount, added, changed, removed };
  const webhook = createWebhook(context.settings, logger);
  if (!dryRun) webhook.tell(report);
  print(context, { collection: name, outcome, version, contentOf, previousVersion, ...counts }, options, () =>
    rollbackText(name, result),
  );
  await webhook.finish();
  return exitCodes.done;
}

/** What was live, what is live now, what changed, and how the pause ends, as lines for people. */
function rollbackText(
  name: string,
  { report, contentOf, totalCount, previousTotalCount }: RolledBack,
): string {
  const { version, previousVersion, added, changed, removed, warnings } = report;
  const diff = `${count(added)} added, ${count(changed)} changed, ${count(removed)} removed`;
  const from = `version ${previousVersion} (${count(previousTotalCount)} records)`;
  const to = `the content of version ${contentOf} (${count(totalCount)} records)`;
  const lines =
    version === null
      ? [`dry run: a rollback would go from ${from} to ${to}: ${diff}; nothing was changed`]
      : [
          `rolled back from ${from} to ${to}, now live as version ${version}: ${diff}`,
          ...warnings.map((warning) => `warning: ${warning}`),
          `scheduled imports are paused; "medref resume ${name}" resumes them, and so does an import by hand that publishes`,
        ];
  return lines.map((line) => `${name}: ${line}`).join('\n');
}

/** A result as the log has it: with the versions, where there are any. */
function ended(result: RollbackResult): object {
  const { outcome } = result;
  if (outcome === 'locked') return { outcome };
  if (outcome === 'unchanged') return { outcome, version: result.version };
  const { version, previousVersion } = result.report;
  return { outcome, version, previousVersion, contentOf: result.contentOf };
}

/** Lifts the hold of a collection. @returns the exit code */
export async function resumeCommand(
  context: CommandContext,
  name: string,
  options: OutputOptions,
): Promise<number> {
  const keys = collectionKeys(context.settings.keyPrefix, importedCollectionNamed(name, 'resume'));
  const wasHeld = await withRedis(context.settings, (redis) => liftHold(redis, keys));
  createLogger(context).info({ by: operator(), collection: name, wasHeld }, 'The schedule was resumed.');
  print(context, { collection: name, wasHeld }, options, () =>
    wasHeld ? `${name}: scheduled imports go on` : `${name}: scheduled imports were not held`,
  );
  return exitCodes.done;
}
