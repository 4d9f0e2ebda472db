// Verifies all stored data of a collection against its checksums, and repairs it. A damaged content is rebuilt by an import of
// its stored records, or deleted.

import type { Collection } from '../shared/collections/define.ts';
import type { Redis } from '../shared/redis/connections.ts';
import { blockLines, openBlock, rangeIds, unpackIds } from '../shared/store/block.ts';
import { readChangeSet } from '../shared/store/change-sets.ts';
import type { LockHolder } from '../shared/store/import-locks.ts';
import { type CollectionKeys, changeSetKeys, collectionKeys, contentKeys } from '../shared/store/keys.ts';
import { discard, discardAll, retain, type Write, writeLocked } from '../shared/store/scripts.ts';
import {
  currentFormat,
  documentOf,
  keptVersionOf,
  readKeptVersions,
  readLiveVersion,
  type StoredContent,
  type Version,
} from '../shared/store/versions.ts';
import { readKeyDamage, repairKeys } from './bookkeeping.ts';
import { rebuildChangeSets } from './diff.ts';
import { contentDamage, readBlock, requireComplete } from './integrity.ts';
import { Lease } from './lease.ts';
import { graceMs } from './publish.ts';
import { VersionWriter } from './stage.ts';

/** How many sentences about one content's damage are reported. */
const maxSentences = 100;

/** A content that is damaged. */
export interface DamagedContent {
  /** The versions with this content, oldest first. */
  readonly versions: readonly Version[];
  /** The first sentences about its damage. */
  readonly damage: readonly string[];
}

/** A version whose change sets are damaged. */
export interface DamagedChanges {
  readonly version: number;
  /** The previous version, against which they were computed. */
  readonly previous: number;
  /** The damage, as sentences. */
  readonly damage: readonly string[];
}

/** The result of a verification. */
export interface Verification {
  /** The verified versions, oldest first, and their number of records; a content that several versions share counts once. */
  readonly versions: readonly number[];
  readonly records: number;
  /** Damage of the bookkeeping keys, as sentences. */
  readonly keys: readonly string[];
  readonly contents: readonly DamagedContent[];
  readonly changeSets: readonly DamagedChanges[];
}

/** Returns whether any damage was found. */
export function isDamaged({ keys, contents, changeSets }: Verification): boolean {
  return keys.length + contents.length + changeSets.length > 0;
}

/**
 * Reads everything that is stored of the kept versions of a collection, in bounded pieces. Marks damaged contents, so that the
 * next import rebuilds the live one. A content that is deleted meanwhile is not reported.
 */
export async function verify(
  redis: Redis,
  keys: CollectionKeys,
  collection: Collection,
): Promise<Verification> {
  const bookkeeping = await readKeyDamage(redis, keys);
  const kept = await readReadable(redis, keys);
  const groups = byContent(kept);
  const contents: DamagedContent[] = [];
  for (const versions of groups) {
    const { content } = versions[0] as Version;
    const damage = await sentencesOf(
      contentDamage(redis, keys, { collection, content: versions[0] as Version }),
    );
    const isKept = (await readReadable(redis, keys)).some((it) => it.content === content);
    if (damage.length > 0 && isKept) contents.push({ versions, damage });
    if (bookkeeping.damage.length > 0) continue;
    if (damage.length > 0 && isKept) await redis.hset(keys.damaged, content, damage[0] as string);
    else await redis.hdel(keys.damaged, content);
  }
  return {
    versions: kept.map(({ version }) => version),
    records: groups.reduce((sum, [first]) => sum + (first as Version).totalCount, 0),
    keys: bookkeeping.damage,
    contents,
    changeSets: await changeSetDamage(redis, keys),
  };
}

/** Reads the kept versions with readable documents, oldest first. */
async function readReadable(redis: Redis, keys: CollectionKeys): Promise<Version[]> {
  const isHash = (await redis.type(keys.versionDocuments)) === 'hash';
  const documents = isHash ? await redis.hgetall(keys.versionDocuments) : {};
  const versions = Object.entries(documents).flatMap(([number, text]) => {
    try {
      return [keptVersionOf(keys, Number(number), text)];
    } catch {
      return []; // The damage is reported with the bookkeeping keys.
    }
  });
  return versions.sort((a, b) => a.version - b.version);
}

/** Groups versions by content. */
function byContent(kept: readonly Version[]): Version[][] {
  const groups = new Map<string, Version[]>();
  for (const version of kept) groups.set(version.content, [...(groups.get(version.content) ?? []), version]);
  return [...groups.values()];
}

async function sentencesOf(damage: AsyncIterable<string>): Promise<string[]> {
  const first: string[] = [];
  let more = 0;
  for await (const sentence of damage) {
    if (first.length < maxSentences) first.push(sentence);
    else more += 1;
  }
  return more === 0 ? first : [...first, `There are ${more} more.`];
}

/** Verifies the change sets of every version but the oldest. A set that is deleted meanwhile is not reported. */
export async function changeSetDamage(redis: Redis, keys: CollectionKeys): Promise<DamagedChanges[]> {
  const isSortedSet = (await redis.type(keys.changeSets)) === 'zset'; // A wrong type is reported with the bookkeeping keys.
  const numbers = isSortedSet ? (await redis.zrange(keys.changeSets, 0, '-1')).map(Number) : [];
  const damaged: DamagedChanges[] = [];
  for (const [n, version] of numbers.slice(1).entries()) {
    const previous = numbers[n] as number;
    const damage: string[] = [];
    for (const key of changeSetKeys(keys, version)) {
      const facts = await readChangeSet(redis, key);
      if (!facts) damage.push(`The change set ${key} is damaged.`);
      else if (facts.previous !== previous)
        damage.push(`The change set ${key} starts at version ${facts.previous}, not ${previous}.`);
    }
    // Deleting a version also deletes the change set of the next one.
    const isKept = damage.length > 0 && (await redis.zscore(keys.changeSets, previous)) !== null;
    if (isKept) damaged.push({ version, previous, damage });
  }
  return damaged;
}

/** How a repair ended. */
export type RepairResult =
  | { readonly found: Verification; readonly left: Verification; readonly done: readonly string[] }
  | { readonly outcome: 'locked'; readonly lock: LockHolder };

/** The options of a repair. */
interface Repair {
  readonly redis: Redis;
  readonly lease: Lease;
  readonly collection: Collection;
}

/** The stored records of a version are lost, or differ from the published ones. */
class UnrepairableError extends Error {}

/** Verifies a collection under its lock, repairs damage, and verifies it again. */
export async function repair(
  collection: Collection,
  { redis, keyPrefix }: { redis: Redis; keyPrefix: string },
): Promise<RepairResult> {
  const keys = collectionKeys(keyPrefix, collection);
  const lease = await Lease.take(redis, keys);
  if (!(lease instanceof Lease)) return { outcome: 'locked', lock: lease };
  try {
    const { damage } = await readKeyDamage(redis, keys);
    // Bookkeeping keys first: a content without a version may be damaged, too.
    const done = await repairKeys(redis, lease);
    await discardAll(redis, lease);
    const found = { ...(await verify(redis, keys, collection)), keys: damage };
    for (const content of found.contents)
      done.push(await repairContent({ redis, lease, collection }, content));
    for (const changes of found.changeSets)
      done.push(await repairChanges({ redis, lease, collection }, changes));
    return { found, done, left: await verify(redis, keys, collection) };
  } finally {
    await lease.release().catch(() => undefined); // It expires.
  }
}

/** Rebuilds a content from its stored records, or deletes it if it is not live. @returns the action, as a sentence */
async function repairContent(its: Repair, { versions }: DamagedContent): Promise<string> {
  const { redis, lease } = its;
  const { keys } = lease;
  const numbers = versions.map(({ version }) => version);
  const [name, was] =
    numbers.length === 1 ? [`Version ${numbers[0]}`, 'was'] : [`Versions ${numbers.join(', ')}`, 'were'];
  const { content } = versions[0] as Version;
  const live = await readLiveVersion(redis, keys);
  try {
    const rebuilt = await stageAgain(its, versions[0] as Version);
    await replaceContent(its, { versions, rebuilt, live: live?.version ?? null });
    return `${name} ${was} rebuilt.`;
  } catch (error) {
    if (!(error instanceof UnrepairableError)) throw error;
    const reason = `${name} cannot be rebuilt: ${error.message}`;
    if (live?.content === content)
      return `${reason} ${numbers.length === 1 ? 'It is live' : 'Their content is live'}: run "medref import ${its.collection.name}".`;
    await retain(redis, lease, { versions: numbers, contents: [content] }, graceMs);
    return `${reason} ${numbers.length === 1 ? 'It was' : 'They were'} deleted.`;
  }
}

/** Replaces a damaged content with the rebuilt one in all its versions. @throws LockLostError */
async function replaceContent(
  { redis, lease }: Repair,
  { versions, rebuilt, live }: { versions: readonly Version[]; rebuilt: StoredContent; live: number | null },
): Promise<void> {
  const { keys } = lease;
  await requireComplete(redis, keys, rebuilt);
  const { content: damaged } = versions[0] as Version;
  const writes: Write[] = contentKeys(keys, rebuilt.content).map((key) => ['PERSIST', key]);
  for (const version of versions) {
    const document = documentOf({ ...version, ...rebuilt });
    writes.push(['HSET', keys.versionDocuments, version.version, document]);
    if (version.version === live) writes.push(['SET', keys.live, document]);
  }
  writes.push(['DEL', keys.staged], ['HDEL', keys.damaged, damaged]);
  for (const key of contentKeys(keys, damaged)) writes.push(['PEXPIRE', key, graceMs]);
  await writeLocked(redis, lease, writes);
  await redis.publish(keys.announcements, String(versions[0]?.version));
}

/** The source of a range's records; either may be complete and yet belong to another content. */
type Source = 'blocks' | 'records';

/** Imports the stored records of a version again. @throws UnrepairableError, with nothing left staged */
async function stageAgain(its: Repair, old: Version, source: Source = 'blocks'): Promise<StoredContent> {
  const { redis, lease, collection } = its;
  const [number, times = '0'] = old.content.split('.');
  const begun = await lease.begin(`${number}.${Number(times) + 1}`);
  const writer = new VersionWriter(redis, begun, collection);
  try {
    if (old.format !== currentFormat) throw new UnrepairableError(`Its format ${old.format} is unknown.`);
    for (let range = 0, position = 1; range * rangeIds < old.totalCount; range += 1) {
      const texts = await readTexts(its, old, { range, source });
      await writer.write(
        texts.map((json) => ({ position: position++, value: parsed(json), flaw: null, raw: () => json })),
      );
    }
    const { content: facts, derived } = await writer.finish();
    const isSame =
      facts.checksum === old.checksum &&
      Object.entries(old.derived).every(([name, { checksum }]) => derived[name]?.checksum === checksum);
    if (!isSame) throw new UnrepairableError('Its stored records do not match its checksum.');
    return { ...facts, derived, content: String(begun.name), format: currentFormat };
  } catch (error) {
    await writer.settle();
    await discard(redis, lease, begun.name);
    if (!(error instanceof UnrepairableError) || source === 'records') throw error;
    return stageAgain(its, old, 'records');
  }
}

/** @throws UnrepairableError */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new UnrepairableError('A stored record is not JSON text.');
  }
}

/** Reads the records of a range as JSON texts, from its block or one by one. @throws UnrepairableError if both are incomplete */
async function readTexts(
  its: Repair,
  old: Version,
  { range, source }: { range: number; source: Source },
): Promise<string[]> {
  const readers = source === 'blocks' ? [readBlockTexts, readRecordTexts] : [readRecordTexts, readBlockTexts];
  for (const read of readers) {
    const texts = await read(its, old, range);
    if (texts) return texts;
  }
  throw new UnrepairableError(`Neither the block nor all records of range ${range} are complete.`);
}

async function readBlockTexts(
  { redis, lease }: Repair,
  old: Version,
  range: number,
): Promise<string[] | null> {
  const stored = await readField(redis, lease.keys.content(old.content).blocks, range);
  const block = stored && readBlock(stored) ? openBlock(stored) : null;
  return block ? blockLines(block).toString().split('\n').slice(0, -1) : null;
}

async function readRecordTexts(
  { redis, lease }: Repair,
  old: Version,
  range: number,
): Promise<string[] | null> {
  const { order, records } = lease.keys.content(old.content);
  const packed = await readField(redis, order, range);
  const ids = packed ? unpackIds(packed) : [];
  if (ids.length === 0 || (await redis.type(records)) !== 'hash') return null;
  const texts = await redis.hmget(records, ...ids);
  return texts.includes(null) ? null : (texts as string[]);
}

async function readField(redis: Redis, key: string, field: number): Promise<Buffer | null> {
  return (await redis.type(key)) === 'hash' ? redis.hgetBuffer(key, String(field)) : null;
}

/** Compares two versions again. If one is not kept or damaged, deletes all older change sets: clients get 410. */
async function repairChanges(its: Repair, { version, previous }: DamagedChanges): Promise<string> {
  const { redis, lease, collection } = its;
  const { keys } = lease;
  const kept = new Map((await readKeptVersions(redis, keys)).map((it) => [it.version, it]));
  const [before, after] = [kept.get(previous), kept.get(version)];
  const isIntact = async (content: Version | undefined) =>
    content !== undefined &&
    (await sentencesOf(contentDamage(redis, keys, { collection, content }))).length === 0;
  if (before && after && (await isIntact(before)) && (await isIntact(after))) {
    await rebuildChangeSets(redis, keys, { before, after });
    return `The change set of version ${version} was rebuilt.`;
  }
  const older = (await redis.zrangebyscore(keys.changeSets, '-inf', `(${version}`)).map(Number);
  const leaving = [...older, version].flatMap((number) => changeSetKeys(keys, number));
  await writeLocked(redis, lease, [
    ...older.map((number): Write => ['ZREM', keys.changeSets, number]),
    ...leaving.map((key): Write => ['UNLINK', key]),
  ]);
  return `The change set of version ${version} cannot be rebuilt. "since" must now be version ${version} or later.`;
}
