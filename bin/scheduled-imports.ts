// In: a collection that is due. Out: it was imported, by this process or by another one; or it is to be tried again.

import { readLastImportSince, startReport } from '../importer/report.ts';
import type { RunEnd } from '../importer/schedule.ts';
import type { Collection } from '../shared/collections/define.ts';
import { readLockHolder } from '../shared/lock-holder.ts';
import type { Redis } from '../shared/redis/connections.ts';
import { plainReason } from '../shared/redis/failures.ts';
import { collectionKeys } from '../shared/store/keys.ts';
import { type Imports, importCollections } from './import-collections.ts';
import { oneAtATime } from './one-at-a-time.ts';
import type { CommandContext } from './surroundings.ts';

/** Imports a collection that is due since a time, unless another process does. Never rejects. */
export type ScheduledImport = (collection: Collection, due: Date) => Promise<RunEnd>;

/**
 * Makes the function that imports what is due. It imports one collection at a time, whichever came first. Where another
 * process holds the lock, it leaves no trace but a line in the log: that process may end well, or may be dead.
 * @param connecting a connection, once there is one; `null` where this process was asked to stop before
 */
export function scheduledImports(
  context: CommandContext,
  connecting: Promise<Redis | null>,
  { logger, webhook, signal }: Pick<Imports, 'logger' | 'webhook' | 'signal'>,
): ScheduledImport {
  const inTurn = oneAtATime();
  /** By collection: the lock that is waited for, as it was told of. */
  const waitsFor = new Map<string, string>();

  const importWhereDue = async (collection: Collection, due: Date): Promise<RunEnd> => {
    const redis = await connecting;
    if (!redis) return 'ended';
    const { name } = collection;
    const keys = collectionKeys(context.settings.keyPrefix, collection);
    // The lock before the history: an import leaves its report there before it gives the lock back.
    const lock = await readLockHolder(redis, keys);
    if (lock) {
      const { holder, since } = lock;
      if (waitsFor.get(name) !== since)
        logger.info(
          { collection: name, holder, since },
          'It is due, and waits for another import of it to end.',
        );
      waitsFor.set(name, since);
      return 'locked';
    }
    const ended = await readLastImportSince(redis, keys, due);
    if (ended) {
      const { outcome, endedAt } = ended;
      logger.info(
        { collection: name, due, outcome, endedAt },
        'It was imported since it was due: nothing is done.',
      );
      return 'ended';
    }
    const [report] = await importCollections(context, {
      ...{ chosen: [collection], redis, logger, webhook, signal, scheduled: true },
    });
    const outcome = report?.outcome;
    return outcome === 'failed' || outcome === 'locked' ? outcome : 'ended';
  };

  return (collection, due) =>
    inTurn(() => importWhereDue(collection, due)).catch((error: Error) => {
      const reason = plainReason(error);
      logger.error(
        { collection: collection.name, err: error, reason },
        'A scheduled import could not begin.',
      );
      webhook.tell(startReport(collection.name).end('failed', { reason }));
      return 'failed';
    });
}
