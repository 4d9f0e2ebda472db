// In: what was found damaged of a collection, under its lock. Out: made anew, as far as what is stored still tells it.

import type { Collection } from '../shared/collections/define.ts';
import { currentFormat, formatOf } from '../shared/formats/content-format.ts';
import type { LockHolder } from '../shared/lock-holder.ts';
import type { Redis } from '../shared/redis/connections.ts';
import { blockLines } from '../shared/store/block.ts';
import { type CollectionKeys, collectionKeys } from '../shared/store/keys.ts';
import { rangeIds, unpackIds } from '../shared/store/packed-ids.ts';
import type { BegunVersion } from '../shared/store/scripts.ts';
import { discard, discardAll } from '../shared/store/scripts.ts';
import {
  type ContentFacts,
  documentOf,
  readKeptVersions,
  readLiveVersion,
  type StoredContent,
  type Version,
} from '../shared/store/versions.ts';
import { compareVersions } from './diff.ts';
import { Lease } from './lease.ts';
import { graceMs } from './publish.ts';
import type { DamagedChanges } from './publishing/change-set-damage.ts';
import { contentDamage } from './publishing/content-damage.ts';
import { mendKeys, readKeyDamage } from './publishing/mended-keys.ts';
import { sizesOf } from './publishing/wholeness.ts';
import { forgetChanges } from './scripts/forget-changes.ts';
import { replaceChanges } from './scripts/replace-changes.ts';
import { replaceContent } from './scripts/replace-content.ts';
import { type DamagedContent, type Verification, verify } from './verify.ts';
import { type ContentRecord, ContentWriter, storedRecord } from './writing/content-writer.ts';
import { DerivedWriter } from './writing/derived-writer.ts';
import { partsOf } from './writing/parts.ts';

/** What is stored does not tell a record any more. */
class UntoldError extends Error {}

/** How a repair ended. */
export type RepairResult =
  | { readonly found: Verification; readonly left: Verification; readonly done: readonly string[] }
  | { readonly outcome: 'locked'; readonly lock: LockHolder };

/** What is known of a content that was staged anew. */
type AnewFacts = ContentFacts & Pick<StoredContent, 'derived'>;

/** How many records are sent with one command, and how many bytes of them. */
const stagedAtOnce = {
  count: 100,
  length: 1_000_000,
  lengthOf: ({ stored }: ContentRecord) => stored.length,
};

/** What a repair works on, under a lock. */
interface Repair {
  readonly redis: Redis;
  readonly keys: CollectionKeys;
  readonly collection: Collection;
  readonly lock: Lease;
}

/** Looks for damage under the lock of a collection, makes anew what can be, and looks again. */
export async function repair(
  collection: Collection,
  { redis, keyPrefix }: { redis: Redis; keyPrefix: string },
): Promise<RepairResult> {
  const keys = collectionKeys(keyPrefix, collection);
  const lock = await Lease.take(redis, keys);
  if (!(lock instanceof Lease)) return { outcome: 'locked', lock };
  try {
    const held = { keys, token: lock.token };
    const { damage } = await readKeyDamage(redis, keys);
    // These first: what they have lost sight of may hold a content that is damaged, too.
    const mended = await mendKeys(redis, held);
    await discardAll(redis, held);
    const found = { ...(await verify(redis, keys, collection)), keys: damage };
    const done = [...mended, ...(await makeAnew({ redis, keys, collection, lock }, found))];
    return { found, done, left: await verify(redis, keys, collection) };
  } finally {
    await lock.release().catch(() => undefined); // It expires by itself.
  }
}

/** @returns what was done, as sentences */
async function makeAnew(its: Repair, found: Verification): Promise<string[]> {
  const { redis, keys } = its;
  const done: string[] = [];
  for (const content of found.contents) done.push(await restoreContent(its, content));
  for (const changes of found.changeSets) done.push(await restoreChanges(its, changes));
  await redis.del(keys.damaged); // What readers have marked is looked at now; what could not be mended, verify finds.
  return done;
}

/** Writes a content anew, out of the records that its blocks and its records still tell. */
async function restoreContent(its: Repair, { versions }: DamagedContent): Promise<string> {
  const { redis, keys } = its;
  const old = versions[0] as Version;
  const numbers = versions.map(({ version }) => version).join(', ');
  try {
    const { begun, facts } = await stageAnew(its, old);
    const content: StoredContent = { ...facts, stored: begun.name, format: currentFormat };
    const live = await readLiveVersion(redis, keys);
    const documents = versions.map(
      (version) => [version.version, documentOf({ ...version, ...content })] as const,
    );
    const itsLive = documents.find(([number]) => number === live?.version);
    await replaceContent(redis, begun, {
      ...{ was: old.stored, documents, sizes: sizesOf(keys, content), graceMs },
      ...{ live: itsLive?.[1] ?? '', expectedLive: itsLive ? (live?.document ?? '') : '' },
    });
    return `The content of version ${numbers} was made anew.`;
  } catch (error) {
    if (!(error instanceof UntoldError)) throw error;
    return `The content of version ${numbers} cannot be made anew: ${error.message} Import it again.`;
  }
}

/** Where the records of a range are looked for first; one may be whole, and yet be of another content. */
type Source = 'blocks' | 'records';

/** Stages a content anew; where its blocks do not tell it, by its records. @throws UntoldError, with nothing staged */
async function stageAnew(
  its: Repair,
  old: Version,
  source: Source = 'blocks',
): Promise<{ begun: BegunVersion; facts: AnewFacts }> {
  const begun = await its.lock.begin(nextName(old));
  try {
    return { begun, facts: await writeAnew(its, begun, { old, source }) };
  } catch (error) {
    if (!(error instanceof UntoldError)) throw error;
    await discard(its.redis, begun, begun.name);
    if (source === 'records') throw error;
    return stageAnew(its, old, 'records');
  }
}

/** What a content is stored under that is made anew: its number, and how often that was done. */
function nextName({ content, stored }: Version): string {
  const [, times = '0'] = String(stored).split('.');
  return `${content}.${Number(times) + 1}`;
}

/** @throws UntoldError where that does not come to the very records that were published */
async function writeAnew(
  { redis, keys, collection }: Repair,
  begun: BegunVersion,
  { old, source }: { old: Version; source: Source },
): Promise<AnewFacts> {
  const writer = new ContentWriter(redis, begun, keys, collection);
  const derivedWriters = (collection.derived ?? []).map(
    (derived) => new DerivedWriter(redis, begun, derived),
  );
  let position = 0;
  for (let range = 0; range * rangeIds < old.totalCount; range += 1) {
    const records = (await textsOf({ redis, keys }, old, { range, source })).map((json): ContentRecord => {
      const record = recordIn(json);
      const id = collection.idOf(record);
      position += 1;
      return { position, id, json, stored: storedRecord(id, json), record };
    });
    for (const some of partsOf(records, stagedAtOnce)) await writer.stageRecords(some);
    await writer.stageListing(records);
    for (const derived of derivedWriters) await derived.write(records);
  }
  const facts = await writer.finish();
  const derived: Record<string, ContentFacts> = {};
  for (const it of derivedWriters) derived[it.name] = await it.finish();
  if (facts.checksum !== old.checksum)
    throw new UntoldError('What is stored does not come to the checksum of the version.');
  for (const [name, { checksum }] of Object.entries(old.derived)) {
    if (derived[name]?.checksum !== checksum)
      throw new UntoldError(`What is stored does not come to the checksum of the ${name} of the version.`);
  }
  return { ...facts, derived };
}

/** @throws UntoldError */
function recordIn(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new UntoldError('A record is not the JSON text that it was.');
  }
}

/** The records of a range as JSON texts, out of its block or one by one. @throws UntoldError where neither is whole */
async function textsOf(
  its: Pick<Repair, 'redis' | 'keys'>,
  old: Version,
  { range, source }: { range: number; source: Source },
): Promise<string[]> {
  const [first, second] = source === 'blocks' ? [blockTexts, recordTexts] : [recordTexts, blockTexts];
  const texts = (await first(its, old, range)) ?? (await second(its, old, range));
  if (texts) return texts;
  throw new UntoldError(`Of range ${range}, neither the block nor all records are whole.`);
}

type RangeReader = (
  its: Pick<Repair, 'redis' | 'keys'>,
  old: Version,
  range: number,
) => Promise<string[] | null>;

const blockTexts: RangeReader = async ({ redis, keys }, old, range) => {
  const stored = await bytesOf(redis, keys.content(old.stored).blocks, range);
  const block = stored && formatOf(old).openBlock(stored, range);
  return block && blockLines(block).toString().split('\n').slice(0, -1);
};

const recordTexts: RangeReader = async ({ redis, keys }, old, range) => {
  const { order, records } = keys.content(old.stored);
  const format = formatOf(old);
  const storedOrder = await bytesOf(redis, order, range);
  const packed = storedOrder && format.openRange(storedOrder, range);
  const ids = packed ? unpackIds(packed) : [];
  const areRecords = (await redis.type(records)) === 'hash' && ids.length > 0;
  const found = areRecords ? await redis.hmgetBuffer(records, ...ids) : [];
  const texts = found.map((bytes, n) => bytes && format.openRecord(bytes, ids[n] as string));
  return texts.length === 0 || texts.includes(null) ? null : texts.map(String);
};

async function bytesOf(redis: Redis, key: string, field: number): Promise<Buffer | null> {
  return (await redis.type(key)) === 'hash' ? redis.hgetBuffer(key, String(field)) : null;
}

/** Compares the versions again, or else lets go of all changes up to there: who asks is told to read the whole list. */
async function restoreChanges(its: Repair, { version, previous }: DamagedChanges): Promise<string> {
  const { redis, keys, lock } = its;
  const kept = new Map((await readKeptVersions(redis, keys)).map((it) => [it.version, it]));
  const [before, after] = [kept.get(previous), kept.get(version)];
  if (before && after && (await isWhole(its, before)) && (await isWhole(its, after))) {
    const begun = await lock.begin(`changes-${version}`);
    const { changeSets: facts } = await compareVersions(redis, begun, { before, after });
    await replaceChanges(redis, begun, { version, facts });
    return `The change set of version ${version} was made anew.`;
  }
  const older = (await redis.zrangebyscore(keys.changeSets, '-inf', `(${version}`)).map(Number);
  await forgetChanges(redis, { keys, token: lock.token }, { version, before: older });
  return `The change set of version ${version} cannot be made anew; changes are told from version ${version} on.`;
}

async function isWhole({ redis, keys }: Repair, version: Version): Promise<boolean> {
  for await (const _damage of contentDamage(redis, keys, version)) return false;
  return true;
}
