// The candidate of a collection: a staged version that waits for an operator to publish or discard it.

import type { HistoryEntry } from './import-history.ts';
import type { Redis } from './redis/connections.ts';
import { DamagedKeyError, parseStored } from './redis/failures.ts';
import type { ChangeSetFacts } from './store/change-sets.ts';
import type { CollectionKeys } from './store/keys.ts';
import { type LiveVersion, parseVersion, type Version } from './store/versions.ts';

/** How long a candidate is kept, in ms: 7 days. */
export const candidateLifetimeMs = 7 * 86_400_000;

/** A candidate as Redis has it. */
export interface Candidate {
  /** The version that a publication makes live; `publishedAt` is the time at which its import ended. */
  readonly version: Version;
  /** The document of the live version that it was compared with; `''` if there was none. */
  readonly comparedWith: string;
  /** The facts of the change set of each part, see `VersionDiffCounts`. */
  readonly changeSets: readonly (ChangeSetFacts | null)[];
  /** The checks that refused it, each with its figures. */
  readonly despite: readonly string[];
  /** JSON text of upstream's validators; `null` for none. */
  readonly validators: string | null;
  /** The history entry of its import; its outcome is `refused` or `candidate`. */
  readonly entry: HistoryEntry;
}

/** Returns the candidate of a collection; `null` if there is none. @throws DamagedKeyError */
export async function readCandidate(redis: Redis, keys: CollectionKeys): Promise<Candidate | null> {
  const text = await redis.get(keys.candidate);
  return text === null ? null : parseCandidate(keys.candidate, text);
}

/** Parses the stored text of a candidate. @throws DamagedKeyError */
export function parseCandidate(key: string, text: string): Candidate {
  const { version, ...candidate } = parseStored<Candidate>(key, text);
  const { comparedWith, changeSets, despite, entry } = candidate;
  const isWhole = typeof comparedWith === 'string' && Array.isArray(changeSets) && Array.isArray(despite);
  if (!isWhole || typeof entry?.endedAt !== 'string')
    throw new DamagedKeyError(`The Redis key ${key} holds a text that is not a candidate.`);
  if (comparedWith !== '') parseVersion(key, comparedWith);
  return { ...candidate, version: parseVersion(key, JSON.stringify(version ?? null)) };
}

/** Returns whether a candidate can still be published: the live version is the one that it was compared with. */
export function isPublishable({ comparedWith }: Candidate, live: LiveVersion | null): boolean {
  return comparedWith === (live?.document ?? '');
}

/** Returns when a candidate expires, ISO 8601. */
export function expiryOf({ entry }: Candidate): string {
  return new Date(Date.parse(entry.endedAt) + candidateLifetimeMs).toISOString();
}

/** Returns the number of the version that a candidate was compared with; `null` if none was live. */
export function comparedNumber({ comparedWith }: Candidate): number | null {
  return comparedWith === '' ? null : (JSON.parse(comparedWith) as Version).version;
}
