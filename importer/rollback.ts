// Makes the content of a kept version live again under a new number, and pauses the schedule of the collection.

import { randomUUID } from 'node:crypto';
import type { Collection } from '../shared/collections/define.ts';
import type { Redis } from '../shared/redis/connections.ts';
import { type LockHolder, type Pause, readPause } from '../shared/store/import-locks.ts';
import { type CollectionKeys, collectionKeys } from '../shared/store/keys.ts';
import { discard, discardAll } from '../shared/store/scripts.ts';
import * as versions from '../shared/store/versions.ts';
import { requireIntactKeys } from './bookkeeping.ts';
import { compareVersions } from './diff.ts';
import { awaitDurability } from './durability.ts';
import { contentDamage, knownDamage } from './integrity.ts';
import { Lease } from './lease.ts';
import { maxNumberWaitMs, publishVersion } from './publish.ts';
import { conclusionOf, type ImportReport, startReport } from './report.ts';

/** The options of a rollback. */
export interface RollbackContext {
  readonly redis: Redis;
  readonly keyPrefix: string;
  /** The kept version to return to; `null`: the version before the current content. */
  readonly to: number | null;
  /** Compares and reports, and changes nothing. */
  readonly dryRun?: boolean | undefined;
  /** Who rolls back, for the history: user and host. */
  readonly by?: string | undefined;
  /** The reason that the operator gives. */
  readonly why?: string | undefined;
  /** How long a publication waits for the second of its number to end; 0 in tests. */
  readonly maxNumberWaitMs?: number | undefined;
}

/** A rollback that did not take place; the message says why. */
export class RollbackError extends Error {}

/** The rollback must name its version, because an earlier rollback has paused the collection. A repeated command changes nothing. */
export class VersionRequiredError extends RollbackError {}

/** The changes of a rollback. */
export interface RolledBack {
  /** A dry run has the outcome `dry-run` and no version. */
  readonly report: ImportReport;
  /** The version to whose content it returns. */
  readonly contentOf: number;
  /** Records of that content, and of the version that was live. */
  readonly totalCount: number;
  readonly previousTotalCount: number;
}

/** How a rollback ended. */
export type RollbackResult =
  | ({ readonly outcome: 'rolled-back' | 'dry-run' } & RolledBack)
  /** The requested content is already live. */
  | { readonly outcome: 'unchanged'; readonly version: number }
  | { readonly outcome: 'locked'; readonly lock: LockHolder };

/**
 * Publishes the content of a kept version again, under a new number. Pauses the schedule, and remembers the content that it
 * rolled back from, so that the next import does not publish it again.
 * @throws RollbackError if there is nothing to go back to; VersionRequiredError if a rollback has paused the collection and no
 *   version is named
 */
export async function rollBack(collection: Collection, context: RollbackContext): Promise<RollbackResult> {
  const keys = collectionKeys(context.keyPrefix, collection);
  const lease = await Lease.take(context.redis, keys);
  if (!(lease instanceof Lease)) return { outcome: 'locked', lock: lease };
  try {
    await requireIntactKeys(context.redis, collection.name, keys);
    return await publishAgain(collection, context, lease);
  } finally {
    await lease.release().catch(() => undefined); // It expires.
  }
}

async function publishAgain(
  collection: Collection,
  { redis, to, dryRun = false, ...context }: RollbackContext,
  lease: Lease,
): Promise<RollbackResult> {
  const { keys } = lease;
  const startedAt = new Date();
  const draft = startReport(collection.name);
  const [by, why] = [context.by ?? null, context.why ?? null];
  draft.note({ by, why });
  const live = await versions.readLiveVersion(redis, keys);
  if (!live) throw new RollbackError(`${collection.name} has no live version to roll back.`);
  const kept = await versions.readKeptVersions(redis, keys);
  const paused = to === null ? await readPause(redis, keys) : null;
  if (paused) throw versionRequired(collection.name, paused, { kept, live });
  const target = chooseTarget(kept, live, to);
  const comparable = (await knownDamage(redis, keys, live)) === null;
  const isLive = target.content === live.content || (comparable && target.checksum === live.checksum);
  if (isLive) return { outcome: 'unchanged', version: live.version };
  // Reads the whole content: it must equal the published one.
  for await (const damage of contentDamage(redis, keys, { collection, content: target }))
    throw new RollbackError(
      `Version ${target.version} is damaged in Redis. Choose a different version with --to, or run "medref verify --repair". ${damage}`,
    );

  await discardAll(redis, lease);
  const begun = await lease.begin(dryRun ? `dry-run-${randomUUID()}` : '');
  const { changeSets, ...diff } = await compareVersions(redis, begun, {
    before: comparable ? live : null,
    after: target,
  });
  const facts = {
    contentOf: versions.contentOf(target),
    totalCount: target.totalCount,
    previousTotalCount: live.totalCount,
  };
  const previousVersion = live.version;
  if (dryRun) {
    await discard(redis, begun, begun.name);
    return { outcome: 'dry-run', report: draft.end('dry-run', { previousVersion, ...diff }), ...facts };
  }
  const number = Number(begun.name);
  const report = draft.end('rolled-back', { version: number, previousVersion, ...diff });
  const concluded = conclusionOf(report, { startedAt, forced: false, rejects: null, validators: null });
  const rolledBack = (warnings: readonly string[]): RollbackResult => ({
    outcome: 'rolled-back',
    report: { ...report, warnings: [...report.warnings, ...warnings] },
    ...facts,
  });
  try {
    const next = {
      ...target,
      number,
      forced: false,
      live,
      changeSets,
      pause: { since: startedAt.toISOString(), version: target.version, by, why },
      rolledBack: live.checksum,
      validators: null,
      maxNumberWaitMs: context.maxNumberWaitMs ?? maxNumberWaitMs,
      keepVersions: Number.POSITIVE_INFINITY, // A rollback deletes no content: the next rollback may need it.
    };
    await publishVersion(redis, begun, next, concluded);
    return rolledBack(await awaitDurability(redis, { keys, version: number }));
  } catch (error) {
    if ((await discard(redis, begun, number).catch(() => 'dropped')) === 'published') return rolledBack([]);
    throw error;
  }
}

function versionRequired(
  collection: string,
  { since, version }: Pause,
  { kept, live }: { kept: readonly versions.Version[]; live: versions.Version },
): VersionRequiredError {
  const numbers = kept.map((it) => `${it.version}${it.version === live.version ? ' (live)' : ''}`).join(', ');
  return new VersionRequiredError(
    `${collection} was rolled back to the content of version ${version} at ${since}; imports are paused. To go back further, choose a version with --to. Kept: ${numbers}. "medref resume ${collection}" resumes imports.`,
  );
}

/** Returns the named version, or the last version before the current content first went live. */
function chooseTarget(
  kept: readonly versions.Version[],
  live: versions.Version,
  to: number | null,
): versions.Version {
  const numbers = kept.map(({ version }) => version).join(', ');
  if (to !== null) {
    const named = kept.find(({ version }) => version === to);
    if (named) return named;
    throw new RollbackError(`Version ${to} is not kept. Kept versions: ${numbers}.`);
  }
  const before = kept.findLast(({ version }) => version < versions.contentOf(live));
  if (before) return before;
  throw new RollbackError(
    `No version older than the live content is kept. Choose one with --to. Kept: ${numbers}.`,
  );
}

/** Ends the pause of a collection. @returns whether there was one */
export async function liftHold(redis: Redis, keys: CollectionKeys): Promise<boolean> {
  return (await redis.del(keys.pause)) === 1;
}
