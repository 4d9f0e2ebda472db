// In: what was staged, or a kept content, under a lock. Out: it is live, with the document and the number of its version.

import type { Redis } from '../../shared/redis/connections.ts';
import type { Hold } from '../../shared/schedule-hold.ts';
import type { ChangeSetFacts } from '../../shared/store/change-sets.ts';
import type { Conclusion, Held } from '../../shared/store/scripts.ts';
import { publish } from '../../shared/store/scripts.ts';
import { documentOf, type LiveVersion, readKeptVersions, type Version } from '../../shared/store/versions.ts';
import { publicationTime } from './publication-time.ts';
import { graceMs, keptChangeSets, leavingVersions } from './retention.ts';
import { untilPast } from './version-number.ts';
import { sizesOf } from './wholeness.ts';

/** A version that is to become live. */
export interface NextVersion extends Omit<Version, 'version' | 'publishedAt'> {
  readonly number: number;
  /** The version that is live now. */
  readonly live: LiveVersion | null;
  /**
   * The change set of each part, against the live version; `null` where it could not be compared: then changes cannot be
   * asked for from before it.
   */
  readonly changeSets: readonly (ChangeSetFacts | null)[];
  /** How many contents are kept, that of this one among them. */
  readonly keepVersions: number;
  /** Set by a rollback; `null` lifts it. */
  readonly hold: Hold | null;
  /** Checksum of the content that is rolled back from. */
  readonly undone: string | null;
  /** JSON text of the upstream's validators. */
  readonly validators: string | null;
  /** See version-number.ts. */
  readonly maxNumberWaitMs: number;
}

/**
 * Makes a version live, under a lock.
 * @throws LockLostError; NotPublishedError when another version went live; StagedLostError when the content is not whole
 */
export async function publishVersion(
  redis: Redis,
  held: Held,
  next: NextVersion,
  conclusion: Conclusion,
): Promise<void> {
  const { number, content, stored, format, live, checksum } = next;
  await untilPast(redis, held.keys.live, { number, maxMs: next.maxNumberWaitMs });
  const now = new Date();
  const kept = await readKeptVersions(redis, held.keys);
  const version: Version = {
    ...{ version: number, content, stored, format },
    ...{ publishedAt: publicationTime(now, live, kept).toISOString(), totalCount: next.totalCount, checksum },
    ...{
      setDigest: next.setDigest,
      linesLength: next.linesLength,
      blocks: next.blocks,
      entries: next.entries,
    },
    ...{ fencesCheck: next.fencesCheck, forced: next.forced, profile: next.profile, derived: next.derived },
  };
  const lastToGo = next.changeSets[0] === null ? -1 : -keptChangeSets - 1;
  const changeSets = await redis.zrange(held.keys.changeSets, 0, String(lastToGo));
  await publish(
    redis,
    held,
    {
      ...{ number, stored, graceMs, sizes: sizesOf(held.keys, version) },
      document: documentOf(version),
      changes: next.changeSets,
      expectedLive: live?.document ?? '',
      leaving: { ...leavingVersions(kept, next.keepVersions, content), changeSets: changeSets.map(Number) },
      hold: next.hold ? JSON.stringify(next.hold) : '',
      undone: next.undone ?? '',
      redone: checksum,
      checkedAt: next.hold ? '' : now.toISOString(),
      validators: next.validators ?? '',
    },
    conclusion,
  );
}
