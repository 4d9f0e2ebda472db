// In: batches of records from upstream. Out: a staged version in Redis, its checksum and counts, and the rejects.
// Memory does not grow with the list: duplicates are found by Redis as a batch is written.

import { createHash } from 'node:crypto';
import type { Collection } from '../shared/collections/collection.ts';
import type { Redis } from '../shared/redis.ts';
import { type StagedRecord, type Staging, stage } from '../shared/scripts.ts';
import type { Profile } from '../shared/versions.ts';
import { createProfiler, type Profiler } from './profile.ts';
import type { RecordBatch, SourceRecord } from './reader/record-reader.ts';
import { createValidator, idJsonPath, type Verdict } from './record-validator.ts';

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
  /** SHA-256 of the valid records in order, hexadecimal. */
  readonly checksum: string;
  readonly profile: Profile;
  /** The first rejects, at most {@link maxRejects}; `rejected` is their true total. */
  readonly rejects: readonly Reject[];
  /** JSON paths of unknown members that were left out, with how many records had each. */
  readonly unknownMembers: ReadonlyMap<string, number>;
}

/** How many rejects are kept, and how much of each text of theirs. */
export const maxRejects = 1_000;
const maxTextLength = 4_096;
const maxUnknownMembers = 100;
const maxMemberLength = 200;

/** A batch is written when it has this many records, or took this much of upstream's text. */
const batchRecords = 500;
const batchBytes = 1_000_000;

/** Stages one version, batch by batch, in order. */
export class VersionWriter {
  readonly #redis: Redis;
  readonly #staging: Staging;
  readonly #validate: (value: unknown) => Verdict;
  readonly #profiler: Profiler;
  /** JSON path of the id, which a duplicate is rejected for. */
  readonly #idPath: string;
  readonly #checksum = createHash('sha256');
  readonly #rejects: Reject[] = [];
  readonly #unknownMembers = new Map<string, number>();
  readonly #counts = { read: 0, written: 0, rejected: 0 };
  #batch: Judged[] = [];
  #batchBytes = 0;
  /** The batch that Redis works on while the next one is parsed. */
  #writing: Promise<void> = Promise.resolve();

  constructor(redis: Redis, staging: Staging, collection: Collection) {
    this.#redis = redis;
    this.#staging = staging;
    this.#validate = createValidator(collection);
    this.#profiler = createProfiler(collection);
    this.#idPath = idJsonPath(collection);
  }

  /** What has been counted so far; always `read = written + rejected`. */
  get counts(): Readonly<{ read: number; written: number; rejected: number }> {
    return { ...this.#counts };
  }

  /** The rejects found so far. */
  get rejects(): readonly Reject[] {
    return this.#rejects;
  }

  /** Judges records and writes them by batches. @throws LockLostError; whatever Redis answers with */
  async write({ records, bytes }: RecordBatch): Promise<void> {
    this.#batchBytes += bytes;
    for (const source of records) {
      this.#batch.push({ source, verdict: this.#judge(source) });
      if (this.#batch.length >= batchRecords || this.#batchBytes >= batchBytes) await this.#flush();
    }
  }

  /** Writes what is left and gives the staged version. */
  async finish(): Promise<StagedVersion> {
    await this.#flush();
    await this.#writing;
    return {
      ...this.#counts,
      profile: this.#profiler.profile(),
      checksum: this.#checksum.digest('hex'),
      rejects: this.#rejects,
      unknownMembers: this.#unknownMembers,
    };
  }

  #judge({ value, flaw }: SourceRecord): Verdict {
    return flaw ? { valid: false, ...flaw } : this.#validate(value);
  }

  async #flush(): Promise<void> {
    await this.#writing;
    const batch = this.#batch;
    this.#batch = [];
    this.#batchBytes = 0;
    this.#writing = this.#stage(batch);
    // A failure is thrown by the next await; until then it must not count as unhandled.
    this.#writing.catch(() => undefined);
  }

  async #stage(batch: readonly Judged[]): Promise<void> {
    const records: StagedRecord[] = [];
    for (const { source, verdict } of batch) {
      if (verdict.valid) records.push({ position: source.position, id: verdict.id, json: verdict.json });
    }
    const firstPositions = new Map<number, number>();
    if (records.length > 0) {
      for (const { index, firstPosition } of await stage(this.#redis, this.#staging, records)) {
        firstPositions.set((records[index] as StagedRecord).position, firstPosition);
      }
    }
    for (const { source, verdict } of batch) {
      const first = firstPositions.get(source.position);
      if (!verdict.valid) this.#reject(source, verdict.path, verdict.reason);
      else if (first !== undefined)
        this.#reject(source, this.#idPath, `is a duplicate of the record at position ${first}`);
      else this.#accept(verdict);
    }
  }

  #accept({ record, json, unknownMembers }: Extract<Verdict, { valid: true }>): void {
    this.#counts.read += 1;
    this.#counts.written += 1;
    this.#checksum.update(json).update('\n');
    this.#profiler.add(record);
    for (const member of unknownMembers) {
      const isRoom =
        this.#unknownMembers.size < maxUnknownMembers ||
        this.#unknownMembers.has(shortened(member, maxMemberLength));
      const name = isRoom ? shortened(member, maxMemberLength) : 'others';
      this.#unknownMembers.set(name, (this.#unknownMembers.get(name) ?? 0) + 1);
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

function shortened(text: string, length = maxTextLength): string {
  if (text.length <= length) return text;
  // Copied, because a slice would hold on to all of the text.
  const start = Buffer.from(text.slice(0, length), 'utf16le').toString('utf16le');
  return `${start}…`;
}
