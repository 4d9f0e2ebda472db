// In: a collection, its upstream and its schedule. Out: the collection is imported also as soon as upstream publishes.

import { Follower, type FollowOptions } from '../importer/follow.ts';
import { readLastImportSince, readSeenVersion } from '../importer/report.ts';
import type { Redis } from '../shared/redis/connections.ts';
import type { CollectionKeys } from '../shared/store/keys.ts';
import type { Logger } from './logger.ts';

/** What is followed, and how. */
export interface Following extends Pick<FollowOptions, 'importNow' | 'signal' | 'pauses'> {
  readonly collection: string;
  readonly upstream: { readonly url: URL; readonly token: string | undefined };
  readonly redis: Redis;
  readonly keys: CollectionKeys;
  readonly logger: Logger;
}

/** Makes what follows an upstream; files tell of no publications. @returns `null` for a file */
export function followerOf({
  collection,
  upstream,
  redis,
  keys,
  logger,
  ...options
}: Following): Follower | null {
  if (upstream.url.protocol === 'file:') {
    logger.warn({ collection }, 'Upstream is a file, which cannot be followed: it is left to the schedule.');
    return null;
  }
  return new Follower({
    ...options,
    upstream,
    history: {
      seen: () => readSeenVersion(redis, keys),
      isImportedSince: async (time) => (await readLastImportSince(redis, keys, time)) !== null,
    },
    onPublished: (upstreamVersion) =>
      logger.info(
        { collection, upstreamVersion },
        upstreamVersion === null
          ? 'Upstream does not know the version that was read last: an import begins.'
          : 'Upstream has published: an import begins.',
      ),
    onTrouble: (reason, isLeftToSchedule) =>
      logger.warn(
        { collection, reason },
        isLeftToSchedule
          ? 'Upstream cannot be followed: it is left to the schedule.'
          : 'Upstream cannot be asked for publications; it is asked again.',
      ),
  });
}
