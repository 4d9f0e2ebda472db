// medref rollback and medref resume: an older content is made live again, and the schedule held until it is lifted.

import { createWebhook } from '../../importer/notices/webhook.ts';
import { liftHold } from '../../importer/publishing/hold.ts';
import { type RollbackResult, rollBack } from '../../importer/rollback.ts';
import { collectionKeys } from '../../shared/keys.ts';
import { exitCodes, LockedError } from '../exit-codes.ts';
import { createLogger } from '../logger.ts';
import { operator } from '../operator.ts';
import type { CommandContext } from '../surroundings.ts';
import { importedCollectionNamed } from './collection-argument.ts';
import { importText } from './import-text.ts';
import { type OutputOptions, print } from './output.ts';
import { withRedis } from './with-redis.ts';

/** Publishes the content of a kept version again. @returns the exit code */
export async function rollbackCommand(
  context: CommandContext,
  name: string,
  options: OutputOptions & { to?: number },
): Promise<number> {
  const collection = importedCollectionNamed(name, 'rollback');
  const { keyPrefix, waitReplicas } = context.settings;
  const to = options.to ?? null;
  const logger = createLogger(context).child({ by: operator(), collection: name });
  logger.info({ to }, 'A rollback begins.');
  const result = await withRedis(context.settings, (redis) =>
    rollBack(collection, { redis, keyPrefix, to, waitReplicas }),
  );
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
      () => `${name}: version ${version} holds that content already; nothing was done`,
    );
    return exitCodes.done;
  }
  const { report, contentOf } = result;
  for (const warning of report.warnings) logger.warn(warning);
  const { outcome, version, previousVersion, added, changed, removed } = report;
  const webhook = createWebhook(context.settings, logger);
  webhook.tell(report);
  print(
    context,
    { collection: name, outcome, version, contentOf, previousVersion, added, changed, removed },
    options,
    () =>
      [
        importText(report),
        `${name}: scheduled imports are held; "medref resume ${name}" lifts the hold, and so does an import by hand that publishes`,
      ].join('\n'),
  );
  await webhook.finish();
  return exitCodes.done;
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
