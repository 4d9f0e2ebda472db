// In: what was staged, and what is live. Out: whether that is the same, what differs, and why it would be refused.

import { begunOf, type ImportJob, stagedContent } from '../job/import-job.ts';
import {
  compareVersions,
  emptyChangeSets,
  isSame,
  type VersionDiffCounts,
} from '../publishing/compare-versions.ts';
import { isUndone } from '../publishing/hold.ts';
import type { FoundLive } from '../publishing/live-content.ts';
import type { StagedVersion } from '../writing/version-writer.ts';
import { refusalsOf } from './checks.ts';

/** What came of judging a staged version. */
export interface Judgement {
  /**
   * Whether what is live has the same records in the same order, and the same made of them, whole and in the format of this
   * release.
   */
  readonly isLive: boolean;
  readonly changeSets: VersionDiffCounts['changeSets'];
  /** Every check's reason, as sentences; `null` where all let it pass. */
  readonly refusal: string | null;
}

/** Compares what was staged with what is live, and runs the checks. */
export async function judge(job: ImportJob, staged: StagedVersion, found: FoundLive): Promise<Judgement> {
  const { context, keys, report } = job;
  const { checksum } = staged.content;
  report.note(begunOf(job).writer.counts);
  const isLive = found.current !== null && isSame(found.current, stagedContent(job, staged));
  const { changeSets, ...diff } = await compare(job, staged, found);
  report.note(diff);
  const undone = checksum !== found.live?.checksum && (await isUndone(context.redis, keys, checksum));
  const refusals = refusalsOf({ ...context, staged, live: found.live, diff, undone }, context);
  return { isLive, changeSets, refusal: refusals.join(' ') || null };
}

/**
 * What was staged against what is live. Where a part of that is lost or damaged, records cannot be compared: then as many
 * are told to be added or removed as one list is longer than the other, unless both are known to be the same. In truth
 * there may be more.
 */
async function compare(
  job: ImportJob,
  staged: StagedVersion,
  { live, whole }: FoundLive,
): Promise<VersionDiffCounts> {
  const after = stagedContent(job, staged);
  if (live && isSame(live, after))
    return { added: 0, changed: 0, removed: 0, changeSets: emptyChangeSets(live, after) };
  const counts = await compareVersions(job.context.redis, begunOf(job), { before: whole, after });
  if (!live || whole) return counts;
  const more = staged.written - live.totalCount;
  return { ...counts, added: Math.max(0, more), removed: Math.max(0, -more) };
}
