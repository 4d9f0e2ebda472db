// The import history of a collection: its entries, and how they are read.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Redis } from './redis/connections.ts';
import { parseStored } from './redis/failures.ts';
import type { CollectionKeys } from './store/keys.ts';
import { count } from './text.ts';

/** The number of imports in the history. */
export const historyCap = 100;

/** How an import ended. */
export type ImportOutcome =
  | 'published'
  /** With `PUBLISH=manual`, it passed the checks and waits for `medref publish`. */
  | 'candidate'
  | 'unchanged'
  | 'refused'
  | 'failed'
  | 'locked'
  | 'dry-run'
  /** A signal stopped it. */
  | 'interrupted'
  /** The schedule skipped it because the collection is paused. */
  | 'paused'
  /** An operator published an earlier content again. */
  | 'rolled-back'
  /** An operator deleted a candidate. */
  | 'discarded';

/** The report of one import of one collection; `import --json` prints its members in this order. */
export interface ImportReport {
  readonly collection: string;
  readonly outcome: ImportOutcome;
  /** The live version after this import, if it published or found nothing new; the candidate, if the outcome is `candidate`. */
  readonly version: number | null;
  /** The live version before. */
  readonly previousVersion: number | null;
  /** `read = written + rejected`, whatever the outcome; `written` counts valid records. */
  readonly read: number;
  readonly written: number;
  readonly rejected: number;
  /** Compared with the live version before. */
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  readonly durationMs: number;
  /** Why the import was refused, failed or locked. */
  readonly reason: string | null;
  readonly warnings: readonly string[];
}

/** A reason why records were rejected. */
export interface RejectCause {
  /** JSON path (RFC 9535) of the fault; `[*]` stands for any index. */
  readonly path: string;
  readonly reason: string;
  /** How many records it rejected. */
  readonly count: number;
  /** Position of the first of them. */
  readonly position: number;
  /** An unknown member of most of these records with a name similar to the missing one; `null`: none. */
  readonly renamed: string | null;
}

/** Returns path and reason of a reject without its indexes and positions, so that equal causes are equal. */
export function causeOf({ path, reason }: Pick<Reject, 'path' | 'reason'>): Pick<Reject, 'path' | 'reason'> {
  return { path: path.replace(/\[\d+\]/g, '[*]'), reason: reason.replace(/\bposition \d+/g, 'position …') };
}

/** Returns a cause as text: `20 × $.drugform is required (first at position 7; unknown member "drugForm": renamed?)`. */
export function causeText({ path, reason, count: times, position, renamed }: RejectCause): string {
  const notes = [
    ...(position > 0 && times > 1 ? [`first at position ${count(position)}`] : []),
    ...(renamed === null ? [] : [`unknown member ${JSON.stringify(renamed)}: renamed?`]),
  ];
  return `${count(times)} × ${path} ${reason}${notes.length > 0 ? ` (${notes.join('; ')})` : ''}`;
}

/** A report with the facts that only the history keeps. */
export interface ImportResult extends ImportReport {
  /** Why records were rejected, the most frequent cause first. */
  readonly causes: readonly RejectCause[];
  /** The checks that `--force` skipped or an operator overruled by `publish`, each with its figures. */
  readonly despite: readonly string[];
  /** Who did it: user and host, such as `root@vm`, or `schedule`; `null` if unknown. */
  readonly by: string | null;
  /** The `--reason` of the operator; `null` without one. */
  readonly why: string | null;
  /** The number of the candidate that it left; `null` without one. */
  readonly candidate: number | null;
  /** Whether parts of the live version were missing or damaged, so that readers get 503 for them. */
  readonly isLiveDamaged: boolean;
}

/** Returns who did something and why, as text: `by root@vm: "wrong list"`; `''` if unknown. */
export function byText({ by = null, why = null }: Partial<Pick<ImportResult, 'by' | 'why'>>): string {
  if (by === null) return '';
  return why === null ? `by ${by}` : `by ${by}: ${JSON.stringify(why)}`;
}

/** Why a check refuses data that was rolled back. */
export const rolledBackRefusal = 'Upstream still serves the data that you rolled back';

/** The validators of upstream's response, for the next conditional request. */
export interface KeptValidators {
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** An import in the history. */
export interface HistoryEntry
  extends ImportReport,
    Partial<Pick<ImportResult, 'causes' | 'despite' | 'by' | 'why' | 'candidate'>> {
  readonly startedAt: string;
  readonly endedAt: string;
  readonly forced: boolean;
  /** `null` if upstream sent none, or sent pages. */
  readonly validators: KeptValidators | null;
  /** The version of the upstream medref; `null` for other upstreams, absent if upstream was not read. */
  readonly upstreamVersion?: string | null | undefined;
}

/** An entry of the history as it is read. */
export interface PastImport extends HistoryEntry {
  /** The id that Redis gave to the entry, such as `1795316405123-0`. */
  readonly id: string;
}

/** The form of an entry's id. */
export const importId = /^[0-9]{1,16}-[0-9]{1,16}$/;

/** Returns the last imports of a collection, latest first. @throws DamagedKeyError */
export async function readHistory(redis: Redis, keys: CollectionKeys, most: number): Promise<PastImport[]> {
  const entries = await redis.xrevrange(keys.imports, '+', '-', 'COUNT', most);
  return entries.map((entry) => pastImport(keys, entry));
}

/** Returns one import of the history, or `null` if the history does not have it. @throws DamagedKeyError */
export async function readImport(redis: Redis, keys: CollectionKeys, id: string): Promise<PastImport | null> {
  const [entry] = await redis.xrange(keys.imports, id, id);
  return entry ? pastImport(keys, entry) : null;
}

/** Returns the entry of the history that published a version. */
export function publicationOf<Entry extends HistoryEntry>(
  history: readonly Entry[],
  number: number,
): Entry | undefined {
  return history.find(({ version, outcome }) => version === number && isPublication(outcome));
}

/** Returns whether an outcome made a version live. */
export function isPublication(outcome: ImportOutcome): boolean {
  return outcome === 'published' || outcome === 'rolled-back';
}

function pastImport(keys: CollectionKeys, [id, fields]: readonly [string, readonly string[]]): PastImport {
  return { ...parseStored<HistoryEntry>(keys.imports, fields[1] as string), id };
}

/** A rejected record with its reason. */
export interface Reject {
  /** Position in the upstream list, from 1. */
  readonly position: number;
  /** JSON path (RFC 9535) of the fault. */
  readonly path: string;
  readonly reason: string;
  /** The record as upstream sent it; a very long one is cut. */
  readonly raw: string;
}

/** The first rejects of the last import, and how many there were. */
export interface LastRejects {
  readonly total: number;
  /** When that import ended, ISO 8601; `null` if no import has read records yet. */
  readonly endedAt: string | null;
  readonly causes: readonly RejectCause[];
  readonly rejects: readonly Reject[];
}

/** The first element of the stored list. */
export interface RejectsHeader {
  readonly total: number;
  readonly endedAt: string;
  /** Absent if an earlier release stored the list. */
  readonly causes?: readonly RejectCause[];
}

/** Rejects that are parsed in one turn of the event loop: at most 2 ms. */
const parsedAtOnce = 100;

/** Reads the rejects of the last import that read records. @throws DamagedKeyError */
export async function readLastRejects(redis: Redis, keys: CollectionKeys): Promise<LastRejects> {
  const [header, ...texts] = await redis.lrange(keys.rejects, 0, -1);
  if (header === undefined) return { total: 0, endedAt: null, causes: [], rejects: [] };
  const { total, endedAt, causes = [] } = parseStored<RejectsHeader>(keys.rejects, header);
  const rejects: Reject[] = [];
  for (const [n, text] of texts.entries()) {
    rejects.push(parseStored<Reject>(keys.rejects, text));
    if (n % parsedAtOnce === parsedAtOnce - 1) await nextTurn();
  }
  return { total, endedAt, causes, rejects };
}
