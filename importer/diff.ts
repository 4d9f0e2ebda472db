// The diff of two contents: which records differ, as counts and change sets for a publication, or record by record.

import { execute, type Redis } from '../shared/redis/connections.ts';
import { rangeIds } from '../shared/store/block.ts';
import { type ChangeSetFacts, changeSetText, entrySum, factsField } from '../shared/store/change-sets.ts';
import { type CollectionKeys, type ContentName, changeSetKeys, type PartKeys } from '../shared/store/keys.ts';
import { compare, NotPublishedError, type StagingSession } from '../shared/store/scripts.ts';
import type { StoredContent, Version } from '../shared/store/versions.ts';
import { differingMembers } from '../shared/text.ts';

/** How many ids one command compares: Redis needs less than a millisecond even if all records differ. */
const idsAtOnce = 100;

/** How many comparisons are sent before the first reply. */
const sentAhead = 8;

/** Part of a compared content was deleted meanwhile, or is damaged. */
export class IncompleteContentError extends NotPublishedError {
  constructor() {
    super('A compared version was deleted meanwhile or is damaged. Try again, or run "medref verify".');
  }
}

/** The part of a content that belongs to one collection. */
export interface ContentPart {
  readonly name: ContentName;
  readonly totalCount: number;
}

/** An id whose records differ, with the SHA-1 of the record before and after; `-` if there is none. */
interface Difference {
  readonly id: string;
  readonly before: string;
  readonly after: string;
}

/** How many ids were added and removed, and how many records changed. */
export interface DiffCounts {
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

/** What differs between two versions. */
export interface VersionDiffCounts extends DiffCounts {
  /** The facts of the change set of each part; `null` without a version to compare with. */
  readonly changeSets: readonly (ChangeSetFacts | null)[];
}

/** Where change sets are written. */
interface ChangeSetPlace extends Pick<StagingSession, 'keys' | 'name'> {
  /** `null`: they never expire. */
  readonly lifetimeMs: number | null;
}

/**
 * Compares two versions of a collection and stages the change sets, including those of derived collections.
 * @param before `null` if there is none: then all records count as added, and there is no change set
 * @returns the counts of the collection itself
 * @throws IncompleteContentError
 */
export async function compareVersions(
  redis: Redis,
  { keys, name, lifetimeMs }: ChangeSetPlace,
  { before, after }: { before: Version | null; after: StoredContent },
): Promise<VersionDiffCounts> {
  if (!before) {
    const none = [null, ...Object.keys(after.derived).map(() => null)];
    return { added: after.totalCount, changed: 0, removed: 0, changeSets: none };
  }
  const stageDiff = (part: PartKeys, older: { totalCount: number }, newer: { totalCount: number }) =>
    writeChangeSet(redis, part, {
      key: part.changeSet(name),
      before: { name: before.content, totalCount: older.totalCount },
      after: { name: after.content, totalCount: newer.totalCount },
      lifetimeMs,
    });
  const { sum, ...own } = await stageDiff(keys, before, after);
  const changeSets: (ChangeSetFacts | null)[] = [factsOf({ ...own, sum }, before)];
  for (const [collection, newer] of Object.entries(after.derived)) {
    const older = before.derived[collection];
    changeSets.push(older ? factsOf(await stageDiff(keys.derived(collection), older, newer), before) : null);
  }
  return { ...own, changeSets };
}

/** Compares two kept versions and replaces the change sets of the later one. @throws IncompleteContentError */
export async function rebuildChangeSets(
  redis: Redis,
  keys: CollectionKeys,
  { before, after }: { before: Version; after: Version },
): Promise<void> {
  const own = changeSetKeys(keys, after.version);
  for (const key of own) await redis.unlink(key);
  const place = { keys, name: after.version, lifetimeMs: null };
  const { changeSets } = await compareVersions(redis, place, { before, after });
  // The facts come last: without them, readers treat a change set as incomplete.
  for (const [n, key] of own.entries()) {
    const facts = changeSets[n];
    if (facts) await redis.hset(key, factsField, changeSetText(facts));
  }
}

/** Returns whether a content has exactly the records of a version, including derived collections. */
export function isSame(before: Version, { checksum, derived }: StoredContent): boolean {
  const isSameDerived = Object.entries(derived).every(
    ([name, its]) => before.derived[name]?.checksum === its.checksum,
  );
  return checksum === before.checksum && isSameDerived;
}

/** Returns the change sets of a version with the same records as the version before it, see {@link isSame}. */
export function emptyChangeSets(
  before: Version,
  { derived }: StoredContent,
): VersionDiffCounts['changeSets'] {
  const facts = factsOf({ added: 0, changed: 0, removed: 0, sum: 0 }, before);
  return [facts, ...Object.keys(derived).map(() => facts)];
}

function factsOf(
  { added, changed, removed, sum }: DiffCounts & { sum: number },
  { version: previous, publishedAt }: Version,
): ChangeSetFacts {
  return { size: added + changed + removed, sum, previous, previousMs: Date.parse(publishedAt) };
}

/** Writes the change set between two contents of a part. @throws IncompleteContentError */
async function writeChangeSet(
  redis: Redis,
  part: PartKeys,
  {
    key,
    before,
    after,
    lifetimeMs,
  }: { key: string; before: ContentPart; after: ContentPart; lifetimeMs: number | null },
): Promise<DiffCounts & { sum: number }> {
  const counts = { added: 0, changed: 0, removed: 0, sum: 0 };
  for (const walks of ['after', 'before'] as const) {
    counts.removed = before.totalCount - (after.totalCount - counts.added);
    let left = counts.removed;
    if (walks === 'before' && left === 0) break;
    for await (const found of differences(redis, part, { before, after, walks })) {
      if (found.length === 0) continue;
      const fields: [string, string][] = found.map((it) => [it.id, `${it.before} ${it.after}`]);
      for (const [id, digests] of fields) counts.sum = (counts.sum + entrySum(id, digests)) % 2 ** 32;
      if (walks === 'after') {
        const added = found.filter((it) => it.before === '-').length;
        counts.added += added;
        counts.changed += found.length - added;
      }
      // One step: an import that is killed in between must not leave a key that never expires.
      await execute(() => {
        const write = redis.multi().hset(key, fields.flat());
        return lifetimeMs === null ? write : write.pexpire(key, lifetimeMs);
      });
      if (walks === 'before') left -= found.length;
      if (walks === 'before' && left === 0) break;
    }
  }
  return counts;
}

/**
 * Yields the differences between two contents of a part: added and changed records in the order of the newer content, or
 * removed records in the order of the older content.
 */
async function* differences(
  redis: Redis,
  part: PartKeys,
  { before, after, walks }: { before: ContentPart; after: ContentPart; walks: 'after' | 'before' },
): AsyncGenerator<Difference[], void> {
  const [walked, other] = walks === 'after' ? [after, before] : [before, after];
  const { order, records } = part.content(walked.name);
  const { records: otherRecords } = part.content(other.name);
  const positions = Array.from({ length: Math.ceil(walked.totalCount / idsAtOnce) }, (_, n) => n * idsAtOnce);
  const compareFrom = async (position: number): Promise<Difference[]> => {
    const flat = await compare(redis, {
      keys: [order, records, otherRecords],
      range: Math.floor(position / rangeIds),
      from: position % rangeIds,
      count: idsAtOnce,
      only: walks === 'after' ? 'all' : 'alone',
      otherCount: other.totalCount,
    });
    if (flat === null) throw new IncompleteContentError();
    return Array.from({ length: flat.length / 3 }, (_, n) => {
      const [id, its, others] = flat.slice(n * 3, n * 3 + 3) as [string, string, string];
      return walks === 'after' ? { id, before: others, after: its } : { id, before: its, after: others };
    });
  };
  const sent: Promise<Difference[]>[] = [];
  for (const position of positions) {
    const reply = compareFrom(position);
    reply.catch(() => undefined); // Thrown when it is awaited.
    sent.push(reply);
    if (sent.length === sentAhead) yield (await sent.shift()) as Difference[];
  }
  for (const reply of sent) yield await reply;
}

/** A record that is in both versions and differs. */
export interface ChangedRecord {
  readonly id: number;
  /** Fields that differ, as paths such as `product.name`. */
  readonly fields: readonly string[];
  readonly before: unknown;
  readonly after: unknown;
}

/** The differences of two versions, read from Redis as the caller iterates. */
export interface VersionDiff {
  /** Records that only the later version has, in its order. */
  added(): AsyncGenerator<unknown, void>;
  /** In the order of the later version. */
  changed(): AsyncGenerator<ChangedRecord, void>;
  /** Records that only the earlier version has, in its order. */
  removed(): AsyncGenerator<unknown, void>;
}

/** Compares the contents of two kept versions, record by record. The generators throw {@link IncompleteContentError}. */
export function diffVersions(redis: Redis, part: PartKeys, from: Version, to: Version): VersionDiff {
  const before = { name: from.content, totalCount: from.totalCount };
  const after = { name: to.content, totalCount: to.totalCount };
  const found = async function* (walks: 'after' | 'before', is: (it: Difference) => boolean) {
    if (before.name === after.name) return;
    for await (const some of differences(redis, part, { before, after, walks })) yield some.filter(is);
  };
  return {
    async *added() {
      for await (const some of found('after', (it) => it.before === '-'))
        yield* await readRecords(redis, part, to, some);
    },
    async *changed() {
      for await (const some of found('after', (it) => it.before !== '-')) {
        const olds = await readRecords(redis, part, from, some);
        const news = await readRecords(redis, part, to, some);
        for (const [n, { id }] of some.entries()) {
          const fields = differingMembers(olds[n], news[n]);
          yield { id: Number(id), fields, before: olds[n], after: news[n] };
        }
      }
    },
    async *removed() {
      for await (const some of found('before', () => true)) yield* await readRecords(redis, part, from, some);
    },
  };
}

/** Reads the records of some ids. @throws IncompleteContentError */
async function readRecords(
  redis: Redis,
  part: PartKeys,
  version: Version,
  ids: readonly Difference[],
): Promise<unknown[]> {
  if (ids.length === 0) return [];
  const texts = await redis.hmget(part.content(version.content).records, ...ids.map(({ id }) => id));
  return texts.map((text) => {
    if (text === null) throw new IncompleteContentError();
    return JSON.parse(text);
  });
}
