// In: batches of records from upstream. Out: a staged version in Redis with all that is derived, its counts, the rejects.

import type { Collection } from '../../shared/collections/define.ts';
import type { Reject } from '../../shared/last-rejects.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { shortened } from '../../shared/shortened.ts';
import type { ContentFacts, Profile } from '../../shared/store/versions.ts';
import type { RecordBatch, SourceRecord } from '../parse/pages.ts';
import { recordCount } from '../parse/record-count.ts';
import { jsonPath } from '../parse/values.ts';
import type { BegunVersion } from '../scripts/held.ts';
import type { Duplicate } from '../scripts/stage-records.ts';
import { type ContentRecord, ContentWriter, storedRecord } from './content-writer.ts';
import { DerivedWriter } from './derived-writer.ts';
import { createProfiler, type Profiler } from './profile.ts';
import { createValidator, type Verdict } from './record-validator.ts';
import { type Repeats, RepeatsFinder } from './repeats.ts';

/** A version as it was staged. */
export interface StagedVersion {
  readonly read: number;
  readonly written: number;
  readonly rejected: number;
  readonly content: ContentFacts;
  /** By the names of the derived collections. */
  readonly derived: Readonly<Record<string, ContentFacts>>;
  readonly profile: Profile;
  /** The first rejects, at most {@link maxRejects}; `rejected` is their true total. */
  readonly rejects: readonly Reject[];
  /** The very same records on later pages, `null` where there are none. */
  readonly repeats: Repeats | null;
  /** JSON paths of unknown members that were left out, with how many records had each. */
  readonly unknownMembers: ReadonlyMap<string, number>;
  /** What was odd about derived records, as sentences. */
  readonly warnings: readonly string[];
}

/** How many rejects are kept, and how much of each text of theirs. */
export const maxRejects = 1_000;
const maxTextLength = 4_096;
const maxUnknownMembers = 100;
const maxMemberLength = 200;

/** A batch is written when it has this many records, or took this much of upstream's text. Redis answers no one meanwhile. */
const batchRecords = 100;
const batchBytes = 1_000_000;

/** How many batches Redis may be behind. */
const maxUnderWay = 8;

/** Stages one version, batch by batch, in order. */
export class VersionWriter {
  readonly #content: ContentWriter;
  readonly #derived: readonly DerivedWriter[];
  readonly #validate: (value: unknown) => Verdict;
  readonly #profiler: Profiler;
  /** JSON path of the id, which a duplicate is rejected for. */
  readonly #idPath: string;
  readonly #rejects: Reject[] = [];
  readonly #unknownMembers = new Map<string, number>();
  readonly #repeats = new RepeatsFinder();
  readonly #counts = { read: 0, written: 0, rejected: 0 };
  #batch: Judged[] = [];
  #batchBytes = 0;
  /** Batches that Redis works on while the next ones are parsed, the oldest first. */
  readonly #underWay: Promise<unknown>[] = [];
  /** Settled when all batches so far are counted, in their order. */
  #counted: Promise<unknown> = Promise.resolve();

  constructor(redis: Redis, begun: BegunVersion, collection: Collection) {
    this.#content = new ContentWriter(redis, begun, begun.keys, collection);
    this.#derived = (collection.derived ?? []).map((derived) => new DerivedWriter(redis, begun, derived));
    this.#validate = createValidator(collection);
    this.#profiler = createProfiler(collection);
    this.#idPath = jsonPath(collection.id);
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
  async write(batch: RecordBatch): Promise<void> {
    this.#batchBytes += batch.bytes;
    this.#repeats.takeBatch(batch);
    for (const source of batch.records) {
      this.#batch.push({ source, verdict: this.#judge(source) });
      if (this.#batch.length >= batchRecords || this.#batchBytes >= batchBytes) await this.#flush();
    }
  }

  /** Writes the records that are left, so that all that were read are counted. */
  async flush(): Promise<void> {
    await this.#flush();
    while (this.#underWay.length > 0) await this.#underWay.shift();
  }

  /** Waits until no write is under way any more, however each of them ends. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  /** Writes what is left and gives the staged version. */
  async finish(): Promise<StagedVersion> {
    await this.flush();
    const derived: Record<string, ContentFacts> = {};
    for (const writer of this.#derived) derived[writer.name] = await writer.finish();
    return {
      ...this.#counts,
      content: await this.#content.finish(),
      derived,
      profile: this.#profiler.profile(),
      rejects: this.#rejects,
      repeats: this.#repeats.found(),
      unknownMembers: this.#unknownMembers,
      warnings: this.#derived.flatMap((writer) => writer.warnings()),
    };
  }

  #judge({ value, flaw }: SourceRecord): Verdict {
    return flaw ? { valid: false, ...flaw } : this.#validate(value);
  }

  async #flush(): Promise<void> {
    while (this.#underWay.length >= maxUnderWay) await this.#underWay.shift();
    const batch = this.#batch;
    this.#batch = [];
    this.#batchBytes = 0;
    const valid = validOf(batch);
    const counted = Promise.all([this.#content.stageRecords(valid), this.#counted]).then(([duplicates]) =>
      this.#count(batch, valid, duplicates),
    );
    const written = counted.then((staying) =>
      Promise.all([
        this.#content.stageListing(staying),
        ...this.#derived.map((derived) => derived.write(staying)),
      ]),
    );
    this.#counted = counted;
    this.#underWay.push(written);
    // A failure is thrown by the next await; until then it must not count as unhandled.
    for (const promise of [counted, written]) promise.catch(() => undefined);
  }

  /** Counts the records of a batch that was staged. @returns those that stay */
  #count(
    batch: readonly Judged[],
    valid: readonly ContentRecord[],
    duplicates: readonly Duplicate[],
  ): ContentRecord[] {
    const firstPositions = new Map<number, number>();
    for (const { index, firstPosition, isSame } of duplicates) {
      const { position } = valid[index] as ContentRecord;
      firstPositions.set(position, firstPosition);
      if (isSame) this.#repeats.takeSame(firstPosition, position);
    }
    for (const { source, verdict } of batch) {
      const first = firstPositions.get(source.position);
      if (!verdict.valid) this.#reject(source, verdict.path, verdict.reason);
      else if (first !== undefined)
        this.#reject(source, this.#idPath, `is a duplicate of the record at position ${first}`);
      else this.#accept(verdict);
    }
    return valid.filter(({ position }) => !firstPositions.has(position));
  }

  #accept({ record, unknownMembers }: Extract<Verdict, { valid: true }>): void {
    this.#counts.read += 1;
    this.#counts.written += 1;
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
        path: shortened(path, maxTextLength),
        reason,
        raw: shortened(source.raw(), maxTextLength),
      });
    }
  }
}

function validOf(batch: readonly Judged[]): ContentRecord[] {
  return batch.flatMap(({ source: { position }, verdict }) => {
    if (!verdict.valid) return [];
    const { id, json, record } = verdict;
    return [{ position, id, json, stored: storedRecord(id, json), record }];
  });
}

interface Judged {
  readonly source: SourceRecord;
  readonly verdict: Verdict;
}

/** What an operator should know of members that were left out, as a sentence; none where there were none. */
export function unknownMembersWarning({ unknownMembers }: StagedVersion): string[] {
  if (unknownMembers.size === 0) return [];
  const list = [...unknownMembers].map(([path, count]) => `${path} (${recordCount(count)})`).join(', ');
  return [`Unknown members were left out: ${list}.`];
}
