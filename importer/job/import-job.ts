// One import under way: what it works with, what it holds, and how far it has come.

import type { Logger } from 'pino';
import type { Collection } from '../../shared/collections/collection.ts';
import { currentFormat } from '../../shared/formats/content-format.ts';
import type { CollectionKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import type { StoredContent } from '../../shared/versions.ts';
import type { ReaderLimits } from '../parse/pages.ts';
import type { BegunVersion } from '../scripts/held.ts';
import type { UpstreamLimits } from '../upstream/access.ts';
import type { Arrival, Validators } from '../upstream/body.ts';
import type { StagedVersion, VersionWriter } from '../writing/version-writer.ts';
import type { ImportLock, Lifetimes } from './import-lock.ts';
import type { ReportDraft } from './import-report.ts';

/** What an import works with. */
export interface ImportContext {
  readonly redis: Redis;
  readonly keyPrefix: string;
  readonly upstream: { readonly url: URL; readonly token: string | undefined };
  readonly maxShrinkPercent: number;
  readonly maxRejectPercent: number;
  readonly maxChangePercent: number;
  readonly keepVersions: number;
  /** How many replicas a publication is waited for; `undefined`: all that there are. */
  readonly waitReplicas?: number | undefined;
  /** Publish past the checks and the memory of rollbacks; a version without a valid record is refused even so. */
  readonly force: boolean;
  /** Go the whole way up to publishing, and leave nothing behind. */
  readonly dryRun: boolean;
  /** By the schedule, not by hand: a held collection is left alone. */
  readonly scheduled: boolean;
  readonly logger: Logger;
  /** Ends the import early, as failed. */
  readonly signal?: AbortSignal | undefined;
  /** Told how far it has come, after each batch of records. */
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
  /** Of the lock, and of what is staged under it; tests shorten them. */
  readonly lifetimes?: Lifetimes | undefined;
  /** See version-number.ts; tests do not wait. */
  readonly maxNumberWaitMs?: number | undefined;
  /** Bounds on waiting and size; tests shorten them. */
  readonly upstreamLimits?: Partial<UpstreamLimits> | undefined;
  /** Bounds on the list; tests shorten them. */
  readonly readerLimits?: Partial<ReaderLimits> | undefined;
}

/** How far an import has come. */
export interface ImportProgress {
  /** Records. */
  readonly read: number;
  /** How much of the document has arrived; `null` of a list of pages, of which nobody knows how many there are. */
  readonly arrival: Arrival | null;
}

/** One import of one collection, under its lock. */
export interface ImportJob {
  readonly collection: Collection;
  readonly context: ImportContext;
  readonly keys: CollectionKeys;
  readonly lock: ImportLock;
  readonly report: ReportDraft;
  readonly startedAt: Date;
  /** What upstream gave to tell its list from a later one. */
  validators: Validators | null;
  /** The version of a medref that was read, `null` of any other upstream; `undefined` before that is known. */
  upstreamVersion: string | null | undefined;
  /** What the last walk found that looked as if the list had moved under it. */
  foundMoving: string | null;
  /** What is being staged; `null` before there is anything. */
  begun: (BegunVersion & { readonly writer: VersionWriter }) | null;
}

/** What an import has staged. @throws Error before there is anything */
export function begunOf(job: ImportJob): BegunVersion & { readonly writer: VersionWriter } {
  if (!job.begun) throw new Error('Nothing has been staged yet.');
  return job.begun;
}

/** What an import has staged, as a content that is stored. */
export function stagedContent(job: ImportJob, { content, derived }: StagedVersion): StoredContent {
  return { stored: begunOf(job).name, format: currentFormat, ...content, derived };
}
