// Stages a version: validates the records of upstream, rejects duplicates, and writes the content and its derived contents.

import type { Collection, DerivedCollection } from '../shared/collections/define.ts';
import type { Reject, RejectCause } from '../shared/import-history.ts';
import type { Redis } from '../shared/redis/connections.ts';
import type { StagingSession } from '../shared/store/scripts.ts';
import type { ContentFacts, Profile } from '../shared/store/versions.ts';
import { counted, truncate } from '../shared/text.ts';
import { ContentWriter } from './content-writer.ts';
import type { SourceRecord } from './parse/pages.ts';
import { jsonPath } from './parse/values.ts';
import { RejectCauses } from './reject-causes.ts';
import { createValidator, type Description, describe, type Verdict } from './validate.ts';

/** A staged version. */
export interface StagedVersion {
  readonly read: number;
  readonly written: number;
  readonly rejected: number;
  readonly content: ContentFacts;
  /** Facts by name of the derived collection. */
  readonly derived: Readonly<Record<string, ContentFacts>>;
  readonly profile: Profile;
  /** The first rejects, at most {@link maxRejects}; `rejected` is their true total. */
  readonly rejects: readonly Reject[];
  /** Warnings for the operator, as sentences. */
  readonly warnings: readonly string[];
}

/** How many rejects are stored, and how many characters of each text. */
export const maxRejects = 1_000;
const maxTextLength = 4_096;
const maxUnknownMembers = 100;
const maxMemberLength = 200;

/** Stages one version. Every method that waits throws whatever Redis replies. */
export class VersionWriter {
  readonly #content: ContentWriter;
  readonly #derived: readonly DerivedWriter[];
  readonly #validate: (value: unknown) => Verdict;
  readonly #profiler: Profiler;
  /** JSON path of the id, named when a duplicate is rejected. */
  readonly #idPath: string;
  /** Positions of accepted records, by id. */
  readonly #positions = new Map<number, number>();
  readonly #rejects: Reject[] = [];
  readonly #causes = new RejectCauses();
  readonly #unknownMembers = new Map<string, number>();
  readonly #counts = { read: 0, written: 0, rejected: 0 };

  constructor(redis: Redis, { keys, name, lifetimeMs }: StagingSession, collection: Collection) {
    const staging = { redis, lifetimeMs };
    this.#content = new ContentWriter(staging, keys.content(name), collection);
    this.#derived = (collection.derived ?? []).map((derived) => {
      const derivedKeys = keys.derived(derived.collection.name).content(name);
      return new DerivedWriter(derived, new ContentWriter(staging, derivedKeys, derived.collection));
    });
    this.#validate = createValidator(collection);
    this.#profiler = createProfiler(collection);
    this.#idPath = jsonPath(collection.id);
  }

  /** Returns the counts so far; `read` is always `written + rejected`. */
  get counts(): Readonly<{ read: number; written: number; rejected: number }> {
    return { ...this.#counts };
  }

  /** Returns the rejects found so far. */
  get rejects(): readonly Reject[] {
    return this.#rejects;
  }

  /** Returns the causes of the rejects so far. */
  get causes(): readonly RejectCause[] {
    return this.#causes.list();
  }

  /** Validates records and stages the valid ones. */
  async write(records: readonly SourceRecord[]): Promise<void> {
    for (const source of records) {
      this.#take(source);
      if (this.#content.isFull) await this.#content.flush();
      for (const { content } of this.#derived) if (content.isFull) await content.flush();
    }
  }

  /** Waits until no write is in progress, however each ends. */
  async settle(): Promise<void> {
    await Promise.all(
      [this.#content, ...this.#derived.map(({ content }) => content)].map((it) => it.settle()),
    );
  }

  /** Writes the rest and returns the staged version. */
  async finish(): Promise<StagedVersion> {
    const content = await this.#content.finish();
    const derived: Record<string, ContentFacts> = {};
    for (const writer of this.#derived) derived[writer.name] = await writer.content.finish();
    return {
      ...this.#counts,
      content,
      derived,
      profile: this.#profiler.profile(),
      rejects: this.#rejects,
      warnings: [...this.#unknownMembersWarning(), ...this.#derived.flatMap((it) => it.warnings())],
    };
  }

  #take(source: SourceRecord): void {
    this.#counts.read += 1;
    const verdict = source.flaw ? { valid: false as const, ...source.flaw } : this.#validate(source.value);
    if (!verdict.valid) {
      this.#reject(source, verdict);
      return;
    }
    const first = this.#positions.get(verdict.id);
    if (first !== undefined) {
      const reason = `is a duplicate of the record at position ${first}`;
      this.#reject(source, { path: this.#idPath, reason });
      return;
    }
    this.#positions.set(verdict.id, source.position);
    this.#counts.written += 1;
    this.#content.add(verdict);
    for (const derived of this.#derived) derived.add(verdict.record, source.position);
    this.#profiler.add(verdict.record);
    for (const member of verdict.unknownMembers) this.#noteUnknown(truncate(member, maxMemberLength));
  }

  #noteUnknown(member: string): void {
    const isRoom = this.#unknownMembers.size < maxUnknownMembers || this.#unknownMembers.has(member);
    const name = isRoom ? member : 'others';
    this.#unknownMembers.set(name, (this.#unknownMembers.get(name) ?? 0) + 1);
  }

  #reject(
    source: SourceRecord,
    { path, reason, similar }: { path: string; reason: string; similar?: string | undefined },
  ): void {
    this.#counts.rejected += 1;
    this.#causes.add({ position: source.position, path, reason }, similar);
    if (this.#rejects.length >= maxRejects) return;
    this.#rejects.push({
      position: source.position,
      path: truncate(path, maxTextLength),
      reason,
      raw: truncate(source.raw(), maxTextLength),
    });
  }

  #unknownMembersWarning(): string[] {
    if (this.#unknownMembers.size === 0) return [];
    const list = [...this.#unknownMembers].map(([path, count]) => `${path} (${counted(count, 'record')})`);
    return [`Unknown members were ignored: ${list.join(', ')}.`];
  }
}

/** How many conflicting ids a warning lists, and how many characters of a record it shows. */
const maxNamed = 10;
const maxShown = 200;

/** Stages records derived from others: each id once, as it first appears. */
export class DerivedWriter {
  readonly content: ContentWriter;
  readonly #derived: DerivedCollection;
  readonly #first = new Map<number, { readonly json: string; readonly position: number }>();
  /** Ids that appeared again with a different record; texts beyond the listed ones are empty. */
  readonly #conflicts = new Map<number, string>();

  constructor(derived: DerivedCollection, content: ContentWriter) {
    this.#derived = derived;
    this.content = content;
  }

  /** Returns the name of the derived collection. */
  get name(): string {
    return this.#derived.collection.name;
  }

  /** Adds the records derived from a record, unless their ids are known. */
  add(source: unknown, position: number): void {
    const { collection, recordOf } = this.#derived;
    const record = recordOf(source);
    const id = collection.idOf(record);
    const json = JSON.stringify(record);
    const first = this.#first.get(id);
    if (first === undefined) {
      this.#first.set(id, { json, position });
      this.content.add({ id, json, record });
    } else if (first.json !== json && !this.#conflicts.has(id)) {
      const isNamed = this.#conflicts.size < maxNamed;
      const shown = `id ${id}: position ${position} has ${truncate(json, maxShown)}, position ${first.position} a different record`;
      this.#conflicts.set(id, isNamed ? shown : '');
    }
  }

  /** Returns warnings for the operator, as sentences. */
  warnings(): string[] {
    if (this.#conflicts.size === 0) return [];
    const named = [...this.#conflicts.values()].filter((text) => text !== '');
    const more = this.#conflicts.size > named.length ? '; and others' : '';
    return [`Conflicting ${this.name} share an id; kept the first: ${named.join('; ')}${more}.`];
  }
}

/** Counts filled fields while a version is written. */
export interface Profiler {
  add(record: unknown): void;
  profile(): Profile;
}

/** A field of a record, as the schema declares it. */
interface Member {
  /** JSON path, such as `$.product.name`. */
  readonly path: string;
  readonly isArray: boolean;
  readonly valueIn: (record: unknown) => unknown;
}

/**
 * Makes the profiler of a collection. A field has a value unless it is `null`, `""` or an empty array. Elements of arrays are
 * counted, but their fields are not.
 */
export function createProfiler(collection: Collection): Profiler {
  const members = membersOf(describe(collection), '$', (record) => record);
  const filled = members.map(() => 0);
  const elements = members.map(() => 0);
  return {
    add: (record) => {
      members.forEach(({ valueIn, isArray }, i) => {
        const value = valueIn(record);
        const length = isArray ? (value as unknown[]).length : undefined;
        if (value !== null && value !== '' && length !== 0) filled[i] = (filled[i] as number) + 1;
        if (length !== undefined) elements[i] = (elements[i] as number) + length;
      });
    },
    profile: () => ({
      filled: Object.fromEntries(members.map(({ path }, i) => [path, filled[i] as number])),
      elements: Object.fromEntries(
        members.flatMap(({ path, isArray }, i) => (isArray ? [[path, elements[i] as number]] : [])),
      ),
    }),
  };
}

function membersOf(description: Description, path: string, valueIn: (record: unknown) => unknown): Member[] {
  if (!description.keys) return [{ path, isArray: description.type === 'array', valueIn }];
  return Object.entries(description.keys).flatMap(([name, member]) =>
    membersOf(member, `${path}.${name}`, (record) => (valueIn(record) as Record<string, unknown>)[name]),
  );
}
