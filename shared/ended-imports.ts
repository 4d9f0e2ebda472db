// The history of a collection's imports: what an import leaves of itself, and reading it.

import type { Redis } from './redis/connections.ts';
import { parseStored } from './redis/damage.ts';
import type { CollectionKeys } from './store/keys.ts';

/** How many imports the history keeps. */
export const historyCap = 100;

/** How an import ended. */
export type ImportOutcome =
  | 'published'
  | 'unchanged'
  | 'refused'
  | 'failed'
  | 'locked'
  | 'dry-run'
  /** Left alone by the schedule; never the outcome of an import by hand. */
  | 'held'
  /** An older content was made live again, by an operator. */
  | 'rolled-back';

/** The account of one import of one collection; the members are the contract's, in its order. */
export interface ImportReport {
  readonly collection: string;
  readonly outcome: ImportOutcome;
  /** The version that readers get by this import: the new one, or the live one where nothing had changed. */
  readonly version: number | null;
  /** The version that was live before. */
  readonly previousVersion: number | null;
  /** `read = written + rejected`, whatever the outcome; `written` counts valid records. */
  readonly read: number;
  readonly written: number;
  readonly rejected: number;
  /** Against the version that was live before. */
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  readonly durationMs: number;
  /** Why it was refused, failed or locked. */
  readonly reason: string | null;
  readonly warnings: readonly string[];
}

/** What upstream gave to tell a list from a later one. */
export interface KeptValidators {
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** An import in the history. */
export interface HistoryEntry extends ImportReport {
  readonly startedAt: string;
  readonly endedAt: string;
  readonly forced: boolean;
  /** `null` where upstream gave none, or sent pages. */
  readonly validators: KeptValidators | null;
  /** The version of another medref that was read; `null` of any other upstream, absent where it was not read. */
  readonly upstreamVersion?: string | null | undefined;
}

/** The last imports of a collection, latest first. @throws DamagedKeyError */
export async function readHistory(
  redis: Redis,
  keys: CollectionKeys,
  count: number,
): Promise<HistoryEntry[]> {
  const entries = await redis.xrevrange(keys.imports, '+', '-', 'COUNT', count);
  return entries.map(([, fields]) => parseStored<HistoryEntry>(keys.imports, fields[1] as string));
}
