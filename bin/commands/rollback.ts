// medref rollback and medref resume: an older content is made live again, and the schedule held until it is lifted.

import type { Settings } from '../../config/settings.ts';
import { liftHold } from '../../importer/publishing/hold.ts';
import { rollBack } from '../../importer/rollback.ts';
import { collectionKeys } from '../../shared/keys.ts';
import { exitCodes, LockedError } from '../exit-codes.ts';
import { importedCollectionNamed } from './collection-argument.ts';
import { describe } from './import.ts';
import { type OutputOptions, print } from './output.ts';
import { withRedis } from './with-redis.ts';

/** Publishes the content of a kept version again. @returns the exit code */
export async function rollbackCommand(
  settings: Settings,
  name: string,
  options: OutputOptions & { to?: number },
): Promise<number> {
  const collection = importedCollectionNamed(name, 'rollback');
  const { keyPrefix, keepVersions } = settings;
  const to = options.to ?? null;
  const result = await withRedis(settings, (redis) =>
    rollBack(collection, { redis, keyPrefix, keepVersions, to }),
  );
  if (result.outcome === 'locked') {
    const { holder, since } = result.lock;
    throw new LockedError(
      `The lock of ${name} is held by ${holder} since ${since}. Try again when it has ended.`,
    );
  }
  if (result.outcome === 'unchanged') {
    const { version } = result;
    print(
      { collection: name, outcome: 'unchanged', version },
      options,
      () => `${name}: version ${version} holds that content already; nothing was done`,
    );
    return exitCodes.done;
  }
  const { report, contentOf } = result;
  const { outcome, version, previousVersion, added, changed, removed } = report;
  print(
    { collection: name, outcome, version, contentOf, previousVersion, added, changed, removed },
    options,
    () =>
      [
        describe(report),
        `${name}: scheduled imports are held; "medref resume ${name}" lifts the hold, and so does an import by hand that publishes`,
      ].join('\n'),
  );
  return exitCodes.done;
}

/** Lifts the hold of a collection. @returns the exit code */
export async function resumeCommand(
  settings: Settings,
  name: string,
  options: OutputOptions,
): Promise<number> {
  const keys = collectionKeys(settings.keyPrefix, importedCollectionNamed(name, 'resume'));
  const wasHeld = await withRedis(settings, (redis) => liftHold(redis, keys));
  print({ collection: name, wasHeld }, options, () =>
    wasHeld ? `${name}: scheduled imports go on` : `${name}: scheduled imports were not held`,
  );
  return exitCodes.done;
}
