// In: batches of records from upstream. Out: a staged version in Redis, its checksum and counts, and the rejects.
// Memory does not grow with the list: duplicates and the diff are found by Redis as a batch is written.

import { createHash } from 'node:crypto';
import type { CollectionKeys } from '../shared/keys.ts';
import type { Redis } from '../shared/redis.ts';
import { type StagedRecord, stage } from '../shared/scripts.ts';
import type { LiveVersion } from '../shared/versions.ts';
import { type ImportLock, lifetimes } from './import-lock.ts';
import type { SourceRecord } from './reader/record-reader.ts';
import type { Verdict } from './record-validator.ts';

/** A record refused, with its reason. */
export interface Reject {
  /** Position upstream, from 1. */
  readonly position: number;
  /** JSON path (RFC 9535) of what was wrong. */
  readonly path: string;
  readonly reason: string;
  /** The record as it came, cut off where it is very long. */
  readonly raw: string;
}

/** A version as it was staged. */
export interface StagedVersion {
  readonly read: number;
  readonly written: number;
  readonly rejected: number;
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  /** SHA-256 of the valid records in order, hexadecimal. */
  readonly checksum: string;
  /** The first rejects, at most {@link maxRejects}; `rejected` is their true total. */
  readonly rejects: readonly Reject[];
  /** JSON paths of unknown members that were left out, with how many records had each. */
  readonly unknownMembers: ReadonlyMap<string, number>;
}

/** How many rejects are kept, and how much of each text of theirs. */
export const maxRejects = 1_000;
const maxTextLength = 4_096;
const maxUnknownMembers = 100;

/** A batch is written when it has this many records, or this much text. */
const batchRecords = 500;
const batchLength = 1_000_000;

/** Where a version is staged, and what it is compared with. */
export interface StagingPlace {
  readonly redis: Redis;
  readonly keys: CollectionKeys;
  readonly lock: ImportLock;
  readonly number: number;
  readonly live: LiveVersion | null;
  readonly validate: (value: unknown) => Verdict;
  /** JSON path of the id, which a duplicate is rejected for. */
  readonly idPath: string;
}

/** Stages one version, batch by batch, in order. */
export class VersionWriter {
  readonly #place: StagingPlace;
  readonly #checksum = createHash('sha256');
  readonly #rejects: Reject[] = [];
  readonly #unknownMembers = new Map<string, number>();
  readonly #counts = { read: 0, written: 0, rejected: 0, added: 0, changed: 0 };
  #batch: Judged[] = [];
  #batchLength = 0;
  /** The batch that Redis works on while the next one is parsed. */
  #writing: Promise<void> = Promise.resolve();

  constructor(place: StagingPlace) {
    this.#place = place;
  }

  /** What has been counted so far; always `read = written + rejected`. */
  get counts(): Readonly<{ read: number; written: number; rejected: number }> {
    const { read, written, rejected } = this.#counts;
    return { read, written, rejected };
  }

  /** The rejects found so far. */
  get rejects(): readonly Reject[] {
    return this.#rejects;
  }

  /** Judges records and writes them by batches. @throws LockLostError; whatever Redis answers with */
  async write(records: readonly SourceRecord[]): Promise<void> {
    for (const source of records) {
      const verdict = this.#judge(source);
      this.#batch.push({ source, verdict });
      this.#batchLength += verdict.valid ? verdict.json.length : 0;
      if (this.#batch.length >= batchRecords || this.#batchLength >= batchLength) await this.#flush();
    }
  }

  /** Writes what is left and gives the staged version. */
  async finish(): Promise<StagedVersion> {
    await this.#flush();
    await this.#writing;
    const { live } = this.#place;
    return {
      ...this.#counts,
      removed: (live?.totalCount ?? 0) - (this.#counts.written - this.#counts.added),
      checksum: this.#checksum.digest('hex'),
      rejects: this.#rejects,
      unknownMembers: this.#unknownMembers,
    };
  }

  #judge({ value, flaw }: SourceRecord): Verdict {
    return flaw ? { valid: false, ...flaw } : this.#place.validate(value);
  }

  async #flush(): Promise<void> {
    await this.#writing;
    const batch = this.#batch;
    this.#batch = [];
    this.#batchLength = 0;
    this.#writing = this.#stage(batch);
    // A failure is thrown by the next await; until then it must not count as unhandled.
    this.#writing.catch(() => undefined);
  }

  async #stage(batch: readonly Judged[]): Promise<void> {
    const { redis, keys, lock, number, live, idPath } = this.#place;
    const records: StagedRecord[] = [];
    for (const { source, verdict } of batch) {
      if (verdict.valid) records.push({ position: source.position, id: verdict.id, json: verdict.json });
    }
    const firstPositions = new Map<number, number>();
    if (records.length > 0) {
      const { added, changed, duplicates } = await stage(redis, {
        ...{ keys, token: lock.token, number, records, liveContent: live?.content ?? 0 },
        lifetimeMs: lifetimes.stagedMs,
      });
      this.#counts.added += added;
      this.#counts.changed += changed;
      for (const [index, first] of duplicates)
        firstPositions.set((records[index] as StagedRecord).position, first);
    }
    for (const { source, verdict } of batch) {
      const first = firstPositions.get(source.position);
      if (!verdict.valid) this.#reject(source, verdict.path, verdict.reason);
      else if (first !== undefined)
        this.#reject(source, idPath, `is a duplicate of the record at position ${first}`);
      else this.#accept(verdict);
    }
  }

  #accept({ json, unknownMembers }: Extract<Verdict, { valid: true }>): void {
    this.#counts.read += 1;
    this.#counts.written += 1;
    this.#checksum.update(json).update('\n');
    for (const member of unknownMembers) {
      const known = this.#unknownMembers.get(member);
      if (known !== undefined || this.#unknownMembers.size < maxUnknownMembers) {
        this.#unknownMembers.set(member, (known ?? 0) + 1);
      }
    }
  }

  #reject(source: SourceRecord, path: string, reason: string): void {
    this.#counts.read += 1;
    this.#counts.rejected += 1;
    if (this.#rejects.length < maxRejects) {
      this.#rejects.push({
        position: source.position,
        path: shortened(path),
        reason,
        raw: shortened(source.raw()),
      });
    }
  }
}

interface Judged {
  readonly source: SourceRecord;
  readonly verdict: Verdict;
}

function shortened(text: string): string {
  return text.length <= maxTextLength ? text : `${text.slice(0, maxTextLength)}…`;
}
