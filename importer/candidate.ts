// Publishes or discards the candidate of a collection: the very bytes that an import staged and an operator inspected.

import type { Logger } from 'pino';
import { type Candidate, comparedNumber, isPublishable, readCandidate } from '../shared/candidates.ts';
import type { Collection } from '../shared/collections/define.ts';
import type { Redis } from '../shared/redis/connections.ts';
import type { LockHolder } from '../shared/store/import-locks.ts';
import { collectionKeys } from '../shared/store/keys.ts';
import { conclude, StagedLostError } from '../shared/store/scripts.ts';
import { type LiveVersion, readLiveVersion } from '../shared/store/versions.ts';
import { requireIntactKeys } from './bookkeeping.ts';
import { awaitDurability } from './durability.ts';
import { contentDamage, knownDamage } from './integrity.ts';
import { Lease } from './lease.ts';
import { maxNumberWaitMs, publishVersion } from './publish.ts';
import { conclusionOf, type ImportResult, startReport } from './report.ts';

/** What an operator does with a candidate. */
export interface CandidateContext {
  readonly redis: Redis;
  readonly keyPrefix: string;
  /** The number of the candidate that the operator inspected; `null`: whichever waits. */
  readonly number: number | null;
  /** Who does it, for the history: user and host. */
  readonly by: string;
  /** The reason that the operator gives. */
  readonly why?: string | undefined;
}

/** A candidate that was not published or discarded; the message says why. */
export class CandidateError extends Error {}

/** How it ended. */
export type CandidateResult =
  | {
      readonly outcome: 'published' | 'discarded';
      readonly report: ImportResult;
      readonly candidate: Candidate;
    }
  | { readonly outcome: 'locked'; readonly lock: LockHolder };

/**
 * Makes the candidate of a collection live, in the same step as an import. It asks nothing of upstream, and ends a pause.
 * @throws CandidateError if there is none, another version went live since, or part of it was lost: then it is deleted
 */
export async function publishCandidate(
  collection: Collection,
  context: CandidateContext & { readonly keepVersions: number; readonly logger: Logger },
): Promise<CandidateResult> {
  return withCandidate(collection, context, async (candidate, lease) => {
    const { redis, logger, keepVersions, by, why = null } = context;
    const { keys } = lease;
    const { version, entry, despite, changeSets, validators } = candidate;
    const number = version.version;
    const live = await readLiveVersion(redis, keys);
    if (!isPublishable(candidate, live)) throw outdated(collection.name, candidate, live);
    const lost = async (damage: string) => {
      await deleteCandidate(lease, context, candidate);
      return new CandidateError(
        `The candidate ${number} of ${collection.name} lost data in Redis and was deleted. Run "medref import ${collection.name}". ${damage}`,
      );
    };
    for await (const damage of contentDamage(redis, keys, { collection, content: version }))
      throw await lost(damage);
    const damaged = live && (await knownDamage(redis, keys, live)) !== null ? live.content : undefined;
    const draft = startReport(collection.name);
    const { read, written, rejected, added, changed, removed, causes = [] } = entry;
    const previousVersion = live?.version ?? null;
    draft.note({
      previousVersion,
      read,
      written,
      rejected,
      added,
      changed,
      removed,
      causes,
      despite,
      by,
      why,
    });
    draft.warn(...entry.warnings);
    const report = draft.end('published', { version: number });
    const { forced } = version;
    const startedAt = new Date(entry.startedAt);
    const { validators: kept, upstreamVersion } = entry;
    const concluded = conclusionOf(report, {
      startedAt,
      forced,
      rejects: null,
      validators: kept,
      upstreamVersion,
    });
    await publishVersion(
      redis,
      lease,
      {
        ...{ ...version, number, live, changeSets, damaged, keepVersions, validators, maxNumberWaitMs },
        ...{ pause: null, rolledBack: null, checkedAt: entry.endedAt },
      },
      concluded,
    ).catch(async (error) => {
      throw error instanceof StagedLostError ? await lost('Its parts have other sizes than it had.') : error;
    });
    draft.warn(...(await awaitDurability(redis, { keys, version: number, logger })));
    return { outcome: 'published', candidate, report: draft.end('published', { version: number }) };
  });
}

/** Deletes the candidate of a collection. @throws CandidateError if there is none */
export async function discardCandidate(
  collection: Collection,
  context: CandidateContext,
): Promise<CandidateResult> {
  return withCandidate(collection, context, async (candidate, lease) => {
    const report = await deleteCandidate(lease, context, candidate);
    return { outcome: 'discarded', candidate, report };
  });
}

/** Does something with the candidate under the lock of its collection. @throws CandidateError if there is none */
async function withCandidate(
  collection: Collection,
  { redis, keyPrefix, number }: CandidateContext,
  act: (candidate: Candidate, lease: Lease) => Promise<CandidateResult>,
): Promise<CandidateResult> {
  const keys = collectionKeys(keyPrefix, collection);
  const lease = await Lease.take(redis, keys);
  if (!(lease instanceof Lease)) return { outcome: 'locked', lock: lease };
  try {
    await requireIntactKeys(redis, collection.name, keys);
    const candidate = await readCandidate(redis, keys);
    if (!candidate)
      throw new CandidateError(
        `${collection.name} has no candidate. An import that a check refuses leaves one, and every import with PUBLISH=manual.`,
      );
    const { version } = candidate.version;
    if (number !== null && number !== version)
      throw new CandidateError(
        `The candidate of ${collection.name} is ${version}, not ${number}. "medref diff ${collection.name} --to candidate" shows it.`,
      );
    return await act(candidate, lease);
  } finally {
    await lease.release().catch(() => undefined); // It expires.
  }
}

function outdated(name: string, candidate: Candidate, live: LiveVersion | null): CandidateError {
  const before = comparedNumber(candidate);
  const compared = before === null ? 'before any version was live' : `with version ${before}`;
  return new CandidateError(
    `The live version of ${name} has changed: the candidate ${candidate.version.version} was compared ${compared}, and ` +
      `${live ? `version ${live.version} is live now` : 'no version is live now'}. Run "medref import ${name}".`,
  );
}

/** Deletes a candidate with its keys, and adds that to the history. */
async function deleteCandidate(
  lease: Lease,
  { redis, by, why }: CandidateContext,
  { version, entry }: Candidate,
): Promise<ImportResult> {
  const { collection, previousVersion } = entry;
  const reason = `The candidate ${version.version} was deleted.`;
  const facts = { startedAt: new Date(), forced: false, rejects: null, validators: null };
  const report = startReport(collection).end('discarded', { previousVersion, reason, by, why: why ?? null });
  const end = {
    name: String(version.version),
    checkedAt: '',
    validators: { kind: 'keep' },
    candidate: { kind: 'delete' },
  } as const;
  await conclude(redis, lease, end, conclusionOf(report, facts));
  return report;
}
