// In: two kept versions. Out: what differs between them, record by record, read in bounded batches.

import { differingMembers } from '../shared/differing-members.ts';
import { formatOf } from '../shared/formats/content-format.ts';
import type { Redis } from '../shared/redis/connections.ts';
import type { PartKeys } from '../shared/store/keys.ts';
import { rangeIds, unpackIds } from '../shared/store/packed-ids.ts';
import type { Version } from '../shared/store/versions.ts';

/** A record that is in both versions and not the same. */
export interface ChangedRecord {
  readonly id: number;
  /** Members that differ, by their names from the outside in, such as `product.name`. */
  readonly fields: readonly string[];
  readonly before: unknown;
  readonly after: unknown;
}

/** What differs between two versions; each part is read from Redis as it is asked for. */
export interface VersionDiff {
  /** Records that only the later one has, in its order. */
  added(): AsyncGenerator<unknown, void>;
  /** In the order of the later one. */
  changed(): AsyncGenerator<ChangedRecord, void>;
  /** Records that only the earlier one has, in its order. */
  removed(): AsyncGenerator<unknown, void>;
}

/** A version's records were let go while they were read, or are not as they were stored. */
export class VersionVanishedError extends Error {}

/** Compares the contents of two kept versions. The generators throw {@link VersionVanishedError}. */
export function diffVersions(redis: Redis, keys: PartKeys, from: Version, to: Version): VersionDiff {
  return {
    async *added() {
      for await (const [, after, before] of pairs(redis, keys, to, from))
        if (!before) yield JSON.parse(after);
    },
    async *changed() {
      for await (const [id, after, before] of pairs(redis, keys, to, from)) {
        if (before && before !== after) yield changedRecord(id, JSON.parse(before), JSON.parse(after));
      }
    },
    async *removed() {
      for await (const [, before, after] of pairs(redis, keys, from, to))
        if (!after) yield JSON.parse(before);
    },
  };
}

type Pair = readonly [id: string, walked: string, other: string | null];

/** Every record of one version with that of the other version by the same id. */
async function* pairs(
  redis: Redis,
  keys: PartKeys,
  walked: Version,
  other: Version,
): AsyncGenerator<Pair, void> {
  if (walked.content === other.content) return;
  const { order, records } = keys.content(walked.stored);
  const otherRecords = keys.content(other.stored).records;
  for (let range = 0; range * rangeIds < walked.totalCount; range += 1) {
    const packed = await redis.hgetBuffer(order, String(range));
    const its = packed && formatOf(walked).openRange(packed, range);
    const ids = its ? unpackIds(its) : [];
    const found = await readRecords(redis, { key: records, version: walked, ids });
    const others = await readRecords(redis, { key: otherRecords, version: other, ids });
    const size = Math.min(rangeIds, walked.totalCount - range * rangeIds);
    const isWhole = found.length === size && !found.includes(null);
    if (!isWhole || (await redis.exists(otherRecords)) === 0) {
      throw new VersionVanishedError(
        'One of the versions was let go while it was read, or is damaged. Try again, or run medref verify.',
      );
    }
    yield* ids.map((id, i): Pair => [id, found[i] as string, others[i] as string | null]);
  }
}

/** Records as JSON texts, by ids; `null` for those that are not there. @throws VersionVanishedError for a damaged one */
async function readRecords(
  redis: Redis,
  { key, version, ids }: { key: string; version: Version; ids: readonly string[] },
): Promise<(string | null)[]> {
  const format = formatOf(version);
  const stored = ids.length === 0 ? [] : await redis.hmgetBuffer(key, ...ids);
  return stored.map((bytes, n) => {
    const text = bytes && format.openRecord(bytes, ids[n] as string);
    if (bytes && !text)
      throw new VersionVanishedError(
        `Record ${ids[n]} of version ${version.version} is damaged in Redis. Run medref verify --repair.`,
      );
    return text?.toString() ?? null;
  });
}

function changedRecord(id: string, before: unknown, after: unknown): ChangedRecord {
  return { id: Number(id), fields: differingMembers(before, after), before, after };
}
