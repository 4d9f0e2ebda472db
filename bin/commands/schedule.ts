// medref schedule: imports on the schedule, and at start the collections that have no live version.

import { type Schedule, startSchedule } from '../../importer/schedule.ts';
import { serverWarnings } from '../../importer/server-warnings.ts';
import type { Collection } from '../../shared/collections/collection.ts';
import { importedCollections } from '../../shared/collections/collections.ts';
import { collectionKeys } from '../../shared/keys.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { readLiveVersion } from '../../shared/versions.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { importCollections } from '../import-collections.ts';
import { createLogger } from '../logger.ts';
import { aborted } from '../stop-signal.ts';
import type { CommandContext } from '../surroundings.ts';
import { type OutputOptions, print } from './output.ts';

/** Runs until it is asked to stop; an import under way is ended first. @returns the exit code */
export async function scheduleCommand(context: CommandContext, options: OutputOptions): Promise<number> {
  const { settings } = context;
  const scheduled = importedCollections.filter(({ name }) => settings.upstreams.has(name));
  if (scheduled.length === 0)
    throw new UsageError('There is nothing to schedule: set the URL of a collection, such as PRODUCTS_URL.');
  const logger = createLogger(context);
  const signal = context.stopSignal();
  const redis = await connectForWriting(settings.redisUrl);
  let running: Promise<unknown> = Promise.resolve();
  const runImports = (chosen: readonly Collection[]) => {
    const imports = importCollections(context, { chosen, redis, logger, signal, scheduled: true });
    running = Promise.all([running, imports]);
    return imports;
  };
  let schedule: Schedule | undefined;
  try {
    for (const warning of await serverWarnings(redis)) logger.warn(warning);
    schedule = startSchedule({
      cron: settings.importCron,
      timezone: settings.importTimezone,
      run: async () => void (await runImports(scheduled)),
      onLate: (due) =>
        logger.warn(
          { due },
          'A scheduled import begins late: this process or its machine stood still when it was due.',
        ),
      onSkipped: () => logger.warn('A scheduled import is skipped: the one before still runs.'),
    });
    const names = scheduled.map(({ name }) => name);
    const nextRun = schedule.nextRun().toISOString();
    logger.info(
      { collections: names, cron: settings.importCron, timezone: settings.importTimezone, nextRun },
      'Scheduled.',
    );
    print(
      context,
      { scheduled: names, nextRun },
      options,
      () => `Importing ${names.join(' and ')}; next at ${nextRun}.`,
    );

    const missing: Collection[] = [];
    for (const collection of scheduled) {
      if (!(await readLiveVersion(redis, collectionKeys(settings.keyPrefix, collection))))
        missing.push(collection);
    }
    if (missing.length > 0) await runImports(missing);
    await aborted(signal);
    schedule.stop();
    await running;
    return exitCodes.done;
  } finally {
    schedule?.stop();
    redis.disconnect();
  }
}
